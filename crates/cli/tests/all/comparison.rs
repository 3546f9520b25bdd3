//! `windfall compare --format json`, as scripts rely on it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::program::{Place, SMALL};

/// Every key that scripts rely on.
const KEYS: [&str; 23] = [
    "policy",
    "load",
    "seed",
    "calls",
    "rfet_mean",
    "slowdown_p50",
    "slowdown_p95",
    "slowdown_p99",
    "bounded_slowdown_p99",
    "violation_share",
    "harvested_violation_share",
    "cold_share",
    "oom_kills",
    "core_seconds_granted",
    "core_seconds_used",
    "mib_seconds_granted",
    "mib_seconds_used",
    "instance_seconds",
    "changes_per_hour",
    "slowdown_p999",
    "bounded_slowdown_p999",
    "core_seconds_held",
    "core_seconds_held_back",
];

/// Policies that size a call at dispatch and leave it alone.
pub(crate) const SIZE_ONCE: [&str; 7] =
    ["fixed", "safeguard-random", "histogram", "oracle", "greedy", "queueing", "keep-alive"];

pub(crate) fn rows(json: &Value) -> &Vec<Value> {
    json["rows"].as_array().expect("a comparison has rows")
}

pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("`{key}` is no number in {row}"))
}

pub(crate) fn policy(row: &Value) -> &str {
    row["policy"].as_str().expect("a policy has a name")
}

/// Nobody grants less than is used, in either resource.
pub(crate) fn nobody_grants_less_than_is_used(rows: &[Value]) {
    for row in rows {
        for resource in ["core", "mib"] {
            let granted = number(row, &format!("{resource}_seconds_granted"));
            let used = number(row, &format!("{resource}_seconds_used"));
            assert!(granted >= used * (1.0 - 1e-9), "{granted} < {used} {resource}-s: {row}");
        }
    }
}

fn compared(words: &str) -> Value {
    Place::new().run(&format!("compare --format json {words}"), &SMALL).json()
}

#[test]
fn every_policy_load_and_seed_has_a_row_with_every_key() {
    let json = compared("--loads 0.5,1.1 --seeds 2");
    let place = Place::new();
    let listed = place.run("policies --format json", &[]).json();
    let policies: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|entry| entry["default"] == true)
        .map(|entry| entry["name"].as_str().expect("a name"))
        .collect();
    assert!(policies.len() >= 12, "{policies:?}");
    let mut expected = BTreeSet::new();
    for policy in policies {
        for load in ["0.5", "1.1"] {
            for seed in ["1", "2"] {
                expected.insert(format!("{policy} {load} {seed}"));
            }
        }
    }
    let rows = rows(&json);
    let found: BTreeSet<String> =
        rows.iter().map(|row| format!("{} {} {}", policy(row), row["load"], row["seed"])).collect();
    assert_eq!(found, expected);
    assert_eq!(rows.len(), expected.len(), "no row appears twice");
    for row in rows {
        for key in &KEYS[1..] {
            assert!(number(row, key) >= 0.0, "{key}: {row}");
        }
    }
    assert!(json["report"].is_string());
}

#[test]
fn every_policy_gets_the_same_calls_and_loses_none() {
    let json = compared("--loads 0.5,1.1 --seeds 2");
    for row in rows(&json) {
        let same = rows(&json).iter().find(|other| other["seed"] == row["seed"]).expect("itself");
        assert_eq!(row["calls"], same["calls"], "{row}");
        let ends = number(row, "completed") + number(row, "failed") + number(row, "rejected");
        assert_eq!(number(row, "calls"), ends, "a call was lost or counted twice: {row}");
    }
}

#[test]
fn grants_cover_what_is_used_and_the_oracle_grants_least() {
    let json = compared(
        "--loads 0.5,0.8 --seeds 2 --policies fixed,safeguard-random,histogram,oracle,greedy,ensure,libra,queueing,keep-alive",
    );
    let rows = rows(&json);
    nobody_grants_less_than_is_used(rows);
    for row in rows.iter().filter(|row| SIZE_ONCE.contains(&policy(row))) {
        let oracle = rows
            .iter()
            .find(|other| {
                policy(other) == "oracle"
                    && other["load"] == row["load"]
                    && other["seed"] == row["seed"]
            })
            .expect("the oracle ran too");
        let (least, granted) =
            (number(oracle, "core_seconds_granted"), number(row, "core_seconds_granted"));
        assert!(least <= granted, "the oracle grants {least} core-s, more than {row}");
    }
}

#[test]
fn what_is_held_back_is_counted_where_a_policy_holds_back() {
    let json = compared("--loads 0.8 --seeds 2 --policies fixed,histogram,windfall");
    for row in rows(&json) {
        let [held, granted, held_back] =
            ["core_seconds_held", "core_seconds_granted", "core_seconds_held_back"]
                .map(|key| number(row, key));
        assert!((held - granted - held_back).abs() <= 1e-9 * held, "{row}");
        assert_eq!(held_back > 0.0, policy(row) == "windfall", "{row}");
        assert!(number(row, "slowdown_p999") >= number(row, "slowdown_p99"), "{row}");
    }
    let pairs = json["pairs"].as_array().expect("pairs");
    let cost =
        |pair: &&Value| pair["policy"] == "windfall" && pair["metric"] == "core_seconds_held";
    let over_functions = &pairs.iter().find(cost).expect("a pair")["over_functions"];
    let [low, ratio, high] = ["low", "ratio", "high"].map(|key| number(over_functions, key));
    assert!(low <= ratio && ratio <= high, "{over_functions}");
}

#[test]
fn what_is_printed_does_not_depend_on_the_format() {
    let place = Place::new();
    let words = "compare --policies fixed,histogram --loads 0.8 --seeds 1 --out o --format";
    let json = place.run(&format!("{words} json"), &SMALL).json();
    let csv = place.run(&format!("{words} csv"), &SMALL).done().stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + rows(&json).len());
    assert!(lines[0].starts_with(&KEYS.join(",")), "{}", lines[0]);
    for (row, line) in rows(&json).iter().zip(&lines[1..]) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!((cells[0], cells[3]), (policy(row), row["calls"].to_string().as_str()));
    }
    let text = place.run(&format!("{words} text"), &SMALL).done().stdout;
    assert!(text.contains("histogram") && text.contains("report: o/report.html"), "{text}");
    let markdown = place.run(&format!("{words} markdown"), &SMALL).done().stdout;
    assert!(markdown.lines().any(|line| line.starts_with('|')), "{markdown}");
}

#[test]
fn resolved_settings_are_printed_and_nothing_is_run() {
    let place = Place::new();
    place.write("s.toml", "name = \"mine\"\n[cluster]\nloads = [0.3]\n[run]\nseeds = [4]\n");
    let words = "compare --scenario s.toml --show-settings --policies libra --loads 0.9,1";
    let json = place.run(words, &SMALL).json();
    assert_eq!(json["name"], "mine");
    assert_eq!(json["loads"], serde_json::json!([0.9, 1.0]), "a flag is stronger than the file");
    assert_eq!(json["seeds"], serde_json::json!([4]), "the file is stronger than the default");
    assert_eq!(json["policies"], serde_json::json!(["libra"]));
    assert_eq!(json["trace"]["functions"], 10);
    assert_eq!(place.files(), ["s.toml"]);
}
