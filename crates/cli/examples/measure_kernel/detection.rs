//! How long it takes until the kernel's counters show that a call which woke up wants more CPU than its quota.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, Read, Seek};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::groups::{self, Limits, Tree, find};
use crate::worker::{Worker, clock_nanos};

/// The quota of the call that wakes up, cores.
const QUOTA: f64 = 0.05;
/// Time between two samples.
const LOOK: Duration = Duration::from_millis(5);
/// Wake-ups per repetition and period.
const WAKES: u64 = 10;

/// A counter that is read again and again through one descriptor.
struct Counter {
    file: File,
    key: &'static str,
}

impl Counter {
    fn open(path: &Path, key: &'static str) -> anyhow::Result<Self> {
        Ok(Self { file: File::open(path)?, key })
    }

    fn read(&mut self) -> anyhow::Result<u64> {
        let mut text = String::new();
        self.file.rewind()?;
        self.file.read_to_string(&mut text)?;
        find(&text, self.key).context("the counter")
    }
}

/// One line per wake-up: milliseconds until the throttling and until the use showed.
pub(crate) fn measure(tree: &Tree, repeats: u64) -> anyhow::Result<String> {
    let mut text = String::from("period_ms,repeat,throttling_ms,use_ms\n");
    for repeat in 1..=repeats {
        for period in [100, 20] {
            for (throttling, used) in wake_ups(tree, period, repeat)? {
                writeln!(text, "{period},{repeat},{throttling:.2},{used:.2}")?;
            }
        }
    }
    Ok(text)
}

fn wake_ups(tree: &Tree, period: u64, repeat: u64) -> anyhow::Result<Vec<(f64, f64)>> {
    tree.limit("function", Limits::default())?;
    let mut worker =
        Worker::start("function", &["sleeper", &WAKES.to_string(), &(repeat * 1000).to_string()])?;
    tree.limit("function", Limits { quota: Some((QUOTA, period, 0.0)), ..Limits::default() })?;
    worker.go()?;
    let mut throttled =
        Counter::open(&groups::file("cpu", "function", "cpu.stat"), "nr_throttled")?;
    let mut used = Counter::open(&groups::file("cpuacct", "function", "cpuacct.usage"), "")?;
    let (send, wakes) = mpsc::channel();
    let mut lines = worker.lines()?;
    thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Ok(at) = line.trim().parse::<u64>()
                && send.send(at).is_err()
            {
                return;
            }
            line.clear();
        }
    });
    let mut samples = vec![(clock_nanos(), throttled.read()?, used.read()?)];
    let mut woke: Vec<u64> = Vec::new();
    while woke.len() < WAKES as usize || clock_nanos() < woke[woke.len() - 1] + 500_000_000 {
        thread::sleep(LOOK);
        samples.push((clock_nanos(), throttled.read()?, used.read()?));
        woke.extend(wakes.try_iter());
    }
    Ok(woke.iter().map(|&at| delays(at, &samples)).collect())
}

/// Milliseconds from a wake-up until a sample shows throttling, and until one shows more use than the quota's mean rate.
fn delays(woke: u64, samples: &[(u64, u64, u64)]) -> (f64, f64) {
    let first = samples.partition_point(|(at, ..)| *at < woke).max(1);
    let since = |at: u64| (at - woke) as f64 * 1e-6;
    let (before, after) = (&samples[first - 1], &samples[first..]);
    let throttling = after.iter().find(|sample| sample.1 > before.1);
    let rate =
        |pair: &[(u64, u64, u64)]| (pair[1].2 - pair[0].2) as f64 / (pair[1].0 - pair[0].0) as f64;
    let burst = samples[first - 1..].windows(2).find(|pair| rate(pair) > 2.0 * QUOTA);
    (
        throttling.map_or(f64::NAN, |sample| since(sample.0)),
        burst.map_or(f64::NAN, |pair| since(pair[1].0)),
    )
}
