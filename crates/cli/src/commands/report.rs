//! `windfall report`: the HTML report of something that has run, written again.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use windfall_telemetry::report::{
    ComparisonResults, JournalReport, comparison_report, journal_report,
};
use windfall_telemetry::{Comparison, JournalReader};

use crate::arguments::Format;
use crate::commands::compare::{BASELINE, show};
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
    let results = ComparisonResults::from_json(&text)
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
    let JournalReport { summary, html } =
        journal_report(reader, &name).with_context(|| name.clone())?;
    let report = arguments.out.clone().unwrap_or_else(|| path.with_file_name("report.html"));
    write_whole(&report, &html)?;
    match arguments.format {
        Format::Json => print_json(&summary),
        Format::Text | Format::Csv | Format::Markdown => {
            print(&format!("report: {}", report.display()))
        }
    }
}
