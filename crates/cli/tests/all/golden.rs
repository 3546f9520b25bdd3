//! Outputs that must not change by accident, compared byte for byte: journals of tiny scenarios, what `explain` prints
//! for them, and every help text. `cargo xtask bless` rewrites the files under `tests/golden`.

use std::fs;
use std::path::PathBuf;

use super::program::{Place, root};
use super::streams::COMMANDS;

/// Gives leave to rewrite a file instead of comparing with it.
const BLESS: &str = "WINDFALL_BLESS";

/// A journal is for people to read the difference of; larger ones are not read.
const LARGEST: usize = 60_000;

/// Whether files may be rewritten.
fn is_blessing() -> bool {
    std::env::var_os(BLESS).is_some_and(|value| value == "1")
}

fn file(name: &str) -> PathBuf {
    root().join("tests/golden").join(name)
}

/// `found` must be what the file `name` holds.
#[track_caller]
fn compare(name: &str, found: &str) {
    assert!(found.len() < LARGEST, "{name} would have {} bytes", found.len());
    let path = file(name);
    if is_blessing() {
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder can be made");
        fs::write(&path, found).expect("a golden file can be written");
        return;
    }
    let expected = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("tests/golden/{name}: {error}; run `cargo xtask bless`"));
    if expected == found {
        return;
    }
    let differs = expected.lines().zip(found.lines()).position(|(old, new)| old != new);
    let line = differs.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    let shown = |text: &str| text.lines().nth(line).unwrap_or("(nothing)").to_owned();
    panic!(
        "tests/golden/{name} line {}: expected\n  {}\nfound\n  {}\nif that is meant to be, run \
         `cargo xtask bless` and review the difference",
        line + 1,
        shown(&expected),
        shown(found)
    );
}

/// Runs `policy` on `tests/golden/<scenario>.toml` and compares its journal and one story from it.
fn journal(scenario: &str, policy: &str, question: &str) {
    let place = Place::new();
    place.write("scenario.toml", fs::read(file(&format!("{scenario}.toml"))).expect("committed"));
    let run = format!("simulate --scenario scenario.toml --policy {policy} --load 1 --out r");
    place.run(&run, &[]).done();
    compare(&format!("{scenario}.jsonl"), &place.read("r/journal.jsonl"));
    let story = place.run(&format!("explain r {question}"), &[]).done().stdout;
    compare(&format!("{scenario}.explain.txt"), &story);
}

#[test]
fn golden_journal_of_harvesting_and_reclaiming() {
    journal("harvest", "libra", "call 10");
}

#[test]
fn golden_journal_of_ticks_that_size_capacity() {
    journal("staffing", "queueing", "tick 1");
}

#[test]
fn golden_journal_of_lost_nodes_and_blind_sensors() {
    journal("faults", "histogram", "call 3");
}

#[test]
fn golden_help_of_every_command() {
    let place = Place::new();
    for command in COMMANDS {
        let help = place.run(&format!("{command} --help"), &[]).done().stdout;
        let name = format!("windfall {command}").trim().replace(' ', "-");
        compare(&format!("help/{name}.txt"), &help);
    }
}

#[test]
fn golden_list_of_policies() {
    compare("policies.txt", &Place::new().run("policies", &[]).done().stdout);
}
