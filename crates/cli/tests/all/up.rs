//! `windfall up` as a user starts it: real functions where the machine permits, killed at any moment, stopped by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::program::{Ended, Place};
use super::service::KEYS;

/// Ports of its own and a folder of its own, so that tests and people on one machine do not meet.
const APART: &str = "--listen 127.0.0.1:0 --functions-listen 127.0.0.1:0 --state state";

/// A manager that runs until it is ended.
struct RunningUp {
    process: Child,
    /// `http://host:port` of its API.
    url: String,
    /// `http://host:port` and key of the functions' own API, where functions are real.
    functions: Option<(String, String)>,
    /// What it printed before it was ready.
    preflight: String,
}

impl Drop for RunningUp {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl RunningUp {
    /// Starts it and waits until it is ready.
    fn start(place: &Place, more: &str) -> Self {
        let words: Vec<&str> =
            ["up"].into_iter().chain(APART.split(' ')).chain(more.split_whitespace()).collect();
        let mut command = place.command(&words);
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let errors = process.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let mut preflight = String::new();
        let (mut url, mut functions) = (None, None);
        for line in lines.by_ref() {
            preflight += &line;
            preflight.push('\n');
            let last = line.split_whitespace().last().unwrap_or_default();
            if line.contains("  terminal ") {
                url = Some(last.to_owned());
            } else if let Some((_, rest)) = line.split_once("wsk property set --apihost ") {
                let address = rest.split_whitespace().next().unwrap_or_default();
                functions = Some((address.to_owned(), last.to_owned()));
            } else if line.starts_with("Ctrl-C stops it") {
                break;
            }
        }
        // Read to the end, so that it never waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.unwrap_or_else(|| panic!("it was not ready: {preflight}"));
        Self { process, url, functions, preflight }
    }

