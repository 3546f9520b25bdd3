//! Measures what the Linux scheduler makes of quotas, weights and `cpu.idle`, for the simulator to be compared with.
//!
//! ```text
//! cargo build --profile quick -p windfall-cli --example measure_kernel
//! target/quick/examples/measure_kernel experiments/kernel_cpu 5      (as root, cgroup v1, 2 cores)
//! ```
//!
//! Writes `runs.csv`, one run per line, and `detection.csv`, one wake-up per line, to the folder that is named. Everything
//! runs below one parent group with the largest weight; the order of the runs is such that each repetition goes through
//! all of them once.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for one experiment")]

mod detection;
mod functions;
mod groups;
mod worker;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use groups::{Limits, Tree, USUAL_SHARES, counter};
use worker::{Report, Worker};

/// Donors that wait and work in turn: microseconds of work and wait, and rounds.
const LOADS: &[(&str, u64, u64, u64)] =
    &[("20-20", 20_000, 20_000, 75), ("3-5", 3_000, 5_000, 375), ("60-300", 60_000, 300_000, 9)];

/// How the donors' idle CPU is lent.
const LENDING: &[&str] =
    &["nobody", "idle", "shares2", "equal", "quota100", "quota20", "quota100burst"];

/// How the CPU of a function is limited; where a weight decides, two hungry threads of another group compete.
const SHARING: &[&str] = &[
    "alone",
    "quota75",
    "quota50",
    "quota25",
    "quota50p20",
    "quota25p20",
    "equal",
    "threefold",
    "shares2",
    "idle",
];

const GROUPS: &[&str] = &["donor0", "donor1", "function", "others", "watch"];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [first, rest @ ..] if first == "worker" => worker::work(rest),
        [folder, repeats] => measure(folder.into(), repeats.parse().context("repetitions")?),
        _ => bail!("measure_kernel FOLDER REPETITIONS"),
    }
}

fn measure(folder: PathBuf, repeats: u64) -> anyhow::Result<()> {
    let tree = Tree::make(GROUPS)?;
    groups::join("watch")?;
    let mut runs = String::from(
        "set,name,how,repeat,wall_ms,cpu_ms,others_cores,throttled_ms,periods_throttled,waits,stretch_p99,load_average\n",
    );
    for repeat in 1..=repeats {
        for load in LOADS {
            for how in LENDING {
                let row = lend(&tree, *load, how)?;
                writeln!(runs, "lending,{},{how},{repeat},{row}", load.0)?;
            }
        }
        let database = functions::serve()?.to_string();
        for (name, threads) in functions::NAMES {
            for how in SHARING {
                let row = call(&tree, (name, *threads), how, (&database, repeat))?;
                writeln!(runs, "function,{name},{how},{repeat},{row}")?;
            }
        }
        fs::write(folder.join("runs.csv"), &runs)?;
        eprintln!("repetition {repeat} of {repeats} done");
    }
    let delays = detection::measure(&tree, repeats)?;
    fs::write(folder.join("detection.csv"), delays)?;
    Ok(())
}

/// Two donors with bursty demand beside hungry borrowers.
fn lend(tree: &Tree, load: (&str, u64, u64, u64), how: &str) -> anyhow::Result<String> {
    let (_, work, wait, rounds) = load;
    let mean = work as f64 / (work + wait) as f64;
    let (mut donors, mut borrowers) = (Limits::default(), Limits::default());
    match how {
        "idle" => borrowers.is_idle = true,
        "shares2" => borrowers.shares = 2,
        "quota100" => donors.quota = Some((1.05 * mean, 100, 0.0)),
        "quota20" => donors.quota = Some((1.05 * mean, 20, 0.0)),
        "quota100burst" => donors.quota = Some((1.05 * mean, 100, 1.0)),
        _ => {}
    }
    if donors.quota.is_some() {
        borrowers.shares = 2;
    }
    tree.limit("others", borrowers)?;
    let mut hog = (how != "nobody").then(|| Worker::start("others", &["hog", "2"])).transpose()?;
    let [work, wait, rounds] = [work, wait, rounds].map(|number| number.to_string());
    let mut pair = Vec::new();
    for name in ["donor0", "donor1"] {
        pair.push(Worker::start(name, &["donor", &work, &wait, &rounds])?);
        tree.limit(name, donors)?;
    }
    if let Some(hog) = &mut hog {
        hog.go()?;
        thread::sleep(Duration::from_millis(100));
    }
    let before = Counters::read("donor0")?;
    let others = counter("cpuacct", "others", "cpuacct.usage", "")?;
    let began = worker::clock_nanos();
    for donor in &mut pair {
        donor.go()?;
        thread::sleep(Duration::from_millis(7));
    }
    let reports: Vec<Report> =
        pair.into_iter().map(Worker::report).collect::<anyhow::Result<_>>()?;
    let others = counter("cpuacct", "others", "cpuacct.usage", "")? - others;
    let lent = others as f64 / (worker::clock_nanos() - began) as f64;
    let after = Counters::read("donor0")?;
    let half = |of: fn(&Report) -> f64| reports.iter().map(of).sum::<f64>() / reports.len() as f64;
    let report = Report {
        wall_ms: half(|report| report.wall_ms),
        cpu_ms: half(|report| report.cpu_ms),
        waits: reports[0].waits,
        stretch_p99: half(|report| report.stretch_p99),
    };
    row(&report, lent, after.since(&before))
}

