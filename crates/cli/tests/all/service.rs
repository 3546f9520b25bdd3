//! `windfall up`, `top` and `db` from outside: a manager that ends by itself, is watched, and is killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::program::Place;

/// A simulated hour in a minute, on a free port.
const FAST: [&str; 8] =
    ["--platform", "simulated", "--listen", "127.0.0.1:0", "--speed", "60", "--tick", "200ms"];

/// Keys that scripts rely on.
pub(super) const KEYS: [&str; 10] = [
    "platform",
    "calls",
    "failed",
    "p99_ms",
    "objective_met_share",
    "core_seconds_reserved",
    "core_seconds_held",
    "core_seconds_used",
    "safeguard_trips",
    "report",
];

#[test]
fn up_ends_by_itself_with_a_summary_and_a_report() {
    let place = Place::new();
    let line = "up --for 4s --report r.html --format json";
    let summary = place.run(line, &FAST).json();
    for key in KEYS {
        assert!(summary.get(key).is_some(), "{key} is missing in {summary}");
    }
    assert_eq!(summary["platform"], "simulated");
    assert!(summary["calls"].as_u64() > Some(100), "{summary}");
    assert_eq!(summary["restored"], true);
    let (reserved, held) = (&summary["core_seconds_reserved"], &summary["core_seconds_held"]);
    assert!(held.as_f64() < reserved.as_f64(), "something is saved: {summary}");
    let page = place.read("r.html");
    assert!(page.contains("numbers of the simulator"), "the report says what it is");
    let ended = place.run("db check", &[]).done();
    assert_eq!(ended.stdout.trim(), "intact");
    let ended = place.run("db export --table calls --out -", &[]).done();
    assert!(ended.stdout.lines().count() > 100 && ended.stdout.starts_with("id,at_ms,call,"));
}

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let place = Place::new();
    place.run("up --policy windfal --for 1s", &[]).refused(&["there is no policy `windfal`"]);
    place.run("db check", &[]).refused(&["--state names the folder"]);
    place.run("top --url http://127.0.0.1:1", &[]).refused(&["is `windfall up` running?"]);
}

/// A running manager.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn start(place: &Place) -> Self {
        let mut child = place
            .command(&["up"])
            .args(FAST)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("dashboard    http://")).expect("it is ready");
        let url = line.trim().trim_start_matches("dashboard").trim();
        let url = url.split("/#").next().unwrap_or_default().to_owned();
        // Somebody must read on, or the program would wait for its own messages.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    fn top(&self, place: &Place) -> Value {
        place.run("top --format json --url", &[&self.url]).json()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_manager_that_is_killed_leaves_an_intact_database_and_starts_again() {
    let place = Place::new();
    let moments = [30, 170, 410, 90, 650];
    for moment in moments {
        let mut running = Running::start(&place);
        std::thread::sleep(Duration::from_millis(moment));
        let seen = running.top(&place);
        assert!(seen["status"]["functions"].as_u64() == Some(40), "{}", seen["status"]);
        running.child.kill().expect("it runs");
        running.child.wait().expect("it has ended");
        let ended = place.run("db check", &[]);
        assert_eq!(ended.stdout.trim(), "intact", "killed after {moment} ms: {ended:?}");
    }
    let running = Running::start(&place);
    let text = place.run("top --url", &[&running.url]).done().stdout;
    assert!(text.contains("FUNCTION") && text.contains("mode auto"), "{text}");
}
