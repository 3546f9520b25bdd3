//! Training from outside: kept, interrupted, resumed, evaluated, inspected, refused.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::program::Place;

const CORRIDOR: &str = "train toy/Corridor-v0 --set steps=64 --evaluate-every 4";

#[test]
fn an_interrupted_training_ends_in_the_same_bytes() {
    for algorithm in ["ppo", "dqn", "reinforce", "q-learning"] {
        let place = Place::new();
        let start = format!("{CORRIDOR} --algorithm {algorithm} --iterations 12");
        place.run(&format!("{start} --out whole"), &[]).done();
        place.run(&format!("{start} --out parts --until 5"), &[]).done();
        place.run("train --resume parts --evaluate-every 4 --until 9", &[]).done();
        place.run("train --resume parts/last.safetensors --evaluate-every 4", &[]).done();
        for file in ["last.safetensors", "best.safetensors", "curve.jsonl"] {
            let read = |folder: &str| fs::read(place.path(&format!("{folder}/{file}"))).unwrap();
            assert!(read("whole") == read("parts"), "{algorithm}: {file} differs");
        }
        place.run("train --resume parts", &[]).refused(&["all of its 12 iterations"]);
    }
}

#[test]
fn a_training_leaves_curves_events_and_a_policy_that_is_evaluated() {
    let place = Place::new();
    let printed =
        place.run(&format!("{CORRIDOR} --iterations 30 --out t --format json"), &[]).json();
    assert_eq!(
        (printed["iteration"].as_u64(), printed["interrupted"].as_bool()),
        (Some(30), Some(false))
    );
    let best = printed["best"]["mean"].as_f64().unwrap();
    assert!((best - 0.98).abs() < 1e-6, "{printed}");
    let page = place.read("t/curves.html");
    assert!(page.contains("Return per episode") && !page.contains("http-equiv=\"refresh\""));
    assert!(place.files().iter().any(|file| file.starts_with("t/events.out.tfevents.")));
    assert_eq!(place.read("t/curve.jsonl").lines().count(), 30);
    let found = place.run("evaluate t/best.safetensors --seeds 2 --format json", &[]).json();
    assert_eq!(found["mean"].as_f64(), Some(best));
    assert!(found["random"]["mean"].as_f64().unwrap() < best);
    let text = place.run("evaluate t/last.safetensors", &[]).done().stdout;
    assert!(text.contains("trained") && text.contains("random"), "{text}");
}

#[test]
fn a_checkpoint_is_inspected_or_refused_with_the_reason() {
    let place = Place::new();
    place.run(&format!("{CORRIDOR} --iterations 2 --out t"), &[]).done();
    let printed = place.run("policy inspect t/last.safetensors --format json", &[]).json();
    assert_eq!((&printed["algorithm"], &printed["iteration"]), (&"ppo".into(), &2.into()));
    assert_eq!(printed["environment"]["id"], "toy/Corridor-v0");
    // 1-64-64-2: 128 + 4160 + 130.
    assert_eq!(printed["parameters"], 4418);
    let text = place.run("policy inspect t/last.safetensors", &[]).done().stdout;
    assert!(text.contains("1-64-64-2 tanh") && text.contains("learning_rate"), "{text}");

    let bytes = fs::read(place.path("t/last.safetensors")).unwrap();
    place.write("cut.safetensors", &bytes[..bytes.len() - 9]);
    place.run("policy inspect cut.safetensors", &[]).refused(&[
        "cut.safetensors",
        "damaged",
        "hint",
    ]);
    place.write("text.safetensors", "weights of nothing");
    place.run("policy inspect text.safetensors", &[]).refused(&["text.safetensors", "damaged"]);
    // An empty header of eight bytes' length, as other programs write it.
    place.write("foreign.safetensors", [&2_u64.to_le_bytes()[..], b"{}"].concat());
    place.run("evaluate foreign.safetensors", &[]).refused(&["not written by windfall"]);
    let swap = |from: &str, to: &str| {
        let start = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut changed = bytes.clone();
        changed[start..start + to.len()].copy_from_slice(to.as_bytes());
        place.write("other.safetensors", changed);
        place.run("policy inspect other.safetensors", &[])
    };
    swap("windfall-checkpoint/1", "windfall-checkpoint/9")
        .refused(&["checkpoint/9", "checkpoint/1"]);
    swap("\\\"name\\\":\\\"place", "\\\"name\\\":\\\"plaza")
        .refused(&["features", "plaza", "place"]);
    place.run("policy inspect nowhere.safetensors", &[]).refused(&["nowhere.safetensors", "open"]);
}

#[test]
fn settings_are_shown_read_and_refused_by_name() {
    let place = Place::new();
    let shown = place.run("train toy/Corridor-v0 --show-settings", &[]).done().stdout;
    place.write("own.toml", shown.replace("minibatch = 64", "minibatch = 16"));
    place.run("train toy/Corridor-v0 --settings own.toml --until 1 --out t", &[]).done();
    let printed = place.run("policy inspect t/last.safetensors --format json", &[]).json();
    assert_eq!(printed["settings"]["minibatch"], 16);
    let refused = |more: &str, parts: &[&str]| {
        place.run(&format!("train toy/Corridor-v0 --out x {more}"), &[]).refused(parts);
    };
    refused("--set minibatch=0", &["`minibatch` is 0", "allowed is 1"]);
    refused("--set minibach=3", &["`minibach`", "minibatch"]);
    refused("--set minibatch", &["KEY=VALUE"]);
    refused("--settings none.toml", &["none.toml"]);
    refused("--algorithm q-learning --set levels=[3,3]", &["levels", "1 features"]);
    place.run("train --resume x --algorithm dqn", &[]).refused(&["--algorithm", "--resume"]);
    place.run("train", &[]).refused(&["ENV"]);
    assert!(!place.files().iter().any(|file| file.starts_with("x/")), "{:?}", place.files());
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_the_training_goes_on_from_there() {
    let place = Place::new();
    let start = "train toy/Corridor-v0 --iterations 1000000 --out t";
    let words: Vec<&str> = start.split_whitespace().collect();
    let child =
        place.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let saved = place.path("t/last.safetensors");
    while !saved.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ended = super::program::Ended::of(child.wait_with_output().unwrap()).done();
    assert!(ended.stderr.contains("everything is saved"), "{}", ended.stderr);
    assert!(ended.stdout.contains("windfall train --resume t"), "{}", ended.stdout);
    let printed = place.run("policy inspect t/last.safetensors --format json", &[]).json();
    let done = printed["iteration"].as_u64().unwrap();
    assert_eq!(place.read("t/curve.jsonl").lines().count() as u64, done);
    place.run(&format!("train --resume t --until {}", done + 1), &[]).done();
}
