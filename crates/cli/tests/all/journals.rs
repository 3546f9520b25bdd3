//! Journals of whole runs: the same whatever the number of threads, and with a shadow beside.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use super::comparison::rows;
use super::program::{Place, SMALL};

/// The records of a journal.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a journal holds JSON")).collect()
}

#[test]
fn one_thread_and_eight_give_the_same_bytes() {
    let place = Place::new();
    let words = "compare --journals --format json --loads 0.5,1.1 --seeds 2 --out";
    let one = place.run(&format!("{words} one --threads 1"), &SMALL).json();
    let eight = place.run(&format!("{words} eight --threads 8"), &SMALL).json();
    assert_eq!(rows(&one), rows(&eight));
    let journals: Vec<String> = place
        .files()
        .into_iter()
        .filter_map(|file| file.strip_prefix("one/").map(str::to_owned))
        .filter(|file| file.ends_with(".jsonl"))
        .collect();
    assert_eq!(journals.len(), rows(&one).len(), "one journal for each run");
    for journal in journals {
        let same = place.read(&format!("one/{journal}")) == place.read(&format!("eight/{journal}"));
        assert!(same, "{journal} differs between one thread and eight");
    }
    let unfinished: Vec<String> =
        place.files().into_iter().filter(|file| file.ends_with(".unfinished")).collect();
    assert!(unfinished.is_empty(), "{unfinished:?}");
}

#[test]
fn a_journal_of_compare_is_that_of_simulate() {
    let place = Place::new();
    let words = "compare --journals --policies libra --loads 0.8 --seeds 3,3 --out c";
    place.run(words, &SMALL).refused(&["seeds holds 3 twice"]);
    place.run("compare --journals --policies libra --loads 0.8 --seeds 3-3 --out c", &SMALL).done();
    place.run("simulate --policy libra --load 0.8 --seed 3 --out s", &SMALL).done();
    let same = place.read("c/libra-load0.8-seed3.jsonl") == place.read("s/journal.jsonl");
    assert!(same, "the same run has two journals");
}

#[test]
fn the_oracle_cannot_be_a_shadow() {
    // The oracle needs foresight, which only a run of its own has; as a shadow it decides nothing.
    let ended = Place::new().run("simulate --shadow oracle --out r", &SMALL);
    ended.refused(&["oracle cannot be a shadow"]);
}

#[test]
fn a_shadow_is_recorded_and_never_obeyed() {
    let place = Place::new();
    let words = "simulate --policy histogram --load 0.8 --seed 2 --format json --out";
    let mut alone = place.run(&format!("{words} alone"), &SMALL).json();
    let mut beside = place.run(&format!("{words} beside --shadow libra"), &SMALL).json();
    alone["directory"] = Value::Null;
    beside["directory"] = Value::Null;
    assert_eq!(alone, beside, "the shadow changed the results");
    let alone = lines(&place.read("alone/journal.jsonl"));
    let beside = lines(&place.read("beside/journal.jsonl"));
    assert_eq!(alone.len(), beside.len());
    let mut differs = 0;
    for (without, with) in alone.iter().zip(&beside).skip(1) {
        let mut same = with.clone();
        if let Some(call) = same.get_mut("call") {
            assert!(call["shadow"].is_object(), "the shadow's decision is missing: {call}");
            differs += usize::from(call["shadow"] != call["wanted"]);
            call["shadow"] = without["call"]["shadow"].clone();
        }
        assert_eq!(&same, without, "the shadow changed what happened");
    }
    assert!(differs > 0, "two policies never decide the same throughout");
}

#[test]
fn a_journal_can_be_followed_while_it_is_written() {
    let place = Place::new();
    let words = "simulate --policy queueing --load 0.8 --seed 2 --out r";
    place.run(words, &SMALL).done();
    let whole = place.read("r/journal.jsonl");
    assert!(
        whole.lines().nth(1).is_some_and(|line| line.starts_with("{\"functions\":[{\"id\":0,"))
    );
    // As it looks in the middle of a run: the last line is torn.
    let half = whole.len() / 2;
    place.write("live/journal.jsonl", &whole[..half]);
    let mut follower = place
        .command(&["explain", "live", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut shown = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let first = shown.next().expect("it shows what is there").expect("UTF-8");
    assert_eq!(first, "10 functions known");
    let mut file = OpenOptions::new().append(true).open(place.path("live/journal.jsonl")).unwrap();
    file.write_all(&whole.as_bytes()[half..]).unwrap();
    let rest: Vec<String> = shown.map(|line| line.expect("UTF-8")).collect();
    assert!(follower.wait().expect("it ends with the run").success());
    let ticks = whole.lines().filter(|line| line.starts_with("{\"tick\"")).count();
    assert_eq!(rest.iter().filter(|line| line.starts_with("tick ")).count(), ticks);
    assert!(rest.last().is_some_and(|line| line.starts_with("complete: ")), "{rest:?}");
}
