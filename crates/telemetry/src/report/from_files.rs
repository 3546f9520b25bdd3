//! Reports from what a run or a comparison left behind, so that a page can be written again without
//! running anything.

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use windfall_core::{Duration, TelemetrySink, Timestamp};

use super::{ReportContext, run_report};
use crate::journal::Entry;
use crate::{
    FunctionCosts, JournalError, JournalReader, RunDetail, RunLabel, RunMetrics, RunSummary,
};

/// The contents of `results.json`: everything that the report of a comparison is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonResults {
    /// Where the numbers come from.
    pub context: ReportContext,
    /// One summary per policy, load and seed.
    pub rows: Vec<RunSummary>,
    /// What the charts are drawn from.
    pub details: Vec<RunDetail>,
    /// What each function held in each run, for intervals over functions; none in older files.
    #[serde(default)]
    pub costs: Vec<FunctionCosts>,
}

impl ComparisonResults {
    /// Reads the text of a `results.json`.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// A run as its journal shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalReport {
    /// Its metrics.
    pub summary: RunSummary,
    /// The page.
    pub html: String,
}

/// Reads a journal to its end and draws the report of the run; `name` goes into the heading.
pub fn journal_report<R: BufRead>(
    mut journal: JournalReader<R>,
    name: &str,
) -> Result<JournalReport, JournalError> {
    let manifest = journal.manifest().clone();
    let warm_up =
        manifest.settings["warm_up"].as_u64().map_or(Duration::ZERO, Duration::from_nanos);
    let mut metrics = RunMetrics::new(Timestamp::ZERO + warm_up);
    for entry in &mut journal {
        match entry? {
            Entry::Call(call) => metrics.call(&call),
            Entry::Interval(interval) => metrics.interval(&interval),
            Entry::Tick(tick) => metrics.tick_entry(&tick),
            Entry::Functions(_) | Entry::End(_) => {}
        }
    }
    let load = manifest.settings["loads"][0].as_f64().unwrap_or_default();
    let label = RunLabel { policy: manifest.policy, load, seed: manifest.seed };
    let names = journal.names().in_order();
    let (summary, detail) = (metrics.summary(&label), metrics.detail(&label, &names));
    let context = ReportContext {
        title: format!("{} on {name}", label.policy),
        command: manifest.command,
        version: manifest.windfall,
        settings: manifest.settings,
    };
    let html = run_report(&context, &summary, &detail);
    Ok(JournalReport { summary, html })
}
