//! `windfall trace`: look at traces, make them, change their format.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use windfall_core::{Seed, Workload};
use windfall_telemetry::report::{TracePicture, trace_report};
use windfall_trace::{TraceSummary, native, summarise};

use crate::arguments::{Format, WorldArguments};
use crate::output::{WholeFile, print, print_json, write_whole};
use crate::progress;

/// Inspect, generate and convert traces.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Draw a trace: arrivals over time, run times, popularity
    Inspect(Inspect),
    /// Generate an Azure-like trace into a file of Windfall's own format
    Generate(Write),
    /// Turn any trace that can be read into a file of Windfall's own format
    Convert(Convert),
}

#[derive(Args)]
struct Inspect {
    /// The trace; without it, the generated default
    path: Option<PathBuf>,
    #[command(flatten)]
    world: WorldArguments,
    /// The seed of what a trace does not say
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the picture as an HTML page too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args)]
struct Write {
    /// The file to write
    out: PathBuf,
    #[command(flatten)]
    world: WorldArguments,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args)]
struct Convert {
    /// The trace to read
    path: PathBuf,
    #[command(flatten)]
    write: Write,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Inspect(arguments) => inspect(arguments)?,
        Command::Generate(arguments) => write(arguments, arguments.world.clone())?,
        Command::Convert(Convert { path, write: arguments }) => {
            let world = WorldArguments { trace: Some(path.clone()), ..arguments.world.clone() };
            write(arguments, world)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn inspect(arguments: &Inspect) -> anyhow::Result<()> {
    let mut world = arguments.world.clone();
    world.trace = arguments.path.clone().or(world.trace);
    let scenario = world.scenario()?;
    let mut opened = scenario.trace.open_with_notices(Seed::new(arguments.seed))?;
    for notice in &opened.notices {
        eprintln!("{notice}");
    }
    let bar = progress::counter("reading");
    let summary = summarise(opened.workload.as_mut(), &mut |calls| bar.set_position(calls));
    bar.finish_and_clear();
    if let Some(path) = &arguments.html {
        let picture = picture(&summary, &scenario.trace.describe());
        write_whole(path, &trace_report(env!("CARGO_PKG_VERSION"), &picture))?;
    }
    match arguments.format {
        Format::Json => print_json(&summary),
        Format::Text | Format::Csv | Format::Markdown => {
            let page = arguments.html.as_ref().map_or_else(
                || "\nhint: --html FILE draws the same as a page".to_owned(),
                |path| format!("\npage: {}", path.display()),
            );
            print(&format!("{}\n{}{page}", scenario.trace.describe(), summary.text()))
        }
    }
}

fn picture(summary: &TraceSummary, title: &str) -> TracePicture {
    let bin = summary.bin_seconds.max(1e-9);
    let calls = summary.load.calls.max(1) as f64;
    let times = (0u32..).map(|i| (f64::from(i) + 0.5) * bin);
    let span = summary.load.span;
    let hours = span.as_secs_f64() / 3600.0;
    TracePicture {
        title: format!("Trace: {title}"),
        notes: format!(
            "{} calls of {} functions in {:.1} hours; {} functions were called. CPU work, memory \
             over time and input sizes are drawn from fitted models where the trace is silent.",
            summary.load.calls, summary.functions, hours, summary.functions_called
        ),
        arrivals: times.zip(&summary.arrivals).map(|(t, n)| (t, *n as f64 / bin)).collect(),
        durations: summary
            .run_histogram
            .iter()
            .map(|(millis, n)| (millis * 1e-3, *n as f64 / calls))
            .collect(),
        popularity: summary
            .popularity
            .iter()
            .map(|(rank, share)| (*rank as f64, share * calls))
            .collect(),
        triggers: summary
            .triggers
            .iter()
            .map(|(trigger, _, calls)| (format!("{trigger:?}").to_lowercase(), *calls as f64))
            .collect(),
        facts: vec![
            (
                "core-seconds reserved".into(),
                format!("{:.0}", summary.load.reserved_core_ns * 1e-9),
            ),
            ("core-seconds of work".into(), format!("{:.0}", summary.load.used_core_ns * 1e-9)),
            ("MiB-seconds reserved".into(), format!("{:.0}", summary.load.reserved_mib_ns * 1e-9)),
        ],
    }
}

fn write(arguments: &Write, world: WorldArguments) -> anyhow::Result<()> {
    let scenario = world.scenario()?;
    let mut opened = scenario.trace.open_with_notices(Seed::new(arguments.seed))?;
    for notice in &opened.notices {
        eprintln!("{notice}");
    }
    let workload = opened.workload.as_mut();
    let file = WholeFile::create(&arguments.out)?;
    let mut writer = native::Writer::new(file, workload.functions(), workload.horizon())?;
    let bar = progress::counter("writing");
    let mut calls = 0u64;
    while let Some(arrival) = workload.next_arrival() {
        writer.push(&arrival)?;
        calls += 1;
        if calls.is_multiple_of(1 << 14) {
            bar.set_position(calls);
        }
    }
    writer.finish()?.commit()?;
    bar.finish_and_clear();
    let out = arguments.out.display().to_string();
    match arguments.format {
        Format::Json => print_json(&serde_json::json!({ "file": out, "calls": calls })),
        Format::Text | Format::Csv | Format::Markdown => {
            print(&format!("{calls} calls of {} written to {out}", scenario.trace.describe()))
        }
    }
}
