//! A trace that is wrong is refused with its file, place, value and what to do, and leaves nothing
//! behind: neither a report nor half of one.

use std::io::Write;

use super::program::{Ended, Place};

const INVOCATIONS: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n\
    o,a,f,http,2,0,40\no,a,g,timer,1,1,1\n";
const DURATIONS: &str = "HashOwner,HashApp,HashFunction,percentile_Average_0,percentile_Average_1,\
    percentile_Average_25,percentile_Average_50,percentile_Average_75,percentile_Average_99,\
    percentile_Average_100\n\
    o,a,f,1,2,10,20,40,100,2000\no,a,g,1,2,10,20,40,100,200\n";
const MEMORY: &str = "HashOwner,HashApp,AverageAllocatedMb_pct1,AverageAllocatedMb_pct5,\
    AverageAllocatedMb_pct25,AverageAllocatedMb_pct50,AverageAllocatedMb_pct75,\
    AverageAllocatedMb_pct95,AverageAllocatedMb_pct99,AverageAllocatedMb_pct100\n\
    o,a,90,91,95,100,105,110,120,150\n";
const CALLS: &str = "app,func,end_timestamp,duration\na,f,1.5,0.5\na,f,3,1\n";
const REQUESTS: &str = "date,1---2---pool-300-128\n2016-07-01 00:00:00,1\n2016-07-01 00:05:00,2\n";

/// The three tables of 2019, with one of them replaced.
fn tables(place: &Place, replaced: &str, text: &str) {
    for (name, whole) in
        [("invocations.csv", INVOCATIONS), ("durations.csv", DURATIONS), ("memory.csv", MEMORY)]
    {
        place.write(&format!("t/{name}"), if name == replaced { text } else { whole });
    }
}

/// Compares, simulates and converts the trace at `t`; all must refuse it alike and write nothing.
#[track_caller]
fn refuses(place: &Place, parts: &[&str]) {
    let before = place.files();
    let compared = place.run("compare --trace t --seeds 1 --loads 0.8 --journals --out o", &[]);
    let simulated = place.run("simulate --trace t --out o", &[]);
    let converted = place.run("trace convert t t.wf", &[]);
    let printed: Vec<String> =
        [compared, simulated, converted].map(|ended| problem(ended.refused(parts))).into();
    assert_eq!(printed[0], printed[1]);
    assert_eq!(printed[1], printed[2]);
    assert_eq!(place.files(), before, "nothing may be left behind");
}

/// The output from `error:` on; notices come before it.
fn problem(ended: Ended) -> String {
    ended.stderr
}

#[test]
fn the_samples_are_fine_before_they_are_spoilt() {
    let place = Place::new();
    tables(&place, "", "");
    place.write("calls.csv", CALLS);
    place.write("requests.csv", REQUESTS);
    for trace in ["t", "calls.csv", "requests.csv"] {
        place.run("trace inspect --format json", &[trace]).done();
    }
}

#[test]
fn a_missing_column_is_named() {
    let place = Place::new();
    tables(&place, "durations.csv", &DURATIONS.replace("Average_75", "Average_3"));
    refuses(
        &place,
        &["durations.csv", "column `percentile_Average_75` is missing", "hint: supported"],
    );
    tables(&place, "memory.csv", &MEMORY.replace("Mb_pct25", "Mb_quarter"));
    refuses(&place, &["memory.csv", "column `AverageAllocatedMb_pct25` is missing", "hint: "]);
}

#[test]
fn counts_that_are_none_are_reported_with_line_and_value() {
    let place = Place::new();
    for bad in ["-1", "NaN", "many", "1.5"] {
        tables(&place, "invocations.csv", &INVOCATIONS.replace(",40\n", &format!(",{bad}\n")));
        let value = format!("found `{bad}`, allowed is a whole number");
        refuses(&place, &["invocations.csv line 2, column `3`", &value, "hint: correct the cell"]);
    }
}

#[test]
fn run_times_and_memory_that_are_no_numbers_are_refused() {
    let place = Place::new();
    tables(&place, "durations.csv", &DURATIONS.replace("40,100,200\n", "40,nan,200\n"));
    refuses(&place, &["durations.csv line 3, column `percentile_Average_99`", "`nan`", "hint: "]);
    tables(&place, "memory.csv", &MEMORY.replace("120,150", "-120,150"));
    refuses(&place, &["memory.csv line 2, column `AverageAllocatedMb_pct99`", "`-120`", "hint: "]);
}

#[test]
fn a_function_that_appears_twice_is_named() {
    let place = Place::new();
    tables(&place, "invocations.csv", &format!("{INVOCATIONS}o,a,f,http,1,1,1\n"));
    refuses(&place, &["invocations.csv line 4", "function `f` appears", "hint: remove one"]);
}

#[test]
fn a_row_that_breaks_off_is_reported_with_its_line() {
    let place = Place::new();
    tables(&place, "invocations.csv", &INVOCATIONS.replace(",timer,1,1,1", ",timer,1,1"));
    refuses(&place, &["invocations.csv line 3: the row has 6 cells, the header 7", "hint: "]);
}

#[test]
fn a_truncated_archive_is_called_so() {
    let place = Place::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(INVOCATIONS.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    tables(&place, "", "");
    std::fs::remove_file(place.path("t/invocations.csv")).unwrap();
    place.write("t/invocations.csv.gz", &packed[..packed.len() - 12]);
    refuses(
        &place,
        &["invocations.csv.gz", "truncated or damaged", "hint: download the file again"],
    );
}

#[test]
fn rows_out_of_order_are_reported_with_both_times() {
    let place = Place::new();
    place.write("t", "date,1---2---p-300-128\n2016-07-01 00:05:00,1\n2016-07-01 00:00:00,1\n");
    let both = "`2016-07-01 00:00:00` after `2016-07-01 00:05:00`";
    refuses(&place, &["t line 3", both, "hint: sort the file"]);
}

#[test]
fn impossible_single_calls_are_refused() {
    let place = Place::new();
    for (bad, column) in [("a,f,1,-2", "duration"), ("a,f,x,2", "end_timestamp")] {
        place.write("t", format!("{CALLS}{bad}\n"));
        refuses(&place, &["t line 4", &format!("column `{column}`"), "hint: correct the cell"]);
    }
}

#[test]
fn empty_foreign_and_absent_files_are_distinguished() {
    let place = Place::new();
    refuses(&place, &["error: t: cannot be read", "hint: check the path"]);
    place.write("t", "");
    refuses(&place, &["error: t: ", "hint: "]);
    place.write("t", "name,age\nkim,7\n");
    refuses(&place, &["error: t: not a trace", "hint: supported are"]);
    place.write("t", [0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe, 1, 2, 3]);
    refuses(&place, &["error: t: not a trace", "hint: supported are"]);
}

#[test]
fn a_torn_or_altered_trace_of_our_own_is_refused() {
    let place = Place::new();
    place.run("trace generate own.wf --functions 5 --minutes 2 --calls-per-hour 900", &[]).done();
    let whole = std::fs::read(place.path("own.wf")).unwrap();
    std::fs::remove_file(place.path("own.wf")).unwrap();
    place.write("t", &whole[..whole.len() - 5]);
    refuses(&place, &["error: t: ", "hint: write the trace again"]);
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    place.write("t", &altered);
    refuses(&place, &["error: t: ", "hint: write the trace again"]);
}
