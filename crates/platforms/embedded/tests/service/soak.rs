//! The service under load for a while: memory, descriptors and threads stay as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::http::Api;
use crate::server::{Server, all_gone};

/// What a process uses.
#[derive(Clone, Copy, Debug)]
struct Size {
    resident_mib: f64,
    descriptors: usize,
    threads: u64,
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

pub(crate) fn it_stays_as_large_as_it_is() {
    let minutes = std::env::var("WINDFALL_SOAK_MINUTES").ok();
    let minutes: Option<f64> = minutes.map(|minutes| minutes.parse().expect("minutes"));
    let length = minutes.map_or(Duration::from_secs(5), |one| Duration::from_secs_f64(one * 60.0));
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
                    assert!(answer.is_some(), "{path}: no answer");
                    calls.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    // Caches and pools fill up first.
    std::thread::sleep(length / 4);
    let before = size_of(server.pid());
    let (begun, mut worst) = (Instant::now(), before);
    while begun.elapsed() < length * 3 / 4 {
        std::thread::sleep(Duration::from_millis(500).min(length / 8));
        let now = size_of(server.pid());
        worst.resident_mib = worst.resident_mib.max(now.resident_mib);
        worst.descriptors = worst.descriptors.max(now.descriptors);
        worst.threads = worst.threads.max(now.threads);
    }
    let after = size_of(server.pid());
    stop.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().expect("a client"));
    let calls = calls.load(Ordering::SeqCst);
    println!("     {calls} calls; {before:?}, later at most {worst:?}, at the end {after:?}");
    assert!(server.terminate() && all_gone());
    // Instances come and go with calls that crash them; a leak of one descriptor per call would be hundreds.
    assert!(after.descriptors < before.descriptors + 40, "descriptors leak");
    assert!(after.threads < before.threads + 20, "threads leak");
    assert!(after.resident_mib < before.resident_mib * 1.5 + 32.0, "memory leaks");
}
