//! `windfall bench daemon`: ticks, pages and rows of the manager, and its share of the machine.

mod overhead;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use windfall_core::Timestamp;
use windfall_daemon::client::get;
use windfall_daemon::database::{Records, Retention, file_in};
use windfall_daemon::live::{Tape, TapeKind};
use windfall_daemon::simulated::{SimulatedPlatform, SimulatedWorld};
use windfall_daemon::{Clock, Mode, Server, Service, Supervisor, SupervisorSettings, prepare};
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

use crate::arguments::ObjectFormat;
use crate::output::{directory, print, print_json};

/// Ticks, pages and rows of the manager with many functions, and what it costs.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Functions on the simulated platform
    #[arg(long, default_value_t = 10_000)]
    functions: u32,
    /// Seconds for which decisions are written to the database
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Decisions per second that are offered to the database
    #[arg(long, default_value_t = 2000)]
    rate: u64,
    /// Folder for the database of the measurement
    #[arg(long, value_name = "DIR", default_value = "runs/bench-daemon")]
    out: std::path::PathBuf,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: ObjectFormat,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    functions: u32,
    /// The 99th percentile of a step with a tick, milliseconds on one core: of 300 such, three may be longer.
    tick_10000_ms: f64,
    tick_median_ms: f64,
    tick_longest_ms: f64,
    /// Resident memory with all functions, calls and pages, MB.
    memory_mb: f64,
    /// Median time of the list of functions and of one function's page over HTTP, milliseconds.
    list_ms: f64,
    function_ms: f64,
    /// Rows on disk per second while `rate` were offered, and rows that were dropped.
    decisions_per_s: f64,
    decisions_dropped: u64,
    /// Growth of resident memory while they were written, MB.
    decisions_memory_growth_mb: f64,
    /// CPU of the manager's own threads and time spent on sizing calls, over the whole machine at `calls_per_s`.
    overhead_share: f64,
    calls_per_s: f64,
    /// Where that was measured: on real functions, or on the simulated platform where there are none.
    overhead_on: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    directory(&arguments.out)?;
    // First of all: the spawner of the platform is a fork of this process, which must not have threads yet.
    let on_embedded = match overhead::on_embedded(&arguments.out) {
        Ok(measured) => Some(measured),
        Err(error) => {
            eprintln!(
                "overhead is measured on the simulated platform, because real functions do not run: {error:#}"
            );
            None
        }
    };
    let mut manager = manager(arguments)?;
    let ticks = ticks(&mut manager);
    let overhead = on_embedded.unwrap_or_else(|| overhead(&mut manager));
    let service = Service::start(manager, Clock::begin())?;
    let (list_ms, function_ms) = pages(&service)?;
    let memory_mb = memory_mb();
    drop(service);
    let rows = rows(arguments)?;
    let measured = Measured {
        functions: arguments.functions,
        tick_10000_ms: quantile(ticks.clone(), 0.99),
        tick_median_ms: median(ticks.clone()),
        tick_longest_ms: ticks.iter().copied().fold(0.0, f64::max),
        memory_mb,
        list_ms,
        function_ms,
        decisions_per_s: rows.per_second,
        decisions_dropped: rows.dropped,
        decisions_memory_growth_mb: rows.growth_mb,
        overhead_share: overhead.share,
        calls_per_s: overhead.calls_per_second,
        overhead_on: overhead.on,
    };
    match arguments.format {
        ObjectFormat::Json => print_json(&measured),
        ObjectFormat::Text => print(&format!("{measured:#?}")),
    }
}

fn manager(arguments: &Arguments) -> anyhow::Result<Supervisor> {
    let settings = SupervisorSettings {
        policy: "windfall+windfall-scaling".to_owned(),
        mode: Mode::Auto,
        ..SupervisorSettings::default()
    };
    let (prepared, parts) = prepare(settings)?;
    let generator = AzureLikeSettings {
        functions: arguments.functions,
        calls_per_hour: 360_000.0,
        ..AzureLikeSettings::default()
    };
    let scenario =
        Scenario { trace: Source::AzureLike(generator), loads: vec![0.7], ..Scenario::default() };
    let world = SimulatedWorld { scenario, seed: 1, speed: 1.0 };
    let platform = SimulatedPlatform::start(&world, parts)?;
    Ok(Supervisor::new(prepared, Box::new(platform), Records::nowhere()))
}

