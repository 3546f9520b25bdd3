//! `windfall up` on a disk that is full or read-only: a small file system of its own, in a mount namespace of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::{Place, windfall};

/// Mounts a file system of two megabytes on `state`, runs `$0` in it, and becomes the manager.
const FULL: &str = "mkdir state && mount -t tmpfs -o size=2m none state && exec \"$@\"";
/// The same, with a database that an earlier run has left and that cannot be written any more.
const READ_ONLY: &str = "mkdir state && mount -t tmpfs -o size=8m none state && \"$@\" --for 1s >/dev/null 2>&1 && \
                         mount -o remount,ro state && exec \"$@\"";

struct OnItsOwnDisk {
    process: Child,
    url: String,
    /// The folder of the database, seen from outside of the namespace.
    state: PathBuf,
    preflight: String,
    /// What it logs, line by line.
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for OnItsOwnDisk {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl OnItsOwnDisk {
    /// Nothing where the machine permits no mounts.
    #[expect(clippy::print_stderr, reason = "a test says why it tested nothing")]
    fn start(place: &Place, script: &str) -> Option<Self> {
        let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
        if !may.is_ok_and(|status| status.success()) {
            eprintln!("not tested: mounts need root and `unshare`");
            return None;
        }
        let line = "up --platform simulated --listen 127.0.0.1:0 --speed 60 --tick 200ms --state state --log json";
        let mut process = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(windfall())
            .args(line.split(' '))
            .current_dir(place.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let errors = process.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let mut preflight = String::new();
        let url = lines.by_ref().find_map(|line| {
            preflight += &line;
            preflight.push('\n');
            let (_, rest) = line.split_once("  terminal ")?;
            rest.split_whitespace().last().map(str::to_owned)
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        std::thread::spawn(move || lines.for_each(|line| written.lock().unwrap().push(line)));
        let url = url.unwrap_or_else(|| panic!("it was not ready: {preflight}"));
        let root = PathBuf::from(format!("/proc/{}/root", process.id()));
        let inside = place.path("state");
        let state = root.join(inside.strip_prefix("/").expect("an absolute path"));
        Some(Self { process, url, state, preflight, log })
    }

    /// Whether an event with this message was logged, as one JSON object on its line.
    fn has_logged(&self, message: &str) -> bool {
        let log = self.log.lock().unwrap();
        let events = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .into_iter()
            .any(|event| event["message"] == message && event["timestamp"].is_string())
    }

    fn health_of_database(&self) -> Value {
        let report = windfall_daemon::client::get(&self.url, "/api/v1/health").unwrap_or_default();
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        checks.into_iter().find(|check| check["name"] == "database").unwrap_or_default()
    }

    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        loop {
            let check = self.health_of_database();
            if holds(&check) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: {check}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// It goes on serving: calls are counted.
    fn calls_go_on(&self) {
        let calls = || {
            let status = windfall_daemon::client::get(&self.url, "/api/v1/status");
            status.unwrap_or_default()["totals"]["calls"].as_u64().unwrap_or(0)
        };
        let before = calls();
        self.until("calls go on", |_| calls() > before);
    }
}

#[test]
fn a_full_disk_is_reported_and_recovered_from() {
    let place = Place::new();
    let Some(manager) = OnItsOwnDisk::start(&place, FULL) else { return };
    manager.until("it begins well", |check| check["state"] == "ok");
    let filler = manager.state.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    manager.until("it says that the disk is full", |check| {
        check["state"] == "degraded"
            && check["detail"].as_str().is_some_and(|it| it.contains("full"))
    });
    manager.calls_go_on();
    manager.until("it is logged", |_| manager.has_logged("degraded"));
    std::fs::remove_file(&filler).expect("it is there");
    manager.until("it recovers by itself", |check| check["state"] == "ok");
    manager.until("that is logged too", |_| manager.has_logged("healthy again"));
}

#[test]
fn a_read_only_database_is_reported_and_used_as_soon_as_it_can_be_written() {
    let place = Place::new();
    let Some(manager) = OnItsOwnDisk::start(&place, READ_ONLY) else { return };
    let preflight = &manager.preflight;
    assert!(
        preflight.contains("[missing: make state/windfall.db writable] database"),
        "{preflight}"
    );
    manager.until("it says so", |check| check["state"] == "degraded");
    manager.calls_go_on();
    let pid = manager.process.id().to_string();
    let inside = place.path("state");
    let again = Command::new("nsenter")
        .args(["--target", &pid, "--mount", "mount", "-o", "remount,rw"])
        .arg(&inside)
        .status();
    assert!(again.is_ok_and(|status| status.success()), "it can be made writable");
    manager.until("it recovers by itself", |check| check["state"] == "ok");
}
