//! Environments from outside: described, and acted in by a process in another language.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::program::{Place, windfall};

#[test]
fn environments_are_listed_with_features_and_actions() {
    let place = Place::new();
    let list = place.run("env list --format json", &[]).json();
    let find = |id: &str| list.as_array().unwrap().iter().find(|entry| entry["id"] == id).cloned();
    let course = find("windfall/Ece471-v0").expect("the course's environment is listed");
    assert_eq!(course["features"].as_array().unwrap().len(), 6);
    assert_eq!(course["features"][5]["name"], "arrival_rate");
    assert_eq!(course["actions"], json!(["hold", "out", "in", "up", "down"]));
    let text = place.run("env list", &[]).done().stdout;
    assert!(
        text.contains("windfall/Ece471Direction-v0") && text.contains("last_direction"),
        "{text}"
    );
}

#[test]
fn an_unknown_environment_is_refused_with_those_there_are() {
    Place::new().run("env windfall/None-v0", &[]).refused(&[
        "`windfall/None-v0`",
        "windfall/Ece471-v0",
        "toy/Corridor-v0",
    ]);
}

#[test]
fn every_line_is_answered_at_once_and_bad_ones_change_nothing() {
    let mut child = Place::new()
        .command(&["env", "windfall/Ece471-v0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut say = |line: &str| {
        writeln!(to, "{line}").unwrap();
        to.flush().unwrap();
        let mut answer = String::new();
        from.read_line(&mut answer).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let begun = say(r#"{"reset": {"seed": 7}}"#);
    assert_eq!(begun["info"]["containers"], 4.0);
    assert!(say("not json")["error"].as_str().unwrap().contains("not a JSON object"));
    assert!(say(r#"{"step": 9}"#)["error"].as_str().unwrap().contains("action is 9"));
    let long = format!("{{\"step\": \"{}\"}}", "x".repeat(1 << 20));
    assert!(say(&long)["error"].as_str().unwrap().contains("1048576 bytes"));
    let stepped = say(r#"{"step": "out"}"#);
    assert_eq!(stepped["info"]["containers"], 5.0);
    assert_eq!(stepped["truncated"], false);
    assert_eq!(say(r#"{"reset": {"seed": 7}}"#), begun);
    drop(to);
    assert!(child.wait().unwrap().success());
}

/// Plays the same episode twice and reports its return and its length.
const PYTHON: &str = r#"
import json, subprocess, sys

environment = subprocess.Popen([sys.argv[1], "env", "windfall/Ece471-v0"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def say(line):
    environment.stdin.write(line + "\n")
    environment.stdin.flush()
    return json.loads(environment.stdout.readline())

def play():
    answer = say(json.dumps({"reset": {"seed": 7}}))
    total, steps, over = 0.0, 0, False
    while not over:
        mask = answer["info"]["mask"]
        answer = say(json.dumps({"step": (steps % 2) if mask[steps % 2] else 0}))
        total += answer["reward"]
        steps += 1
        over = answer["terminated"] or answer["truncated"]
    return total, steps, answer["truncated"], answer["observation"]

problem = say("{")["error"]
print(json.dumps({"first": play(), "second": play(), "problem": problem}))
environment.stdin.close()
sys.exit(environment.wait())
"#;

#[test]
fn a_python_process_plays_the_same_episode_twice() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        // Nothing to test with.
        return;
    }
    let output = Command::new("python3").arg("-c").arg(PYTHON).arg(windfall()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers["first"], answers["second"]);
    assert_eq!(
        (answers["first"][1].clone(), answers["first"][2].clone()),
        (json!(200), json!(true))
    );
    assert!(answers["problem"].as_str().unwrap().contains("not a JSON object"));
}
