//! Reading, refusing, repeating: the crate seen from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use windfall_core::{
    Allocation, Arrival, CallDemand, ColdStart, Duration, FunctionId, FunctionProfile, Mebibytes,
    MilliCpu, Seed, Timestamp, Trigger, Workload,
};
use windfall_trace::{
    AzureLikeSettings, Caps, Placement, ReadOptions, Source, TraceError, azure_2019, azure_2021,
    huawei, native, summarise,
};

#[expect(clippy::disallowed_methods, reason = "a test may be told where the data lies")]
fn data(set: &str) -> Option<PathBuf> {
    let root = std::env::var("WINDFALL_DATA").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(set);
    if !path.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: {} is not there; set WINDFALL_DATA", path.display());
        }
        return None;
    }
    Some(path)
}

fn file(path: PathBuf, options: ReadOptions) -> Source {
    Source::File { path, options }
}

fn all(workload: &mut dyn Workload) -> Vec<Arrival> {
    std::iter::from_fn(|| workload.next_arrival()).collect()
}

fn functions_of(workload: &dyn Workload, trigger: Trigger) -> usize {
    workload.functions().iter().filter(|f| f.trigger == trigger).count()
}

#[test]
fn the_500_functions_are_read_whole_and_in_order() {
    let Some(path) = data("azure2019-joint-500fn-8h") else { return };
    let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
    assert_eq!(workload.functions().len(), 500);
    let counts = [
        (Trigger::Timer, 247),
        (Trigger::Http, 139),
        (Trigger::Queue, 69),
        (Trigger::Orchestration, 25),
        (Trigger::Event, 14),
        (Trigger::Storage, 5),
        (Trigger::Other, 1),
    ];
    for (trigger, count) in counts {
        assert_eq!(functions_of(&*workload, trigger), count, "{trigger:?}");
    }
    let (mut calls, mut last) = (0, Timestamp::ZERO);
    while let Some(arrival) = workload.next_arrival() {
        assert!(arrival.at >= last);
        assert!(arrival.demand.rise <= arrival.demand.fastest());
        assert!(arrival.demand.memory_base <= arrival.demand.memory_peak);
        last = arrival.at;
        calls += 1;
    }
    assert_eq!(calls, 3_037_902);
    assert!(last <= workload.horizon());
}

#[test]
fn the_1000_functions_are_read_whole() {
    let Some(path) = data("azure2019-joint-1000fn-60min") else { return };
    let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
    let counts = [
        (Trigger::Timer, 414),
        (Trigger::Http, 254),
        (Trigger::Queue, 133),
        (Trigger::Orchestration, 72),
        (Trigger::Other, 64),
        (Trigger::Event, 37),
        (Trigger::Storage, 26),
    ];
    for (trigger, count) in counts {
        assert_eq!(functions_of(&*workload, trigger), count, "{trigger:?}");
    }
    assert_eq!(all(&mut *workload).len(), 85_470);
}

#[test]
fn the_calls_of_2021_and_the_tables_of_huawei_are_read() {
    if let Some(path) = data("azure2021-invocations-tiny") {
        let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
        assert_eq!(workload.functions().len(), 31);
        let arrivals = all(&mut *workload);
        assert_eq!(arrivals.len(), 199);
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    }
    for (table, functions) in [("datacentre_1.csv.gz", 17), ("datacentre_2.csv.gz", 16)] {
        let Some(path) = data("huawei2025-requests-5min") else { return };
        let window_minutes = Some((0, 60));
        let options = ReadOptions { window_minutes, ..ReadOptions::default() };
        let opened = file(path.join(table), options).open_with_notices(Seed::new(1)).unwrap();
        let mut workload = opened.workload;
        assert_eq!(workload.functions().len(), functions);
        assert_eq!(opened.notices.len(), if functions == 16 { 3 } else { 1 });
        assert!(all(&mut *workload).is_sorted_by_key(|arrival| arrival.at));
    }
}

const INVOCATIONS: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n\
    o,a,f,http,2,0,40\no,a,g,timer,1,1,1\no,b,h,queue,0,900,0\n";
