//! The service under load for a while: memory, descriptors and threads stay as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Api;
use crate::server::{Server, all_gone};

/// Instances come and go with calls that crash them. Twenty of the smallest fit into the node, and each takes about 24
/// descriptors; a leak of one per call would be thousands.
const MOST_DESCRIPTORS: usize = 800;
const MOST_THREADS: u64 = 40;
/// At full speed the service levels off at 128 MiB after 14 seconds and stays there; a leak of a kilobyte per call would
/// pass this within two minutes.
const LARGEST_MIB: f64 = 200.0;
/// Growth after the first quarter of a soak that is long enough for caches to be full by then.
const LATE_GROWTH_MIB: f64 = 20.0;
/// That long.
const CACHES_ARE_FULL_AFTER: Duration = Duration::from_secs(15);

/// What a process uses.
#[derive(Clone, Copy, Debug)]
struct Size {
    resident_mib: f64,
    descriptors: usize,
    threads: u64,
}

impl Size {
    fn max(self, other: Self) -> Self {
        Self {
            resident_mib: self.resident_mib.max(other.resident_mib),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }
}

fn size_of(pid: u32) -> Size {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let text = line.map(|line| line.trim().trim_end_matches("kB").trim());
        text.and_then(|text| text.parse::<u64>().ok()).expect("a number")
    };
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count();
    Size {
        resident_mib: number("VmRSS:") as f64 / 1024.0,
        descriptors,
        threads: number("Threads:"),
    }
}

/// Half an hour, or as many minutes as the environment says, with as many milliseconds between the calls of a client.
pub(crate) fn for_minutes() {
    let minutes = std::env::var("WINDFALL_SOAK_MINUTES");
    let minutes = minutes.map_or(30.0, |minutes| minutes.parse().expect("minutes"));
    // With 5 ms about a thousand calls a second, so that the machine is of use for something else meanwhile.
    let pause = std::env::var("WINDFALL_SOAK_PAUSE_MS");
    let pause = pause.map_or(5, |pause| pause.parse().expect("milliseconds"));
    it_stays_as_large(Duration::from_secs_f64(minutes * 60.0), Duration::from_millis(pause));
}

/// Waits until a call that was only accepted has ended. Without that, calls that wait would pile up in memory faster
/// than they are served, which is no leak.
fn wait_for_record(api: &Api, accepted: &Value) {
    let path = format!("activations/{}", accepted["activationId"].as_str().expect("an id"));
    while api.ask("GET", &path, &json!({})).is_none_or(|(status, _)| status != 200) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `pause` stands between the calls of a client.
pub(crate) fn it_stays_as_large(length: Duration, pause: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&folder.path().join("test.db"));
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..8_u64)
        .map(|client| {
            let (api, stop) = (Api::of(&server), Arc::clone(&stop));
            let calls = Arc::clone(&calls);
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let (path, body) = match client % 4 {
                        0 => ("actions/fault?blocking=true", json!({"how": "exit"})),
                        1 => ("actions/autoscale?blocking=true", json!({"sleep": 20})),
                        2 => ("actions/hello", json!({"name": "Ada"})),
                        _ => ("actions/hello?blocking=true", json!({"name": "Ada"})),
                    };
                    let answer = api.ask("POST", path, &body);
                    let (status, answer) = answer.unwrap_or_else(|| panic!("{path}: no answer"));
                    if status == 202 {
                        wait_for_record(&api, &answer);
                    }
                    calls.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(pause);
                }
            })
        })
        .collect();
    // Caches and pools fill up first.
    std::thread::sleep(length / 4);
    let before = size_of(server.pid());
    let (begun, mut worst) = (Instant::now(), before);
    while begun.elapsed() < length * 3 / 4 {
        std::thread::sleep(Duration::from_millis(100));
        worst = worst.max(size_of(server.pid()));
    }
    stop.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().expect("a client"));
    let calls = calls.load(Ordering::SeqCst);
    println!("     {calls} calls; {before:?}, later at most {worst:?}");
    assert!(server.terminate() && all_gone());
    assert!(worst.descriptors < MOST_DESCRIPTORS, "descriptors leak");
    assert!(worst.threads < MOST_THREADS, "threads leak");
    assert!(worst.resident_mib < LARGEST_MIB, "memory leaks");
    if length / 4 >= CACHES_ARE_FULL_AFTER {
        assert!(worst.resident_mib < before.resident_mib + LATE_GROWTH_MIB, "memory leaks slowly");
    }
}
