//! A request that makes no sense is refused before anything is written.

use super::program::{Place, SMALL};

/// Nothing may have been written.
#[track_caller]
fn nothing_written(place: &Place, before: &[String]) {
    assert_eq!(place.files(), before);
}

#[test]
fn three_mistakes_of_a_scenario_are_reported_together() {
    let place = Place::new();
    let text = "[cluster]\nnode_cores = -4\n\n[platfrom]\nconcurrency = 1\n\n\
                [run]\npolicies = [\"histogramm\"]\n";
    place.write("s.toml", text);
    for command in ["compare", "simulate", "trace inspect"] {
        place.run(&format!("{command} --scenario s.toml"), &[]).refused(&[
            "s.toml: 3 problems",
            "line 2: cluster.node_cores is -4, allowed is 0.1 to 1024",
            "line 4: unknown key `platfrom`; did you mean `platform`?",
            "line 8: run.policies holds \"histogramm\"",
            "did you mean `histogram`?",
        ]);
    }
    nothing_written(&place, &["s.toml".to_owned()]);
}

#[test]
fn unknown_keys_of_every_section_are_reported_with_their_line() {
    let place = Place::new();
    for section in ["trace", "cluster", "platform", "sensors", "faults", "run"] {
        place.write("s.toml", format!("name = \"x\"\n[{section}]\nnonsense = 1\n"));
        let key = format!("line 3: unknown key `{section}.nonsense`");
        place.run("compare --scenario s.toml", &[]).refused(&["s.toml: 1 problem", &key]);
    }
    place.write("s.toml", "[policies.histogram]\nquantil = 0.9\n");
    let parts = ["line 1: policies.histogram: ", "quantil"];
    place.run("compare --scenario s.toml", &[]).refused(&parts);
    nothing_written(&place, &["s.toml".to_owned()]);
}

#[test]
fn scenarios_that_are_no_text_or_not_there_are_refused() {
    let place = Place::new();
    place.run("compare --scenario s.toml", &[]).refused(&["s.toml: cannot be read"]);
    place.write("s.toml", [0xff, 0xfe, 0x00]);
    place.run("compare --scenario s.toml", &[]).refused(&["s.toml: cannot be read"]);
    place.write("s.toml", "[cluster\n");
    place.run("compare --scenario s.toml", &[]).refused(&["s.toml: 1 problem", "line 1: "]);
    nothing_written(&place, &["s.toml".to_owned()]);
}

#[test]
fn an_unknown_policy_is_named_with_those_there_are() {
    let place = Place::new();
    let parts = ["`magic`", "fixed", "histogram", "oracle"];
    place.run("compare --policies fixed,magic", &SMALL).refused(&parts);
    place.run("simulate --policy magic", &SMALL).refused(&parts);
    place.run("simulate --shadow magic", &SMALL).refused(&parts);
    nothing_written(&place, &[]);
}

#[test]
fn seeds_and_loads_that_are_none_are_refused() {
    let place = Place::new();
    for seeds in ["0", "x", "5-3", "1,,2", "-1", "1-99999999999", "18446744073709551615"] {
        let ended = place.run(&format!("compare --seeds={seeds}"), &SMALL);
        ended.refused(&[&format!("`{seeds}`"), "--seeds"]);
    }
    for load in ["0", "-1", "nan", "inf", "11", "many"] {
        let ended = place.run(&format!("compare --loads=0.5,{load}"), &SMALL);
        ended.refused(&[&format!("`{load}` is not a load, allowed is 0.01 to 10"), "--loads"]);
        place.run(&format!("simulate --load={load}"), &SMALL).refused(&["--load"]);
    }
    nothing_written(&place, &[]);
}

