//! `windfall compare`: several policies on the same calls.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use windfall_core::{
    CallRecord, FunctionId, FunctionProfile, IntervalRecord, TelemetrySink, TickRecord,
};
use windfall_scenario::run::Run;
use windfall_scenario::sweep::{Journal, Sweep, Watcher};
use windfall_scenario::{Scenario, SweepResult};
use windfall_telemetry::report::{ComparisonResults, ReportContext, comparison_report};
use windfall_telemetry::{Comparison, JournalKinds, JournalWriter, RunLabel, RunManifest};

use crate::arguments::{Format, WorldArguments, load, seeds, threads};
use crate::output::{command_line, directory, print, print_json, write_whole};
use crate::progress;

/// Run several policies on the same calls and compare them.
///
/// Without arguments: a generated Azure-like hour at loads 0.5, 0.8 and 1.1, all classic policies, three
/// seeds. Prints a table and writes an HTML report.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    world: WorldArguments,
    /// Policies to run, e.g. fixed,histogram, or files of checkpoints (.safetensors)
    #[arg(
        long,
        visible_alias = "policy",
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Runs"
    )]
    policies: Vec<String>,
    /// Loads to run, e.g. 0.5,0.8: what users reserve over what there is
    #[arg(long, value_name = "LOADS", value_delimiter = ',', value_parser = load, help_heading = "Runs")]
    loads: Vec<f64>,
    /// 5 for seeds 1 to 5, or a list 7,9 or a range 3-6
    #[arg(long, value_name = "SEEDS", value_parser = seeds, help_heading = "Runs")]
    seeds: Option<std::vec::Vec<u64>>,
    /// Threads; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Runs")]
    threads: Option<usize>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    /// Directory for report and results
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Write the journal of every run into the directory too
    #[arg(long, help_heading = "Output")]
    journals: bool,
    /// Print the resolved settings and stop
    #[arg(long, help_heading = "Output")]
    show_settings: bool,
}

/// The policy that all others are paired with.
pub(crate) const BASELINE: &str = "fixed";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let scenario = arguments.scenario()?;
    if arguments.show_settings {
        print_json(&scenario)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = format!("compare-{}", scenario.digest());
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
    let watcher = Bars {
        bar: progress::calls(0),
        journals: arguments.journals.then(|| out.clone()),
        scenario: &scenario,
    };
    if arguments.journals {
        directory(&out)?;
    }
    let threads = arguments.threads.unwrap_or_else(all_threads);
    let SweepResult { rows, details, costs } =
        Sweep { scenario: &scenario, threads }.play(&watcher)?;
    watcher.bar.finish_and_clear();

    let context = ReportContext {
        title: format!("Comparison: {}", scenario.name),
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::to_value(&scenario)?,
    };
    let comparison = Comparison::with_functions(rows.clone(), &costs, BASELINE);
    directory(&out)?;
    let report = out.join("report.html");
    write_whole(&report, &comparison_report(&context, &comparison, &details))?;
    let results = ComparisonResults { context, rows, details, costs };
    write_whole(&out.join("results.json"), &serde_json::to_string(&results)?)?;
    show(&comparison, arguments.format, &report.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a comparison and where its report is.
pub(crate) fn show(comparison: &Comparison, format: Format, report: &str) -> anyhow::Result<()> {
    match format {
        Format::Text => print(&format!("{}\nreport: {report}", comparison.to_text())),
        Format::Csv => print(&comparison.to_csv()),
        Format::Markdown => print(&comparison.to_markdown()),
        Format::Json => {
            let mut json = comparison.to_json();
            json["report"] = report.into();
            print_json(&json)
        }
    }
}

impl Arguments {
    fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = self.world.scenario()?;
        if !self.policies.is_empty() {
            scenario.policies.clone_from(&self.policies);
        }
        if !self.loads.is_empty() {
            scenario.loads.clone_from(&self.loads);
        }
        if let Some(seeds) = &self.seeds {
            scenario.seeds.clone_from(seeds);
        }
        scenario.check()?;
        Ok(scenario)
    }
}

pub(crate) fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Shows how far a sweep has come, and opens its journals.
struct Bars<'a> {
    bar: ProgressBar,
    journals: Option<PathBuf>,
    scenario: &'a Scenario,
}

impl Watcher for Bars<'_> {
    fn begins(&self, calls: u64, runs: u64) {
        self.bar.inc_length(calls * runs);
    }

    fn calls(&self, more: u64) {
        self.bar.inc(more);
    }

    fn run_ends(&self, run: &Run<'_>) {
        self.bar.set_message(format!("{} at {}", run.policy, run.load));
    }

    fn journal(&self, run: &Run<'_>) -> Result<Option<Box<dyn Journal>>, io::Error> {
        let Some(directory) = &self.journals else { return Ok(None) };
        fs::create_dir_all(directory)?;
        let RunLabel { policy, load, seed } = run.label();
        let path = directory.join(format!("{policy}-load{load}-seed{seed}.jsonl"));
        let manifest = manifest(self.scenario, run)?;
        let file = File::create(&path)?;
        Ok(Some(Box::new(FileJournal(JournalWriter::new(file, &manifest, JournalKinds::ALL)))))
    }
}

/// What a journal says about its run. The command is left out: it differs between one thread and eight,
/// and the journal must not.
pub(crate) fn manifest(scenario: &Scenario, run: &Run<'_>) -> io::Result<RunManifest> {
    Ok(RunManifest {
        windfall: env!("CARGO_PKG_VERSION").to_owned(),
        command: format!(
            "windfall simulate --policy {} --load {} --seed {}",
            run.policy, run.load, run.seed
        ),
        policy: run.label().policy,
        seed: run.seed,
        scenario: scenario.digest(),
        settings: serde_json::to_value(scenario)?,
        ..RunManifest::default()
    })
}

/// A journal in a file that can be followed while it is written; its last line says that it is complete.
struct FileJournal(JournalWriter<File>);

impl TelemetrySink for FileJournal {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        self.0.functions(first, functions);
    }

    fn tick(&mut self, tick: &TickRecord) {
        self.0.tick(tick);
    }

    fn call(&mut self, call: &CallRecord) {
        self.0.call(call);
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        self.0.interval(interval);
    }
}

impl Journal for FileJournal {
    fn close(self: Box<Self>) -> io::Result<()> {
        self.0.finish().map(drop)
    }
}
