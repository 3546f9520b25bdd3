//! Reproductions: the keys that scripts rely on, and what is said where the data is not at hand.

use super::comparison::number;
use super::program::{Ended, Place};

#[test]
fn faasrm_goes_on_with_generated_calls_and_says_so() {
    let place = Place::new();
    let words =
        "reproduce faasrm --quick --published-only --seeds 1 --episodes 1 --out o --format json";
    let words: Vec<&str> = words.split(' ').collect();
    let output = place.command(&words).env("WINDFALL_DATA", place.path("nowhere")).output();
    let ended = Ended::of(output.expect("the program can be started"));
    for part in ["Azure Functions 2019", "IntelliSys-Lab/Freyr-sim", "--sample DIR", "GENERATED"] {
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
    }
    let json = ended.json();
    let rows = json["published"].as_array().expect("rows");
    let policies: Vec<&str> = rows.iter().filter_map(|row| row["policy"].as_str()).collect();
    for policy in [
        "fixed",
        "greedy-1",
        "greedy-2",
        "ensure",
        "safeguard-random",
        "safeguard-top",
        "oracle",
        "faasrm",
    ] {
        assert!(policies.contains(&policy), "{policy} is not in {policies:?}");
    }
    assert!(rows.iter().all(|row| row["rfet_mean"].is_f64() && row["p98_s"].is_f64()));
    assert_eq!(rows[0]["rfet_mean"], 1.0, "fixed is its own baseline");
    assert!(json["workload"].as_str().is_some_and(|label| label.contains("GENERATED")));
    assert!(place.read("o/report.html").contains("GENERATED"));
}

#[test]
fn faasrm_shows_what_the_saving_hangs_on() {
    let place = Place::new();
    let words = "reproduce faasrm --quick --no-agent --seeds 1 --episodes 1 --minutes 2 --out o --format json";
    let words: Vec<&str> = words.split(' ').collect();
    let output = place.command(&words).env("WINDFALL_DATA", place.path("nowhere")).output();
    let json = Ended::of(output.expect("the program can be started")).json();
    let variants = json["variants"].as_array().expect("variants");
    let names: Vec<&str> = variants.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["full", "capped", "no-sleepers"]);
    for variant in variants {
        let [load, low, saving, high] =
            ["load", "saving_low", "saving_percent", "saving_high"].map(|key| number(variant, key));
        assert_eq!(load, 0.8);
        assert!(low <= saving && saving <= high && high <= 100.0, "{variant}");
    }
    assert!(place.read("o/report.html").contains("what it hangs on"));
}

#[test]
fn a_sample_that_is_not_one_is_refused() {
    let place = Place::new();
    place.write("d/invocation_1000fn.csv.gz", "HashFunction,Trigger,1\n0,http,x\n");
    place
        .run("reproduce faasrm --sample d", &[])
        .refused(&["d: not a trace", "memory_1000fn.csv.gz"]);
    place.write("d/duration_1000fn.csv.gz", "HashFunction\n");
    place.write("d/memory_1000fn.csv.gz", "HashFunction\n");
    place.run("reproduce faasrm --sample d", &[]).refused(&["line 2, column `1`: found `x`"]);
}

#[test]
fn ece471_has_its_golden_scores_and_every_learner() {
    let place = Place::new();
    let words = "reproduce ece471 --quick --seeds 2 --only q-learning --format json --out o";
    let json = place.run(words, &[]).json();
    for (key, score) in [
        ("dp", 190.22),
        ("greedy", 189.35),
        ("mm1", 185.36),
        ("hpa80", 181.75),
        ("hpa70", 179.22),
        ("hpa60", 170.38),
    ] {
        let found = json["golden"][key].as_f64().expect("a golden score");
        assert!((found - score).abs() < 0.005, "{key} is {found}");
    }
    let rows = json["algorithms"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["name"], &rows[0]["seeds"]), (&"q-learning".into(), &2.into()));
    assert!(rows.iter().all(|row| row["mean"].is_f64() && row["sd"].is_f64()));
    assert_eq!(json["continued"]["identical"], true);
    assert_eq!(json["designs"].as_array().map(Vec::len), Some(4));
    assert!(json["duel"]["trained"].as_f64() > json["duel"]["random"].as_f64());
    assert!(place.read("o/report.html").contains("Task 4.1: training curves"));
    place.run("reproduce ece471 --only sarsa", &[]).refused(&["sarsa", "ppo/500", "dqn/50"]);
}
