//! A process that works inside one of the groups: it joins, reports that it is ready, waits for the start and reports what
//! it measured.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{functions, groups};

/// What a worker measures of itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    /// How often it waited of its own accord.
    pub(crate) waits: u64,
    /// How many times longer one burst took than its work: 99th percentile.
    pub(crate) stretch_p99: f64,
}

/// CPU time of this process, nanoseconds.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock that all processes of the machine share, nanoseconds.
pub(crate) fn clock_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread, nanoseconds.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn burn(nanos: u64) {
    let end = thread_nanos() + nanos;
    while thread_nanos() < end {}
}

fn voluntary_waits() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    groups::find(&status, "voluntary_ctxt_switches:").context("no switches in /proc/self/status")
}

/// The worker's side: `worker GROUP KIND ...`.
pub(crate) fn work(arguments: &[String]) -> anyhow::Result<()> {
    let [group, kind, rest @ ..] = arguments else { bail!("worker GROUP KIND ...") };
    groups::join(group)?;
    let number = |place: usize| -> anyhow::Result<u64> {
        Ok(rest.get(place).context("a number is missing")?.parse()?)
    };
    let address = rest.get(1).and_then(|text| text.parse::<SocketAddr>().ok());
    if kind == "function" {
        // Once without counting: pages and connections are there afterwards, as in a warm instance.
        functions::call(&rest[0], address)?;
    }
    println!("ready");
    stdin().read_line(&mut String::new())?;
    let (wall, cpu, waits) = (Instant::now(), cpu_nanos(), voluntary_waits()?);
    let stretch_p99 = match kind.as_str() {
        "function" => {
            std::hint::black_box(functions::call(&rest[0], address)?);
            0.0
        }
        "donor" => donate(number(0)?, number(1)?, number(2)?),
        "hog" => hog(number(0)?),
        "sleeper" => return wake_and_spin(number(0)?, number(1)?),
        other => bail!("`{other}` is no kind of worker"),
    };
    let report = Report {
        wall_ms: wall.elapsed().as_secs_f64() * 1e3,
        cpu_ms: (cpu_nanos() - cpu) as f64 * 1e-6,
        waits: voluntary_waits()? - waits,
        stretch_p99,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Waits and works in turn, both in microseconds.
fn donate(work: u64, wait: u64, rounds: u64) -> f64 {
    let mut stretches: Vec<f64> = (0..rounds)
        .map(|_| {
            thread::sleep(Duration::from_micros(wait));
            let began = Instant::now();
            burn(work * 1000);
            began.elapsed().as_secs_f64() * 1e6 / work as f64
        })
        .collect();
    stretches.sort_by(f64::total_cmp);
    stretches[(stretches.len() * 99 / 100).min(stretches.len() - 1)]
}

fn hog(threads: u64) -> ! {
    for _ in 1..threads {
        thread::spawn(|| {
            loop {
                burn(1_000_000);
            }
        });
    }
    loop {
        burn(1_000_000);
    }
}

/// Sleeps `rounds` times for an odd while and then wants a core for 60 ms; prints when it woke.
fn wake_and_spin(rounds: u64, seed: u64) -> anyhow::Result<()> {
    for round in 0..rounds {
        let odd = (seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        thread::sleep(Duration::from_micros(250_000 + odd % 100_000));
        let woke = clock_nanos();
        println!("{woke}");
        stdout().flush()?;
        let end = Instant::now() + Duration::from_millis(150);
        while Instant::now() < end {}
    }
    Ok(())
}

/// A worker as its parent sees it.
pub(crate) struct Worker {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    pub(crate) fn start(group: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["worker", group])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("the worker's output")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("the worker {arguments:?} in `{group}` did not get ready");
        }
        Ok(Self { child, lines: Some(lines) })
    }

    pub(crate) fn go(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.child.stdin.as_mut().context("the worker's input")?)?)
    }

    /// What the worker prints, for whoever reads it first.
    pub(crate) fn lines(&mut self) -> anyhow::Result<BufReader<ChildStdout>> {
        self.lines.take().context("the worker's output was taken before")
    }

    pub(crate) fn report(mut self) -> anyhow::Result<Report> {
        let mut line = String::new();
        self.lines()?.read_line(&mut line)?;
        self.child.wait()?;
        serde_json::from_str(&line).with_context(|| format!("a worker's report `{line}`"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
