//! `windfall conformance`: recorded decisions of real autoscalers, replayed through ours.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;
use windfall_autoscalers::stories::{
    Difference, Report, StoryError, replay_hpa, replay_kpa, replay_vpa, replay_vpa_updater,
};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// Replay recorded decisions of a real autoscaler through ours.
///
/// Prints how many decisions are equal and, for the first that is not, the story, the time, both values
/// and what was seen. Exits with 1 on any difference.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Whose decisions
    #[arg(value_enum)]
    autoscaler: Autoscaler,
    /// Recorded stories, one JSON object a line, plain or gzip; for vpa also updater cases
    file: PathBuf,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Autoscaler {
    /// Knative's pod autoscaler
    Kpa,
    /// Kubernetes' horizontal pod autoscaler
    Hpa,
    /// Kubernetes' vertical pod autoscaler: recommender or updater
    Vpa,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = arguments.file.display().to_string();
    let bytes = fs::read(&arguments.file).with_context(|| format!("{name}: cannot be read"))?;
    let report = replay(arguments.autoscaler, &bytes).map_err(|error| error.in_file(&name))?;
    show(&report, arguments.format)?;
    Ok(if report.is_equal() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn replay(autoscaler: Autoscaler, bytes: &[u8]) -> Result<Report, StoryError> {
    match autoscaler {
        Autoscaler::Kpa => replay_kpa(bytes),
        Autoscaler::Hpa => replay_hpa(bytes),
        // The two kinds of files have nothing in common, so whichever reads is the right one.
        Autoscaler::Vpa => {
            replay_vpa(bytes).or_else(|error| replay_vpa_updater(bytes).map_err(|_| error))
        }
    }
}

fn show(report: &Report, format: Format) -> anyhow::Result<()> {
    let Report { stories, decisions, equal, first_difference } = report;
    match format {
        Format::Json => {
            let first = first_difference.as_ref().map(|difference| {
                let Difference { story, time, expected, ours, seen } = difference;
                json!({ "story": story, "time": time, "expected": expected, "ours": ours, "seen": seen })
            });
            print_json(&json!({
                "stories": stories,
                "decisions": decisions,
                "equal": equal,
                "first_difference": first,
            }))
        }
        Format::Text | Format::Csv | Format::Markdown => {
            let mut text = format!("{stories} stories, {decisions} decisions, {equal} equal");
            if let Some(Difference { story, time, expected, ours, seen }) = first_difference {
                text += &format!(
                    "\nfirst difference: story {story} at {time}\n  expected {expected}\n  \
                     ours     {ours}\n  seen     {seen}"
                );
            }
            print(&text)
        }
    }
}