#[test]
fn impossible_numbers_of_the_world_are_refused() {
    let place = Place::new();
    for (flag, value) in [
        ("--functions", "0"),
        ("--minutes", "-5"),
        ("--minutes", "nan"),
        ("--minutes", "x"),
        ("--minutes", "1e300"),
        ("--calls-per-hour", "-1"),
        ("--calls-per-hour", "nan"),
        ("--calls-per-hour", "inf"),
        ("--over-commit", "0"),
        ("--over-commit", "nan"),
        ("--warm-up", "-1"),
        ("--warm-up", "inf"),
    ] {
        let ended = place.run(&format!("compare {flag}={value}"), &[]);
        assert_eq!(ended.code, Some(2), "{flag} {value}: {ended:?}");
        ended.refused(&[]);
    }
    place.run("compare --trace t --calls-per-hour 5", &[]).refused(&["--calls-per-hour is for"]);
    place.run("compare --capped", &[]).refused(&["--capped is for traces"]);
    place.run("compare --threads 0", &SMALL).refused(&["--threads", "0"]);
    nothing_written(&place, &[]);
}

#[test]
fn questions_without_an_answer_say_what_there_is() {
    let place = Place::new();
    place.run("simulate --policy fixed --out r", &SMALL).done();
    let before = place.files();
    let missing = "the journal has no call 999999; ";
    place.run("explain r call 999999", &[]).refused(&["r/journal.jsonl", missing]);
    place.run("explain r tick 3", &[]).refused(&["the journal has no tick 3"]);
    place.run("explain r call seven", &[]).refused(&["`seven` is not a number", "call 812"]);
    place.run("explain r goal 7", &[]).refused(&["`goal` is neither call nor tick"]);
    place.run("explain nowhere call 7", &[]).refused(&["nowhere: cannot be read"]);
    nothing_written(&place, &before);
}

#[test]
fn a_directory_without_a_run_is_not_reported() {
    let place = Place::new();
    place.write("d/notes.txt", "nothing");
    let parts = ["d: holds neither results.json nor journal.jsonl", "windfall compare"];
    place.run("report d", &[]).refused(&parts);
    place.run("report nowhere", &[]).refused(&["nowhere"]);
    place.write("d/results.json", "{\"rows\":");
    place.run("report d", &[]).refused(&["d/results.json: is not a result of `windfall compare`"]);
    nothing_written(&place, &["d/notes.txt".to_owned(), "d/results.json".to_owned()]);
}

#[test]
fn journals_that_are_cut_altered_or_of_another_version_are_refused() {
    let place = Place::new();
    place.run("simulate --policy fixed --out r", &SMALL).done();
    let whole = place.read("r/journal.jsonl");
    let lines = whole.lines().count();
    let (last, counts) = (format!("line {lines}: "), "the journal should hold");
    let cut = &whole[..whole.len() - 9];
    let fewer: Vec<&str> = whole.lines().filter(|line| !line.contains("\"id\":3,")).collect();
    let fewer = fewer.join("\n") + "\n";
    let newer = whole.replacen("\"schema\":1", "\"schema\":7", 1);
    let spoilt = whole.replacen("{\"call\":", "{\"cull\":", 1);
    for (text, parts) in [
        (cut, &[last.as_str(), "breaks off", "hint: everything before"][..]),
        (&fewer, &[counts, "hint: lines were removed"]),
        (&newer, &["has schema 7, this program reads schema 1", "hint: it was written by a newer"]),
        (&spoilt, &["line 3: ", "`cull`"]),
        ("", &["the journal is empty"]),
        ("hello\n", &["line 1: ", "hint: is this a journal?"]),
    ] {
        place.write("j/journal.jsonl", text);
        let before = place.files();
        place.run("report j", &[]).refused(&["j/journal.jsonl"]).refused(parts);
        let explained = place.run("explain j call 999999", &[]).refused(&["j/journal.jsonl"]);
        // What a cut journal holds can still be explained, so there the answer is that it was cut.
        if text == cut {
            explained.refused(&["no call 999999", "cut short"]);
        } else {
            explained.refused(parts);
        }
        nothing_written(&place, &before);
    }
}

#[test]
fn a_journal_that_stops_between_two_lines_is_not_reported_as_a_whole_run() {
    let place = Place::new();
    place.run("simulate --policy fixed --out r", &SMALL).done();
    let whole = place.read("r/journal.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    place.write("j/journal.jsonl", lines[..lines.len() - 1].join("\n") + "\n");
    let before = place.files();
    place.run("report j", &[]).refused(&["the journal is cut short", "did not come to its end"]);
    nothing_written(&place, &before);
    // What it holds can still be explained.
    place.run("explain j call 0", &[]).done();
}
