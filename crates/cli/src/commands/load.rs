//! `windfall load`: calls that are sent when they are due, and what came of them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use windfall_core::{Duration, Seed};
use windfall_load::{Credentials, Generator, Report, Schedule, Shape, Target, run as send};
use windfall_trace::{ReadOptions, Source};

use crate::arguments::{Format, threads, window};
use crate::output::{print, print_json};

/// Arguments of `load`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// URL to call; several take turns
    #[arg(long, value_name = "URL", help_heading = "Targets")]
    url: Vec<String>,
    /// Action to invoke and wait for; several take turns
    #[arg(long, value_name = "NAME", help_heading = "Targets")]
    action: Vec<String>,
    /// API host of the actions, else from the environment or .wskprops
    #[arg(long, value_name = "HOST", help_heading = "Targets")]
    apihost: Option<String>,
    /// Key of the actions, else from the environment or .wskprops
    #[arg(long, value_name = "UUID:KEY", help_heading = "Targets")]
    auth: Option<String>,
    /// Body of every call; parameters of an action
    #[arg(long, value_name = "TEXT", help_heading = "Targets")]
    body: Option<String>,
    /// Header of every call to a URL, e.g. 'X-Name: value'
    #[arg(long, value_name = "HEADER", help_heading = "Targets")]
    header: Vec<String>,
    /// HTTP method; GET without a body, POST with one
    #[arg(long, help_heading = "Targets")]
    method: Option<String>,
    /// Calls per second on average [default: 10]
    #[arg(long, value_name = "CALLS", help_heading = "Schedule", conflicts_with = "trace")]
    rate: Option<f64>,
    /// How long calls are sent [default: 10, or the whole trace]
    #[arg(long, help_heading = "Schedule")]
    seconds: Option<f64>,
    /// How calls are spread over time [default: poisson]
    #[arg(long, value_enum, help_heading = "Schedule", conflicts_with = "trace")]
    shape: Option<ShapeName>,
    /// Replay the arrivals of a trace
    #[arg(long, value_name = "PATH", help_heading = "Schedule")]
    trace: Option<PathBuf>,
    /// Minutes of the trace, e.g. 0-120
    #[arg(long, value_name = "MINUTES", help_heading = "Schedule", requires = "trace")]
    minutes: Option<String>,
    /// How many times faster than recorded [default: 1]
    #[arg(long, value_name = "FACTOR", help_heading = "Schedule", requires = "trace")]
    speed: Option<f64>,
    /// The seed of arrivals
    #[arg(long, default_value_t = 1, help_heading = "Schedule")]
    seed: u64,
    /// Seconds after which a call is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, help_heading = "Limits")]
    timeout: f64,
    /// Calls that may wait for an answer at the same time
    #[arg(long, value_name = "CALLS", default_value_t = 4096, help_heading = "Limits")]
    in_flight: usize,
    /// Threads that send and receive
    #[arg(long, default_value_t = 1, value_parser = threads, help_heading = "Limits")]
    threads: usize,
    /// How to print the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How calls are spread over time.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShapeName {
    /// Equal gaps
    Constant,
    /// Independent calls
    Poisson,
    /// Five times the rate for a tenth of the time
    Bursty,
}

impl From<ShapeName> for Shape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::Constant => Self::Constant,
            ShapeName::Poisson => Self::Poisson,
            ShapeName::Bursty => Self::Bursty,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !matches!(arguments.format, Format::Text | Format::Json) {
        bail!("--format of a load report is text or json");
    }
    let targets = targets(arguments)?;
    let schedule = schedule(arguments, &targets)?;
    let settings = Generator {
        timeout: seconds("--timeout", arguments.timeout, 86_400.0)?,
        most_in_flight: arguments.in_flight,
        threads: arguments.threads,
        ..Generator::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // The first Ctrl-C ends the sending and prints what was measured.
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("Ctrl-C cannot be caught")?;
    let (count, length) = (schedule.calls().len(), schedule.length().as_secs_f64());
    eprintln!("sending {count} calls in {length:.1} s; Ctrl-C stops and reports");
    let report = Report::new(&send(&schedule, &targets, &settings, &stop)?);
    match arguments.format {
        Format::Json => print_json(&report)?,
        _ => print(&report.to_text())?,
    }
    // Nothing worked: the answer to "does it carry this load" is no.
    Ok(if report.success > 0.0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn targets(arguments: &Arguments) -> anyhow::Result<Vec<Target>> {
    let body = arguments.body.as_deref();
    let mut targets = Vec::new();
    for url in &arguments.url {
        let target = Target::url(url, &arguments.header, body)?;
        targets.push(match &arguments.method {
            Some(method) => target.with_method(method)?,
            None => target,
        });
    }
    if !arguments.action.is_empty() {
        let credentials =
            Credentials::find(arguments.apihost.as_deref(), arguments.auth.as_deref())?;
        for name in &arguments.action {
            targets.push(Target::action(name, &credentials, body.unwrap_or("{}"))?);
        }
    }
    if targets.is_empty() {
        bail!("nothing to call: give --url URL or --action NAME");
    }
    Ok(targets)
}

fn schedule(arguments: &Arguments, targets: &[Target]) -> anyhow::Result<Schedule> {
    let length =
        arguments.seconds.map(|given| seconds("--seconds", given, 86_400.0)).transpose()?;
    let seed = Seed::new(arguments.seed);
    let Some(path) = &arguments.trace else {
        let shape = arguments.shape.map_or_else(Shape::default, Shape::from);
        let length = length.unwrap_or(Duration::from_secs(10));
        let rate = arguments.rate.unwrap_or(10.0);
        return Ok(Schedule::generate(shape, rate, length, targets.len(), seed)?);
    };
    let mut options = ReadOptions::default();
    if let Some(minutes) = &arguments.minutes {
        options.window_minutes = Some(window(minutes)?);
    }
    let mut opened = Source::File { path: path.clone(), options }.open_with_notices(seed)?;
    for notice in &opened.notices {
        eprintln!("{notice}");
    }
    let names: Vec<&str> = targets.iter().map(Target::name).collect();
    let speed = arguments.speed.unwrap_or(1.0);
    Ok(Schedule::from_trace(opened.workload.as_mut(), &names, speed, length)?)
}

fn seconds(flag: &str, given: f64, most: f64) -> anyhow::Result<Duration> {
    if !(given > 0.0 && given <= most) {
        bail!("{flag} is {given}, allowed is more than 0 up to {most} seconds");
    }
    Ok(Duration::from_secs_f64(given))
}