    /// Has calls accepted that are run behind the answer; their activation ids.
    fn accepted(&self, count: usize) -> Vec<String> {
        let Some((address, key)) = &self.functions else { return Vec::new() };
        let path = "/api/v1/namespaces/_/actions/fetch-report";
        let ask = |_| ask(address, key, "POST", path, r#"{"sleep": 300, "prime": 1000}"#);
        let answers = (0..count).filter_map(ask);
        answers.filter_map(|answer| answer["activationId"].as_str().map(str::to_owned)).collect()
    }

    /// Waits until an accepted call has its record; how it ended.
    fn status_of(&self, activation: &str) -> i64 {
        let (address, key) = self.functions.as_ref().expect("functions are real");
        let path = format!("/api/v1/namespaces/_/activations/{activation}");
        let began = Instant::now();
        loop {
            let record = ask(address, key, "GET", &path, "").unwrap_or_default();
            if let Some(status) = record["response"]["statusCode"].as_i64() {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{activation}: {record}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Asked again for ten seconds: a very busy machine may be too slow for a client's patience.
    fn get(&self, path: &str) -> Value {
        let began = Instant::now();
        loop {
            match windfall_daemon::client::get(&self.url, path) {
                Ok(answer) => return answer,
                Err(error) => assert!(began.elapsed() < Duration::from_secs(10), "{path}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn calls(&self) -> u64 {
        self.get("/api/v1/status")["totals"]["calls"].as_u64().unwrap_or(0)
    }

    /// Names of functions that hold less than their users reserve.
    fn below_their_own(&self) -> Vec<String> {
        let list = self.get("/api/v1/functions?limit=500");
        let functions = list["functions"].as_array().cloned().unwrap_or_default();
        assert!(!functions.is_empty(), "no function is known");
        let names = functions.iter().filter_map(|row| row["name"].as_str());
        names
            .filter(|name| {
                let one = self.get(&format!("/api/v1/functions/{name}"));
                let less = |held: &str, own: &str| one[held].as_f64() < one[own].as_f64();
                less("allocation_cores", "reserved_cores") || less("allocation_mib", "reserved_mib")
            })
            .map(str::to_owned)
            .collect()
    }
}

/// One request to OpenWhisk's API; nothing if the platform has gone away.
fn ask(address: &str, key: &str, method: &str, path: &str, body: &str) -> Option<Value> {
    let host = address.strip_prefix("http://").unwrap_or(address);
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let (basic, length) = (STANDARD.encode(key), body.len());
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Basic {basic}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// Processes in a control group of the run of `pid`.
fn processes_of(pid: u32) -> Vec<u32> {
    let mark = format!("-{pid}-");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| {
            let groups = std::fs::read_to_string(format!("/proc/{number}/cgroup"));
            groups.is_ok_and(|groups| {
                groups.lines().any(|line| line.contains("windfall-run-") && line.contains(&mark))
            })
        })
        .collect()
}

/// Control groups of the run of `pid` that are still there.
fn groups_of(pid: u32) -> Vec<String> {
    let mark = format!("-{pid}-");
    let mut found = Vec::new();
    let mut folders = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("windfall-run-") && name.contains(&mark) {
                found.push(entry.path().display().to_string());
            } else if folder == Path::new("/sys/fs/cgroup") && entry.path().is_dir() {
                // Hierarchies of version 1 lie one level below.
                folders.push(entry.path());
            }
        }
    }
    found
}

fn within(patience: Duration, what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn up_serves_real_calls_and_ends_by_itself_with_the_keys_that_scripts_read() {
    let place = Place::new();
    let line = format!("up {APART} --for 8s --report r.html --format json");
    let command = place
        .command(&line.split(' ').collect::<Vec<_>>())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let process = command.expect("the program can be started");
    let pid = process.id();
    let ended = Ended::of(process.wait_with_output().expect("it ends"));
    let preflight = ended.stderr.clone();
    assert!(preflight.contains("[ok] platform: "), "{preflight}");
    let summary = ended.json();
    for key in KEYS {
        assert!(summary.get(key).is_some(), "{key} is missing in {summary}");
    }
    assert!(summary["calls"].as_u64() > Some(0), "{summary}");
    assert_eq!(summary["failed"], 0, "{summary}");
    assert_eq!(summary["restored"], true, "{summary}");
    assert!(place.read("r.html").contains("core-seconds saved"));
    let platform = summary["platform"].as_str().unwrap_or_default();
    if platform != "simulated" {
        assert!(preflight.contains("wsk property set --apihost http://"), "{preflight}");
        assert!(preflight.contains("fn invoke greet --apihost"), "{preflight}");
        assert!(summary["core_seconds_used"].as_f64() > Some(0.0), "{summary}");
        assert_eq!(summary["load"]["failed"], 0, "{summary}");
    }
    assert_eq!(processes_of(pid), Vec::<u32>::new());
    assert_eq!(groups_of(pid), Vec::<String>::new());
}

#[test]
fn up_says_plainly_that_the_simulator_runs_no_function() {
    let place = Place::new();
    let line = format!("up {APART} --platform simulated --for 1s --format json");
    let ended = place.run(&line, &[]).done();
    assert!(ended.stderr.contains("no function runs"), "{}", ended.stderr);
    assert_eq!(ended.json()["platform"], "simulated");
    let line = format!("up {APART} --platform simulated --functions nowhere --for 1s");
    let ended = place.run(&line, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--functions needs a platform that runs functions"), "{ended:?}");
}

/// Calls that each manager accepts before it is killed, to be run behind the answer.
const ACCEPTED: usize = 3;

/// Kills a manager under load `times` times, then looks at what is left and starts it once more.
fn kill_at_random_moments(times: u64) {
    let place = Place::new();
    let (mut killed, mut accepted) = (Vec::new(), Vec::new());
    for round in 0..times {
        // A policy that changes sizes by ticks, so that there is something to give back. Every other round may change
        // nothing, so that what is short there was left by the round before.
        let mode = if round % 2 == 0 { "auto" } else { "observe" };
        let options = format!("--policy vpa --mode {mode} --tick 200ms --load 0.4");
        let mut manager = RunningUp::start(&place, &options);
        if mode == "observe" {
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(manager.below_their_own(), Vec::<String>::new(), "{}", manager.preflight);
        }
        within(Duration::from_secs(20), "calls are served", || manager.calls() > 0);
        accepted.extend(manager.accepted(ACCEPTED));
        // Spread over two seconds without a pattern that ticks could meet.
        std::thread::sleep(Duration::from_millis(round * 7919 % 2000));
        let pid = manager.process.id();
        manager.process.kill().expect("it runs");
        manager.process.wait().expect("it ends");
        killed.push(pid);
        within(Duration::from_secs(10), "its instances are gone", || processes_of(pid).is_empty());
        place.run("db check --state state", &[]).done();
    }
    let mut manager =
        RunningUp::start(&place, "--policy vpa --mode observe --tick 200ms --load 0.4");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(manager.below_their_own(), Vec::<String>::new(), "{}", manager.preflight);
    within(Duration::from_secs(20), "calls are served", || manager.calls() > 0);
    if manager.functions.is_some() {
        assert_eq!(accepted.len(), ACCEPTED * times as usize);
        let lost = accepted.iter().filter(|id| manager.status_of(id) != 0);
        assert_eq!(lost.collect::<Vec<_>>(), Vec::<&String>::new(), "accepted and not answered");
    }
    let stopped = std::process::Command::new("kill").arg(manager.process.id().to_string()).status();
    assert!(stopped.is_ok_and(|status| status.success()), "SIGTERM can be sent");
    let ended = manager.process.wait().expect("it ends");
    assert!(ended.success(), "{ended:?}");
    killed.push(manager.process.id());
    for pid in killed {
        assert_eq!(processes_of(pid), Vec::<u32>::new());
        assert_eq!(groups_of(pid), Vec::<String>::new(), "the next start removes them");
    }
    place.run("db check --state state", &[]).done();
}

#[test]
fn a_manager_that_is_killed_leaves_nothing_behind_and_no_function_short() {
    kill_at_random_moments(3);
}

#[test]
#[ignore = "fifty starts under load take about five minutes"]
fn a_manager_that_is_killed_fifty_times_leaves_nothing_behind() {
    kill_at_random_moments(50);
}
