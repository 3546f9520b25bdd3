//! `windfall report`: the HTML report of something that has run, written again.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use windfall_core::{Duration, TelemetrySink, Timestamp};
use windfall_telemetry::journal::Entry;
use windfall_telemetry::report::{ReportContext, comparison_report, run_report};
use windfall_telemetry::{Comparison, JournalReader, RunLabel, RunMetrics};

use crate::arguments::Format;
use crate::commands::compare::{BASELINE, Results, show};
use crate::output::{print, print_json, write_whole};

/// Write the HTML report of a finished run or comparison again.
///
/// A comparison is read from its results.json; a run from its journal, so that a journal is all that
/// needs to be kept.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A directory written by `windfall compare` or `simulate`, or a journal
    run: PathBuf,
    /// Where to write the report
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let results = arguments.run.join("results.json");
    let journal = super::explain::journal_of(&arguments.run);
    if results.is_file() {
        comparison(arguments, &results)?;
    } else if journal.is_file() {
        single_run(arguments, &journal)?;
    } else {
        bail!(
            "{}: holds neither results.json nor journal.jsonl; give a directory written by \
             `windfall compare` or `windfall simulate`",
            arguments.run.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn comparison(arguments: &Arguments, path: &Path) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    let results: Results = serde_json::from_str(&text)
        .with_context(|| format!("{name}: is not a result of `windfall compare`"))?;
    let comparison = Comparison::with_functions(results.rows, &results.costs, BASELINE);
    let report = arguments.out.clone().unwrap_or_else(|| path.with_file_name("report.html"));
    write_whole(&report, &comparison_report(&results.context, &comparison, &results.details))?;
    show(&comparison, arguments.format, &report.display().to_string())
}

fn single_run(arguments: &Arguments, path: &Path) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
    let reader = JournalReader::open(BufReader::new(file)).with_context(|| name.clone())?;
    let manifest = reader.manifest().clone();
    let warm_up =
        manifest.settings["warm_up"].as_u64().map_or(Duration::ZERO, Duration::from_nanos);
    let mut metrics = RunMetrics::new(Timestamp::ZERO + warm_up);
    for entry in reader {
        match entry.with_context(|| name.clone())? {
            Entry::Call(call) => metrics.call(&call),
            Entry::Interval(interval) => metrics.interval(&interval),
            Entry::Tick(tick) => metrics.tick_entry(&tick),
            Entry::End(_) => {}
        }
    }
    let load = manifest.settings["loads"][0].as_f64().unwrap_or_default();
    let label = RunLabel { policy: manifest.policy, load, seed: manifest.seed };
    let (summary, detail) = (metrics.summary(&label), metrics.detail(&label, &[]));
    let context = ReportContext {
        title: format!("{} on {}", label.policy, name),
        command: manifest.command,
        version: manifest.windfall,
        settings: manifest.settings,
    };
    let report = arguments.out.clone().unwrap_or_else(|| path.with_file_name("report.html"));
    write_whole(&report, &run_report(&context, &summary, &detail))?;
    match arguments.format {
        Format::Json => print_json(&summary),
        Format::Text | Format::Csv | Format::Markdown => {
            print(&format!("report: {}", report.display()))
        }
    }
}