const DURATIONS: &str = "HashOwner,HashApp,HashFunction,percentile_Average_0,percentile_Average_1,\
    percentile_Average_25,percentile_Average_50,percentile_Average_75,percentile_Average_99,\
    percentile_Average_100\n\
    o,a,f,1,2,10,20,40,100,2000\no,a,g,1,2,10,20,40,100,200\no,b,h,1,2,10,20,40,9000,90000\n";
const MEMORY: &str = "HashOwner,HashApp,AverageAllocatedMb_pct1,AverageAllocatedMb_pct5,\
    AverageAllocatedMb_pct25,AverageAllocatedMb_pct50,AverageAllocatedMb_pct75,\
    AverageAllocatedMb_pct95,AverageAllocatedMb_pct99,AverageAllocatedMb_pct100\n\
    o,a,90,91,95,100,105,110,120,150\no,b,90,91,95,100,105,110,120,150\n";

fn small_trace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text| fs::write(directory.path().join(name), text).unwrap();
    put("invocations_per_function_md.anon.d01.csv", INVOCATIONS);
    put("function_durations_percentiles.anon.d01.csv", DURATIONS);
    put("app_memory_percentiles.anon.d01.csv", MEMORY);
    directory
}

#[test]
fn a_restart_equals_a_fresh_open_for_every_placement() {
    let directory = small_trace();
    for placement in [Placement::Uniform, Placement::Bursty] {
        for caps in [None, Some(Caps { busy: 0.01, busy_in_a_minute: 0.1 })] {
            let options = ReadOptions { placement, caps, ..ReadOptions::default() };
            let source = file(directory.path().to_owned(), options);
            let mut first = source.open(Seed::new(1)).unwrap();
            let other = all(&mut *first);
            first.restart(Seed::new(2));
            let mut fresh = source.open(Seed::new(2)).unwrap();
            assert_eq!(first.functions(), fresh.functions());
            let again = all(&mut *first);
            assert_eq!(again, all(&mut *fresh));
            assert_ne!(again, other);
            assert!(again.is_sorted_by_key(|arrival| arrival.at));
            assert_eq!(again.len() < 945, caps.is_some());
        }
    }
}

#[test]
fn a_subset_keeps_the_draws_of_its_functions() {
    let directory = small_trace();
    let open = |options| file(directory.path().to_owned(), options).open(Seed::new(5)).unwrap();
    let mut whole = open(ReadOptions::default());
    let mut part = open(ReadOptions { without_busiest: true, ..ReadOptions::default() });
    assert_eq!(part.functions(), &whole.functions()[..2]);
    let kept: Vec<Arrival> = all(&mut *whole).into_iter().filter(|a| a.function.0 < 2).collect();
    assert_eq!(all(&mut *part), kept);
}

#[test]
fn a_generated_workload_repeats_and_another_seed_differs() {
    let settings = AzureLikeSettings { functions: 60, ..AzureLikeSettings::default() };
    let source = Source::AzureLike(settings);
    let mut first = source.open(Seed::new(3)).unwrap();
    first.restart(Seed::new(4));
    let mut fresh = source.open(Seed::new(4)).unwrap();
    assert_eq!(first.functions(), fresh.functions());
    assert_eq!(all(&mut *first), all(&mut *fresh));
}

#[test]
fn the_default_hour_has_the_size_and_skew_it_promises() {
    for seed in 1..6 {
        let source = Source::AzureLike(AzureLikeSettings::default());
        let mut workload = source.open(Seed::new(seed)).unwrap();
        let summary = summarise(&mut *workload, &mut |_| {});
        let calls = summary.load.calls;
        assert!((90_000..250_000).contains(&calls), "seed {seed}: {calls} calls");
        assert!(summary.top[0].share < 0.35, "seed {seed}: top share {}", summary.top[0].share);
        let timers = functions_of(&*workload, Trigger::Timer);
        assert!((75..125).contains(&timers), "seed {seed}: {timers} timers");
        assert!(summary.text().lines().all(|line| line.chars().count() <= 79));
    }
}

fn refused<T>(result: Result<T, TraceError>) -> String {
    let error = result.err().expect("bad input is refused");
    error.to_string()
}

