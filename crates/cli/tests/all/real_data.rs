//! The order that must come out on real calls, else the model is wrong. The data is not part of the
//! repository: `WINDFALL_DATA` says where it lies, and without it these tests say that they were skipped.

use std::path::PathBuf;

use serde_json::Value;

use super::comparison::{SIZE_ONCE, nobody_grants_less_than_is_used, number, policy, rows};
use super::program::{Place, root};

const TRACE: &str = "azure2019-joint-500fn-8h";

fn trace() -> Option<PathBuf> {
    let data = std::env::var_os("WINDFALL_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = data.join(TRACE);
    if path.exists() {
        return Some(path);
    }
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    {
        eprintln!("skipped: {} is not there; set WINDFALL_DATA", path.display());
    }
    None
}

/// Compares all policies at one load on these minutes of the real trace.
fn compared(minutes: &str, load: &str) -> Option<Value> {
    let path = trace()?;
    let place = Place::new();
    let path = path.to_str().expect("a path that can be typed");
    let words = format!("compare --format json --seeds 1 --loads {load} --minutes {minutes}");
    Some(place.run(&words, &["--trace", path]).json())
}

fn of<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter().find(|row| policy(row) == name).expect("the policy ran")
}

fn the_order_comes_out(rows: &[Value]) {
    nobody_grants_less_than_is_used(rows);
    let (oracle, greedy) = (of(rows, "oracle"), of(rows, "greedy"));
    for row in rows.iter().filter(|row| SIZE_ONCE.contains(&policy(row))) {
        for key in ["core_seconds_granted", "slowdown_p99"] {
            let (least, found) = (number(oracle, key), number(row, key));
            assert!(least <= found, "{key}: oracle {least}, {} {found}", policy(row));
        }
    }
    let (histogram, random) = (of(rows, "histogram"), of(rows, "safeguard-random"));
    for key in ["core_seconds_granted", "slowdown_p99"] {
        let (better, worse) = (number(histogram, key), number(random, key));
        assert!(better <= worse, "{key}: histogram {better}, safeguard-random {worse}");
    }
    // Those that size by mean use slow calls down more often still, and say so on their pages.
    let is_lighter = |row: &&Value| !["greedy", "vpa", "autopilot"].contains(&policy(row));
    for row in rows.iter().filter(is_lighter) {
        let (most, found) = (number(greedy, "violation_share"), number(row, "violation_share"));
        assert!(most > found, "violations: greedy {most}, {} {found}", policy(row));
    }
}

#[test]
fn ten_minutes_of_real_calls_bring_the_expected_order() {
    if let Some(json) = compared("0-10", "0.8") {
        the_order_comes_out(rows(&json));
    }
}
