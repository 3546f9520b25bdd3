//! Invalid input is rejected with the file, the place and what is allowed.

use std::fs;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use windfall_core::Seed;
use windfall_core::statistics::Interval;
use windfall_trace::{
    AzureLikeSettings, Caps, Placement, ReadOptions, Source, TraceError, azure_2019, azure_2021,
    huawei, native,
};

use crate::{DURATIONS, INVOCATIONS, MEMORY, file, small_trace};

pub(crate) fn refused<T>(result: Result<T, TraceError>) -> String {
    let error = result.err().expect("invalid input is rejected");
    error.to_string()
}

#[test]
fn invalid_tables_are_rejected_with_place_and_value() {
    let invocations = |text: &str| refused(azure_2019::read_invocations(text.as_bytes(), "i.csv"));
    assert_eq!(invocations(""), "i.csv: has no rows");
    assert_eq!(invocations("HashFunction,Trigger,1\n"), "i.csv: has no rows");
    assert_eq!(
        invocations("HashFunction,1\nf,2\n"),
        "i.csv: column `Trigger` is missing; the header begins `HashFunction,1`"
    );
    for bad in ["-1", "NaN", "inf", "x", "1.5", ""] {
        assert_eq!(
            invocations(&format!("HashFunction,Trigger,1\nf,http,{bad}\n")),
            format!(
                "i.csv line 2, column `1`: found `{bad}`, allowed is a whole number from 0 to 4294967295"
            )
        );
    }
    assert_eq!(
        invocations("HashFunction,Trigger,1\nf,http,1\nf,http,1\n"),
        "i.csv line 3: function `f` appears twice"
    );
    assert_eq!(
        invocations("HashFunction,Trigger,1,2\nf,http,1\n"),
        "i.csv line 2: the row has 3 cells, the header 4"
    );
    let durations = DURATIONS.replace("o,a,f,1,", "o,a,f,NaN,");
    assert_eq!(
        refused(azure_2019::read_durations(durations.as_bytes(), "d.csv")),
        "d.csv line 2, column `percentile_Average_0`: found `NaN`, allowed is a number from 0 to 1e15"
    );
    assert_eq!(
        refused(azure_2021::read_invocations(
            &b"app,func,end_timestamp,duration\na,f,1,-2\n"[..],
            "c"
        )),
        "c line 2, column `duration`: found `-2`, allowed is a number from 0 to 1e15"
    );
    let requests = "date,1---2---pool-300-128\n2016-07-01 00:05:00,1\n2016-07-01 00:00:00,1\n";
    assert_eq!(
        refused(huawei::read_requests(requests.as_bytes(), "h")),
        "h line 3: `2016-07-01 00:00:00` after `2016-07-01 00:05:00`; rows must be in order of time"
    );
}

#[test]
fn missing_functions_are_rejected() {
    let directory = small_trace();
    let durations = directory.path().join("function_durations_percentiles.anon.d01.csv");
    fs::write(&durations, DURATIONS.replace("o,b,h,", "o,b,other,")).unwrap();
    let source = file(directory.path().to_owned(), ReadOptions::default());
    let error = source.open(Seed::new(1)).err().unwrap();
    assert!(error.to_string().contains("has no row for function `h`"), "{error}");
    assert!(error.hint().unwrap().contains("skip_incomplete"));
}

#[test]
fn errors_name_the_missing_column() {
    let missing = |error: String, file: &str, column: &str| {
        let expected = format!("{file}: column `{column}` is missing; the header begins `");
        assert!(error.starts_with(&expected), "{error}");
    };
    let invocations = refused(azure_2019::read_invocations(&b"Trigger,1\nhttp,2\n"[..], "i"));
    missing(invocations, "i", "HashFunction");
    let durations = DURATIONS.replace("percentile_Average_75", "x");
    let durations = refused(azure_2019::read_durations(durations.as_bytes(), "d"));
    missing(durations, "d", "percentile_Average_75");
    let memory = MEMORY.replace("AverageAllocatedMb_pct99", "x");
    let memory = refused(azure_2019::read_memory(memory.as_bytes(), "m"));
    missing(memory, "m", "AverageAllocatedMb_pct99");
    for column in ["app", "func", "end_timestamp", "duration"] {
        let header = "app,func,end_timestamp,duration\n".replace(column, "x");
        missing(refused(azure_2021::read_invocations(header.as_bytes(), "c")), "c", column);
    }
    missing(refused(huawei::read_requests(&b"day,1---2---p-3-4\n"[..], "h")), "h", "date");
}