#[test]
fn bad_tables_are_refused_by_place_and_value() {
    let invocations = |text: &str| refused(azure_2019::read_invocations(text.as_bytes(), "i.csv"));
    assert_eq!(invocations(""), "i.csv: holds no rows");
    assert_eq!(invocations("HashFunction,Trigger,1\n"), "i.csv: holds no rows");
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
        "i.csv line 3: function `f` appears for the second time"
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
fn missing_functions_and_torn_archives_are_refused() {
    let directory = small_trace();
    let durations = directory.path().join("function_durations_percentiles.anon.d01.csv");
    fs::write(&durations, DURATIONS.replace("o,b,h,", "o,b,other,")).unwrap();
    let source = file(directory.path().to_owned(), ReadOptions::default());
    let error = source.open(Seed::new(1)).err().unwrap();
    assert!(error.to_string().contains("has no row for function `h`"), "{error}");
    assert!(error.hint().unwrap().contains("skip_incomplete"));

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(INVOCATIONS.repeat(50).as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let torn = refused(azure_2019::read_invocations(&packed[..packed.len() - 20], "i.csv.gz"));
    assert!(torn.starts_with("i.csv.gz"), "{torn}");
}

fn profile() -> FunctionProfile {
    FunctionProfile {
        name: "f".into(),
        application: "a".into(),
        trigger: Trigger::Http,
        runtime: "python".into(),
        reservation: Allocation::new(1000, 256),
        cold_start: ColdStart { median: Duration::from_millis(500), sigma: 0.3 },
    }
}

fn written(gaps: &[(u64, u64, Option<f32>)]) -> (Vec<Arrival>, Vec<u8>) {
    let mut at = Timestamp::ZERO;
    let arrivals: Vec<Arrival> = gaps
        .iter()
        .map(|&(gap, number, input)| {
            at += Duration::from_nanos(gap);
            let demand = CallDemand {
                work: number,
                fixed: Duration::from_nanos(number >> 3),
                parallelism: MilliCpu::new(number as u32),
                memory_base: Mebibytes::new((number >> 7) as u32),
                memory_peak: Mebibytes::MAX,
                rise: Duration::from_nanos(number >> 1),
                jumps: number & 1 == 1,
                cycles: number as u8,
                shape: (number >> 5) as u32,
                input,
            };
            Arrival { at, function: FunctionId(0), demand }
        })
        .collect();
    let mut writer = native::Writer::new(Vec::new(), &[profile()], Timestamp::MAX).unwrap();
    for arrival in &arrivals {
        writer.push(arrival).unwrap();
    }
    (arrivals, writer.finish().unwrap())
}

fn read(bytes: &[u8]) -> Result<Vec<Arrival>, TraceError> {
    let mut reader = native::Reader::new(bytes, "n")?;
    let mut arrivals = Vec::new();
    while let Some(arrival) = reader.read_arrival()? {
        arrivals.push(arrival);
    }
    Ok(arrivals)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_native_trace_comes_back_exactly(gaps in prop::collection::vec((0u64..1 << 40, any::<u64>(), prop::option::of(-1e30f32..1e30)), 0..200)) {
        let (arrivals, bytes) = written(&gaps);
        prop_assert_eq!(read(&bytes).unwrap(), arrivals);
    }

    #[test]
    fn a_torn_or_bent_native_trace_is_refused(numbers in prop::collection::vec(any::<u64>(), 1..50), place: prop::sample::Index, bit in 0u8..8) {
        let gaps: Vec<_> = numbers.iter().map(|&number| (number >> 30, number, None)).collect();
        let (_, mut bytes) = written(&gaps);
        let place = place.index(bytes.len());
        prop_assert!(read(&bytes[..place]).is_err(), "cut at {}", place);
        bytes[place] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err(), "bent at {}", place);
    }

    #[test]
    fn readers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = azure_2019::read_invocations(&bytes[..], "x");
        let _ = azure_2021::read_invocations(&bytes[..], "x");
        let _ = huawei::read_requests(&bytes[..], "x");
        let _ = read(&bytes);
    }
}
