//! Commands that read what other commands wrote.

use serde_json::Value;

use super::comparison::rows;
use super::program::{Place, SMALL};

#[test]
fn a_simulated_run_can_be_explained_and_reported() {
    let place = Place::new();
    let summary =
        place.run("simulate --policy ensure --load 0.9 --out r --format json", &SMALL).json();
    assert_eq!(place.files(), ["r/journal.jsonl", "r/report.html", "r/summary.json"]);

    let call = place.run("explain r call 7 --format json", &[]).json();
    assert_eq!(call["call"]["id"], 7);
    let story = place.run("explain r call 7", &[]).done().stdout;
    for word in ["call 7", "wanted", "granted"] {
        assert!(story.contains(word), "`{word}` is missing in: {story}");
    }
    assert_eq!(place.run("explain r call:7", &[]).done().stdout, story);
    assert_eq!(place.run("explain r 7", &[]).done().stdout, story);
    assert_eq!(place.run("explain r/journal.jsonl 7", &[]).done().stdout, story);

    let tick = place.run("explain r tick 12 --format json", &[]).json();
    assert_eq!(tick["tick"]["number"], 12);
    let story = place.run("explain r tick 12", &[]).done().stdout;
    assert!(story.contains("tick 12"), "{story}");

    std::fs::remove_file(place.path("r/report.html")).unwrap();
    let mut again = place.run("report r --format json", &[]).json();
    assert!(place.read("r/report.html").starts_with("<!"));
    for (key, value) in again.as_object_mut().expect("a row") {
        assert_eq!(*value, summary[key], "{key} is not what the run said");
    }
}

#[test]
fn a_run_with_a_warm_up_is_reported_as_it_was_printed() {
    let place = Place::new();
    let words = "simulate --policy histogram --warm-up 2 --out r --format json";
    let summary = place.run(words, &SMALL).json();
    let again = place.run("report r --format json", &[]).json();
    assert_ne!(summary["warm_up_calls"], 0);
    for key in ["calls", "warm_up_calls", "slowdown_p99", "core_seconds_granted"] {
        assert_eq!(again[key], summary[key], "{key} is not what the run said");
    }
}

#[test]
fn a_comparison_can_be_reported_again() {
    let place = Place::new();
    let words = "compare --policies fixed,libra --loads 0.8 --seeds 2 --out c --format json";
    let first = place.run(words, &SMALL).json();
    let page = place.read("c/report.html");
    let again = place.run("report c --format json", &[]).json();
    assert_eq!(rows(&first), rows(&again));
    assert!(place.read("c/report.html") == page, "the report is another one");
    place.run("report c --out elsewhere.html", &[]).done();
    assert!(place.read("elsewhere.html") == page, "the report is another one");
}

#[test]
fn a_generated_trace_in_a_file_gives_the_same_comparison() {
    let place = Place::new();
    let written = place.run("trace generate own.wf --seed 2 --format json", &SMALL).json();
    let seen = place.run("trace inspect own.wf --format json --html own.html", &[]).json();
    assert_eq!(written["calls"], seen["load"]["calls"]);
    assert!(place.read("own.html").starts_with("<!"));
    place.run("trace convert own.wf again.wf", &[]).done();
    let (own, again) =
        (std::fs::read(place.path("own.wf")).unwrap(), std::fs::read(place.path("again.wf")));
    assert!(own == again.unwrap(), "converting our own format changes it");

    let words = "compare --loads 0.8 --seeds 2-2 --format json --out";
    let generated = place.run(&format!("{words} generated"), &SMALL).json();
    let read = place.run(&format!("{words} read --trace again.wf"), &[]).json();
    assert_eq!(rows(&generated), rows(&read));
}

#[test]
fn a_foreign_trace_and_its_conversion_give_the_same_calls() {
    let place = Place::new();
    place.write("calls.csv", "app,func,end_timestamp,duration\na,f,1.5,0.5\na,g,3,1\na,f,4,2\n");
    place.run("trace convert calls.csv own.wf --seed 1", &[]).done();
    let words = "compare --policies fixed --loads 0.5 --seeds 1 --format json";
    let foreign = place.run(&format!("{words} --trace calls.csv --out f"), &[]).json();
    let own = place.run(&format!("{words} --trace own.wf --out o"), &[]).json();
    assert_eq!(rows(&foreign), rows(&own));
}

#[test]
fn a_journal_names_a_command_that_runs() {
    let place = Place::new();
    place.run("simulate --policy greedy --load 1.1 --seed 3 --out r", &SMALL).done();
    let journal = place.read("r/journal.jsonl");
    let manifest: Value =
        serde_json::from_str(journal.lines().next().expect("a manifest")).unwrap();
    let command = manifest["manifest"]["command"].as_str().expect("a command");
    let words = command.strip_prefix("windfall ").expect("our own command");
    place.run(&format!("{words} --out again"), &SMALL).done();
    assert!(place.read("again/journal.jsonl") == journal, "the command gives another journal");
}
