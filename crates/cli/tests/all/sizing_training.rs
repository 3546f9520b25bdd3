//! The parameters of `windfall` are trained, written, and judged by processes that know nothing but the file.

use std::fs;

use super::program::Place;

const TRAIN: &str =
    "train windfall-sizing --generated --quick --minutes 1 --test-minutes 1 --format csv";

#[test]
fn a_fresh_process_gives_the_table_of_the_training() {
    let place = Place::new();
    let printed = place.run(&format!("{TRAIN} --out t"), &[]).done().stdout;
    assert_eq!(printed.trim_end(), place.read("t/evaluation.csv").trim_end());
    assert!(printed.contains("windfall.safetensors"), "{printed}");
    assert!(place.read("t/turns.jsonl").lines().count() >= 10);
    for out in ["first", "second"] {
        let line = format!("compare --scenario t/test.toml --format csv --out {out}");
        assert_eq!(place.run(&line, &[]).done().stdout, printed, "{out}");
    }
    let one =
        "compare --scenario t/test.toml --policy t/windfall.safetensors --format csv --out one";
    let row = place.run(one, &[]).done().stdout;
    let row = row.lines().nth(1).expect("a head and a row");
    assert!(printed.lines().any(|line| line == row), "alone it is the same: {row}");
}

#[test]
fn the_number_of_threads_does_not_change_the_file() {
    let place = Place::new();
    place.run(&format!("{TRAIN} --out one"), &[]).done();
    place.run(&format!("{TRAIN} --threads 2 --out two"), &[]).done();
    let read = |folder: &str| fs::read(place.path(&format!("{folder}/windfall.safetensors")));
    assert_eq!(read("one").unwrap(), read("two").unwrap());
}

#[test]
fn what_does_not_belong_to_it_is_refused() {
    let place = Place::new();
    place.run("train windfall-sizing --trace gone", &[]).refused(&["gone: the trace is not there"]);
    place.run("train windfall-sizing --minutes 0", &[]).refused(&["--minutes", "1..=240"]);
    place.run("train windfall-sizing --algorithm dqn", &[]).refused(&["--algorithm"]);
}