#[test]
fn duplicate_rows_and_empty_tables_are_rejected() {
    let last = "o,b,90,91,95,100,105,110,120,150\n";
    let memory = format!("{MEMORY}{last}");
    assert_eq!(
        refused(azure_2019::read_memory(memory.as_bytes(), "m")),
        "m line 4: function `b` appears twice"
    );
    let requests = "date,1---2---p-300-128,1---2---p-300-128\n2016-07-01 00:05:00,1,2\n";
    assert_eq!(
        refused(huawei::read_requests(requests.as_bytes(), "h")),
        "h line 1: function `1---2---p-300-128` appears twice"
    );
    let header = |text: &str| text.lines().next().unwrap().to_owned() + "\n";
    for empty in ["", "\n\n"] {
        assert!(refused(azure_2019::read_memory(empty.as_bytes(), "m")).starts_with("m: "));
    }
    assert_eq!(
        refused(azure_2019::read_durations(header(DURATIONS).as_bytes(), "d")),
        "d: has no rows"
    );
    assert_eq!(
        refused(azure_2021::read_invocations(&b"app,func,end_timestamp,duration\n"[..], "c")),
        "c: has no rows"
    );
    assert_eq!(
        refused(huawei::read_requests(&b"date,1---2---p-300-128\n"[..], "h")),
        "h: has no rows"
    );
    for (value, allowed) in [("-1", "1e15"), ("NaN", "1e15"), ("many", "1e15"), ("", "1e15")] {
        let requests = format!("date,1---2---p-300-128\n2016-07-01 00:05:00,{value}\n");
        assert_eq!(
            refused(huawei::read_requests(requests.as_bytes(), "h")),
            format!(
                "h line 2, column `1---2---p-300-128`: found `{value}`, allowed is a number from 0 to {allowed}"
            )
        );
    }
}

#[test]
fn errors_name_the_missing_table() {
    for (table, name) in [
        ("duration", "function_durations_percentiles.anon.d01.csv"),
        ("memory", "app_memory_percentiles.anon.d01.csv"),
    ] {
        let directory = small_trace();
        fs::remove_file(directory.path().join(name)).unwrap();
        let source = file(directory.path().to_owned(), ReadOptions::default());
        let error = source.open(Seed::new(1)).err().unwrap();
        let expected = format!("no {table} table belongs to ");
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(error.hint().unwrap().contains("in one directory"));
    }
}

fn packed(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// A table with the same header and 3,000 rows.
fn long(table: &str, row: impl Fn(usize) -> String) -> String {
    let rows = (0..3000).map(|i| row(i) + "\n");
    table.lines().next().unwrap().to_owned() + "\n" + &rows.collect::<String>()
}

#[test]
fn a_truncated_archive_is_reported_as_truncated_by_every_reader() {
    type Read = fn(&[u8]) -> Result<(), TraceError>;
    let readers: [(&str, String, Read); 5] = [
        ("i.gz", long(INVOCATIONS, |i| format!("o,a,f{i},http,{i},0,1")), |bytes| {
            azure_2019::read_invocations(bytes, "i.gz").map(drop)
        }),
        ("d.gz", long(DURATIONS, |i| format!("o,a,f{i},1,2,10,20,40,100,{i}")), |bytes| {
            azure_2019::read_durations(bytes, "d.gz").map(drop)
        }),
        ("m.gz", long(MEMORY, |i| format!("o,a{i},90,91,95,100,105,110,120,{i}")), |bytes| {
            azure_2019::read_memory(bytes, "m.gz").map(drop)
        }),
        ("c.gz", long("app,func,end_timestamp,duration", |i| format!("a,f,{i}.5,0.25")), |bytes| {
            azure_2021::read_invocations(bytes, "c.gz").map(drop)
        }),
        (
            "h.gz",
            long("date,1---2---pool-300-128", |i| {
                let (hour, minute) = (i / 60 % 24, i % 60);
                format!("2016-07-{:02} {hour:02}:{minute:02}:00,{i}", 1 + i / 1440)
            }),
            |bytes| huawei::read_requests(bytes, "h.gz").map(drop),
        ),
    ];
    for (name, text, read) in readers {
        let whole = packed(&text);
        read(&whole).unwrap();
        // In the first line, in the middle, in the last bytes of data, in the checksum at the end.
        for cut in [12, whole.len() / 2, whole.len() - 9, whole.len() - 3] {
            let error = read(&whole[..cut]).err().unwrap();
            assert!(matches!(error, TraceError::Damaged { .. }), "{name} at {cut}: {error}");
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("{name}: the compressed data is truncated")),
                "{text}"
            );
            assert!(error.hint().unwrap().contains("download the file again"));
        }
        let mut bent = whole.clone();
        bent[whole.len() / 2] ^= 0x10;
        assert!(read(&bent).is_err(), "{name}: a changed byte is not detected");
    }
}

