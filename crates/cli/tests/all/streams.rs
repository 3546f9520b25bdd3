//! Standard output is data, standard error is conversation, help fits the screen.

use std::io::Read;
use std::process::Stdio;

use super::program::{Ended, Place, SMALL};

/// Every command, as it is typed.
pub(crate) const COMMANDS: &[&str] = &[
    "",
    "up",
    "top",
    "db",
    "db check",
    "db export",
    "compare",
    "simulate",
    "report",
    "explain",
    "capacity",
    "frontier",
    "fn",
    "fn new",
    "fn deploy",
    "fn invoke",
    "fn list",
    "fn get",
    "fn logs",
    "fn rm",
    "load",
    "serve",
    "doctor",
    "trace",
    "trace inspect",
    "trace generate",
    "trace convert",
    "bench",
    "bench simulator",
    "bench learning",
    "bench scaling",
    "bench platform",
    "bench admission",
    "bench daemon",
    "calibrate",
    "reproduce",
    "reproduce ece471",
    "reproduce knative-concurrency",
    "reproduce faasrm",
    "reproduce scaling",
    "reproduce simppo",
    "conformance",
    "train",
    "evaluate",
    "env",
    "policy",
    "policy inspect",
    "policies",
    "completions",
];

#[test]
fn short_help_fits_a_screen() {
    let place = Place::new();
    for command in COMMANDS {
        let help = place.run(&format!("{command} -h"), &[]).done().stdout;
        let wide = help.lines().find(|line| line.chars().count() > 79);
        assert_eq!(wide, None, "windfall {command} -h is wider than 79 columns");
        let lines = help.lines().count();
        assert!(lines <= 50, "windfall {command} -h has {lines} lines");
    }
}

#[test]
fn every_command_that_is_listed_is_tested() {
    let place = Place::new();
    for command in ["", "fn", "trace", "bench", "policy", "reproduce"] {
        let help = place.run(&format!("{command} -h"), &[]).done().stdout;
        let list = help.split("Commands:\n").nth(1).expect("commands are listed");
        // Names stand two columns in; what they mean, and where that goes on, stands further.
        let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
            line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next()
        });
        for name in names {
            let full = format!("{command} {name}");
            assert!(name == "help" || COMMANDS.contains(&full.trim()), "{full} is not tested");
        }
    }
}

#[test]
fn json_is_all_that_is_on_standard_output() {
    let place = Place::new();
    place.write("calls.csv", "app,func,end_timestamp,duration\na,f,1.5,0.5\na,f,3,1\n");
    let traced = "--trace calls.csv --format json";
    let simulated = place.run(&format!("simulate {traced} --out s"), &[]);
    assert!(simulated.stderr.contains("Azure Functions 2021"), "{simulated:?}");
    simulated.json();
    place.run(&format!("compare {traced} --out c --seeds 1"), &[]).json();
    let inspected = place.run("trace inspect calls.csv --format json", &[]);
    assert!(inspected.stderr.contains("Azure Functions 2021"), "{inspected:?}");
    inspected.json();
    place.run("trace convert calls.csv own.wf --format json", &[]).json();
    place.run("trace generate gen.wf --format json", &SMALL).json();
    place.run("explain s call 0 --format json", &[]).json();
    place.run("report s --format json", &[]).json();
    place.run("report c --format json", &[]).json();
    place.run("policies --format json", &[]).json();
    place.run("compare --show-settings --format json", &[]).json();
    let frontier = "frontier --world generated --warm-up 0 --quick --policies keep-alive,windfall";
    let drawn = place.run(&format!("{frontier} --format json --out f"), &SMALL).json();
    for key in ["policy", "dial", "seed", "slow_share", "mib_seconds", "instance_seconds"] {
        assert!(drawn["points"][0].get(key).is_some(), "{key}");
    }
    assert_eq!(drawn["ratios"][0]["seeds"], 1);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    place.run("simulate --out s", &SMALL).done();
    for line in [
        "compare --format json --seeds 1 --loads 0.8",
        "trace inspect --format json",
        "completions bash",
        "completions zsh",
        "compare --show-settings",
        "policies",
        "explain s call 0",
        "report s --format json",
        "compare --help",
    ] {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if !["explain", "report", "policies", "completions"].contains(&words[0]) {
            words.extend(SMALL);
        }
        let mut child =
            place.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Closed before the first byte is written: every write meets a broken pipe.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(!stderr.contains("panicked"), "windfall {line}: {stderr}");
        assert_eq!(status.code(), Some(0), "windfall {line}: {stderr}");
    }
}

#[test]
fn completions_know_the_commands_of_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&format!("completions {shell}"), &[]).done().stdout;
        for word in ["compare", "simulate", "inspect", "policies", "windfall"] {
            assert!(script.contains(word), "{shell}: {word} is missing");
        }
    }
    place.run("completions tcl", &[]).refused(&["tcl", "bash"]);
}

#[test]
fn policies_are_listed_with_what_they_do() {
    let listed = Place::new().run("policies", &[]).done().stdout;
    for name in [
        "fixed",
        "greedy",
        "ensure",
        "histogram",
        "queueing",
        "libra",
        "safeguard-random",
        "oracle",
        "kpa",
        "hpa",
        "vpa",
        "autopilot",
    ] {
        let line = listed.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(line.is_some_and(|line| line.len() > 30), "{name}: {listed}");
    }
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
}

#[test]
fn an_unknown_word_is_refused_with_a_suggestion() {
    let place = Place::new();
    let Ended { code, stderr, .. } = place.run("compere", &[]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("'compare'"), "{stderr}");
    place.run("simulate --polcy fixed", &[]).refused(&["--policy"]);
    place.run("explain", &[]).refused(&["<RUN>"]);
}

#[test]
fn the_version_is_printed() {
    let printed = Place::new().run("--version", &[]).done().stdout;
    assert_eq!(printed, format!("windfall {}\n", env!("CARGO_PKG_VERSION")));
}