/// One call of a function.
fn call(
    tree: &Tree,
    (name, threads): (&str, u32),
    how: &str,
    (database, repeat): (&str, u64),
) -> anyhow::Result<String> {
    let (mut limits, mut others) = (Limits::default(), Limits::default());
    let cores = f64::from(threads);
    match how {
        "quota75" => limits.quota = Some((0.75 * cores, 100, 0.0)),
        "quota50" => limits.quota = Some((0.5 * cores, 100, 0.0)),
        "quota25" => limits.quota = Some((0.25 * cores, 100, 0.0)),
        "quota50p20" => limits.quota = Some((0.5 * cores, 20, 0.0)),
        "quota25p20" => limits.quota = Some((0.25 * cores, 20, 0.0)),
        "threefold" => limits.shares = 3 * USUAL_SHARES,
        "shares2" => others.shares = 2,
        "idle" => others.is_idle = true,
        _ => {}
    }
    let competes = limits.quota.is_none() && how != "alone";
    tree.limit("function", Limits::default())?;
    tree.limit("others", others)?;
    let mut hog = competes.then(|| Worker::start("others", &["hog", "2"])).transpose()?;
    let mut worker = Worker::start("function", &["function", name, database])?;
    tree.limit("function", limits)?;
    if let Some(hog) = &mut hog {
        hog.go()?;
    }
    // The period begins when the quota is written, so an odd wait puts the call anywhere in it.
    let odd = (repeat * 37 + name.len() as u64 * 11) % 100;
    thread::sleep(Duration::from_millis(200 + odd));
    let before = Counters::read("function")?;
    let competitors = counter("cpuacct", "others", "cpuacct.usage", "")?;
    let began = worker::clock_nanos();
    worker.go()?;
    let mut report = worker.report()?;
    let competitors = counter("cpuacct", "others", "cpuacct.usage", "")? - competitors;
    let others_cores = competitors as f64 / (worker::clock_nanos() - began) as f64;
    let passed = Counters::read("function")?.since(&before);
    report.cpu_ms = passed.used as f64 * 1e-6;
    row(&report, others_cores, passed)
}

/// What the kernel counts for a group.
struct Counters {
    used: u64,
    throttled: u64,
    periods_throttled: u64,
}

impl Counters {
    fn read(name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            used: counter("cpuacct", name, "cpuacct.usage", "")?,
            throttled: counter("cpu", name, "cpu.stat", "throttled_time")?,
            periods_throttled: counter("cpu", name, "cpu.stat", "nr_throttled")?,
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            used: self.used - before.used,
            throttled: self.throttled - before.throttled,
            periods_throttled: self.periods_throttled - before.periods_throttled,
        }
    }
}

fn row(report: &Report, others_cores: f64, passed: Counters) -> anyhow::Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!(
        "{:.3},{:.3},{others_cores:.3},{:.3},{},{},{:.3},{}",
        report.wall_ms,
        report.cpu_ms,
        passed.throttled as f64 * 1e-6,
        passed.periods_throttled,
        report.waits,
        report.stretch_p99,
        load.split(' ').next().unwrap_or("0"),
    ))
}