#[test]
fn a_truncated_companion_is_not_reported_as_missing() {
    let directory = small_trace();
    let durations = directory.path().join("function_durations_percentiles.anon.d01.csv");
    fs::write(&durations, &packed(DURATIONS)[..15]).unwrap();
    let source = file(directory.path().to_owned(), ReadOptions::default());
    let error = source.open(Seed::new(1)).err().unwrap();
    assert!(matches!(error, TraceError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("function_durations_percentiles"), "{error}");
}

fn opened(path: &Path, options: ReadOptions) -> String {
    refused(file(path.to_owned(), options).open(Seed::new(1)).map(drop))
}

#[test]
fn an_option_without_effect_is_rejected() {
    let usual = ReadOptions::default;
    let placement = ReadOptions { placement: Placement::Bursty, ..usual() };
    let caps = ReadOptions { caps: Some(Caps::default()), ..usual() };
    let scale = ReadOptions { huawei_scale: 0.5, ..usual() };
    let at_once = ReadOptions { calls_at_once: Some(Interval { low: 1.0, high: 2.0 }), ..usual() };
    let skip = ReadOptions { skip_incomplete: true, ..usual() };
    let overlay = ReadOptions { overlay_minutes: Some(60), ..usual() };
    let directory = tempfile::tempdir().unwrap();
    let calls = directory.path().join("calls.csv");
    fs::write(&calls, "app,func,end_timestamp,duration\na,f,3,1\n").unwrap();
    let own = directory.path().join("own.wf");
    let settings = AzureLikeSettings { functions: 3, ..AzureLikeSettings::default() };
    let mut generated = Source::AzureLike(settings).open(Seed::new(1)).unwrap();
    native::write_file(&own, &mut *generated).unwrap();
    for path in [&calls, &own] {
        for (options, name) in [
            (&placement, "placement"),
            (&caps, "caps"),
            (&scale, "huawei_scale"),
            (&at_once, "calls_at_once"),
            (&skip, "skip_incomplete"),
            (&overlay, "overlay_minutes"),
        ] {
            let text = opened(path, options.clone());
            assert!(text.contains(&format!("option {name} has no effect on this trace")), "{text}");
        }
    }
    let small = small_trace();
    assert!(opened(small.path(), scale).contains("it applies to Huawei's tables"));
    let requests = directory.path().join("requests.csv");
    fs::write(&requests, "date,1---2---p-300-128\n2016-07-01 00:05:00,1\n").unwrap();
    assert!(opened(&requests, skip).contains("it applies to Azure's three tables of 2019"));
    let odd = ReadOptions { calls_at_once: Some(Interval { low: 3.0, high: 2.0 }), ..usual() };
    assert!(opened(&requests, odd).starts_with("calls_at_once is 3 to 2, allowed is two numbers"));
    let both = ReadOptions { huawei_scale: 0.5, ..at_once };
    assert!(opened(&requests, both).contains("without caps and huawei_scale"));
    let none = ReadOptions { overlay_minutes: Some(0), ..usual() };
    assert_eq!(opened(small.path(), none), "overlay_minutes is 0, allowed is at least one minute");
    let late = ReadOptions { window_minutes: Some((3, 9)), ..usual() };
    assert_eq!(
        opened(small.path(), late),
        "window_minutes is 3 to 9 of 3 minutes, allowed is a window that begins inside the trace"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn readers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = azure_2019::read_invocations(&bytes[..], "x");
        let _ = azure_2021::read_invocations(&bytes[..], "x");
        let _ = huawei::read_requests(&bytes[..], "x");
        let _ = native::Reader::new(&bytes[..], "x");
    }
}