/// Milliseconds of the ticks of ten simulated minutes: all that the manager does in a step, taking in the calls that have
/// ended included, less the time in which the simulator lets the world go on.
fn ticks(manager: &mut Supervisor) -> Vec<f64> {
    let tick = |tick: u64| manager.step_without_platform(Timestamp::from_secs(2 * tick));
    (1..=300u64).map(tick).map(|took| took.as_secs_f64() * 1e3).collect()
}

struct Overhead {
    share: f64,
    calls_per_second: f64,
    on: &'static str,
}

/// What the manager itself takes: the steps of a simulated minute less the time inside the platform.
fn overhead(manager: &mut Supervisor) -> Overhead {
    let live = manager.live();
    let calls = || live.read().map_or(0, |live| live.totals.calls);
    let before = calls();
    let mut spent = Duration::ZERO;
    for step in 1..=600u64 {
        let now = Timestamp::from_nanos(600_000_000_000 + step * 100_000_000);
        spent += manager.step_without_platform(now);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let share = spent.as_secs_f64() / 60.0 / cores;
    Overhead { share, calls_per_second: (calls() - before) as f64 / 60.0, on: "simulated" }
}

/// Median milliseconds of the list and of one function, over HTTP.
fn pages(service: &Service) -> anyhow::Result<(f64, f64)> {
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(listen, service, "0".repeat(32), None)?;
    let url = format!("http://{}", server.address());
    let name = get(&url, "/api/v1/functions?limit=1")?;
    let name = name["functions"][0]["name"].as_str().unwrap_or_default().to_owned();
    let time = |path: &str| -> anyhow::Result<f64> {
        let mut times = Vec::new();
        for _ in 0..15 {
            let began = Instant::now();
            get(&url, path)?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(times))
    };
    Ok((time("/api/v1/functions")?, time(&format!("/api/v1/functions/{name}"))?))
}

struct Rows {
    per_second: f64,
    dropped: u64,
    growth_mb: f64,
}

/// Offers decisions at a rate and counts what is on disk.
fn rows(arguments: &Arguments) -> anyhow::Result<Rows> {
    let file = file_in(&arguments.out);
    remove(&file)?;
    let records = Records::open(&file, Retention::default())?;
    let mut tape = Tape::default();
    let (began, length) = (Instant::now(), Duration::from_secs(arguments.seconds.max(1)));
    let (mut offered, mut first_mb) = (0u64, None);
    while began.elapsed() < length {
        let due = (began.elapsed().as_secs_f64() * arguments.rate as f64) as u64;
        while offered < due {
            let now = Timestamp::from_nanos(began.elapsed().as_nanos() as u64);
            tape.note(
                now,
                TapeKind::Supervisor,
                "measurement".to_owned(),
                format!("row {offered}"),
            );
            if let Some(entry) = tape.entries().next_back() {
                records.decision(entry);
            }
            offered += 1;
        }
        // After a tenth of the time every buffer has its size.
        if first_mb.is_none() && began.elapsed() > length / 10 {
            first_mb = Some(memory_mb());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    records.flush();
    let seconds = began.elapsed().as_secs_f64();
    Ok(Rows {
        per_second: records.written() as f64 / seconds,
        dropped: records.dropped(),
        growth_mb: memory_mb() - first_mb.unwrap_or_else(memory_mb),
    })
}

fn remove(file: &Path) -> anyhow::Result<()> {
    for ending in ["db", "db-wal", "db-shm"] {
        match std::fs::remove_file(file.with_extension(ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    windfall_core::statistics::nearest_rank(&values, q).unwrap_or(0.0)
}

/// Resident memory of this process, MB; 0 where the system does not tell.
fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(0.0) * 1024.0 / 1e6
}
