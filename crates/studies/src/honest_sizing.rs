//! The honest benchmark of per-call sizing: every policy on functions and hours that nothing was tuned on,
//! paired by seed, with what is left to gain and what each idea adds.
//!
//! ```text
//!                 first 4 h        last 4 h
//!   train half    learn, tune      -
//!   test half     -                the tables
//! ```
//!
//! Cost is core-seconds *held*: granted, plus held back for running calls, which nobody else can use. The
//! floor under it is core-seconds *used*; the distance from the best heuristic to that floor is what live
//! management can gain, and `gap_closed` is the share of it that `windfall` gets. The savings are shown on
//! other readings of the trace as well, and incumbents also at their best over-commit.

mod ablation;
mod over_commit;
mod variants;
mod verdict;

use std::path::PathBuf;

use windfall_scenario::settings::Scenario;
use windfall_scenario::sweep::{Sweep, SweepError, Watcher};
use windfall_telemetry::{Comparison, RunDetail, RunSummary};
use windfall_trace::{AzureLikeSettings, Fold, ReadOptions, Source};

pub use ablation::{IDEAS, Idea};
pub use over_commit::{FACTORS, OverCommitted};
pub use variants::{Reading, Service, Variant};
pub use verdict::{Bar, GapClosed};

/// Policies of the benchmark, in the order of its tables.
pub const POLICIES: [&str; 9] = [
    "fixed",
    "windfall",
    "safeguard-random",
    "greedy",
    "ensure",
    "histogram",
    "libra",
    "shabari",
    "oracle",
];
/// The heuristics that the gap is measured from.
pub const HEURISTICS: [&str; 3] = ["histogram", "libra", "shabari"];
/// Minutes of the real trace: the first half is for training, the second for the tables.
const TRAIN_MINUTES: (u32, u32) = (0, 240);
const TEST_MINUTES: (u32, u32) = (240, 480);

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct HonestSizing {
    /// Folder of the 500-function trace (Azure Functions 2019); a generated trace if there is none.
    pub trace: Option<PathBuf>,
    /// Loads.
    pub loads: Vec<f64>,
    /// Seeds: other demands, reservations and arrival times of the same functions.
    pub seeds: Vec<u64>,
    /// More policies beside the built-in ones: names of the registry, or checkpoint files.
    pub more_policies: Vec<String>,
    /// Only the first so many minutes of the test hours, for a quick look.
    pub minutes: Option<u32>,
    /// Whether every idea of `windfall` is also switched off or on, one by one.
    pub with_ablation: bool,
    /// Whether incumbents are also played at every over-commit.
    pub with_over_commit: bool,
    /// Threads to use at most.
    pub threads: usize,
}

impl Default for HonestSizing {
    /// All loads, five seeds, on a generated trace until a folder is given.
    fn default() -> Self {
        Self {
            trace: None,
            loads: vec![0.5, 0.8, 1.0, 1.2],
            seeds: vec![1, 2, 3, 4, 5],
            more_policies: Vec::new(),
            minutes: None,
            with_ablation: true,
            with_over_commit: true,
            threads: 1,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct HonestResult {
    /// One line on the workload.
    pub workload: String,
    /// Whether the workload was generated because there was no trace.
    pub is_generated: bool,
    /// Every policy at every load and seed, aggregated, paired with `fixed`.
    pub comparison: Comparison,
    /// For reports: distributions and series of every run.
    pub details: Vec<RunDetail>,
    /// Per load, the share of the distance from the best heuristic to what is used.
    pub gap_closed: Vec<GapClosed>,
    /// What was promised, load by load, and whether it holds.
    pub bars: Vec<Bar>,
    /// What `windfall` saves on the trace as it is, capped, and without functions that sleep.
    pub variants: Vec<Variant>,
    /// Incumbents and `windfall` at every over-commit; empty if not asked for.
    pub over_commit: Vec<OverCommitted>,
    /// `windfall` itself, without single ideas (`- <idea>`) and with ones that were dropped (`+ <idea>`), on
    /// part of the seeds and hours; empty if not asked for.
    pub ablation: Vec<RunSummary>,
}

impl HonestSizing {
    /// The half of functions and hours that the tables are about.
    pub fn test_source(&self) -> Source {
        self.half(Fold::Test, TEST_MINUTES, 2)
    }

    /// The half that may be learned from and tuned on.
    pub fn training_source(&self) -> Source {
        self.half(Fold::Train, TRAIN_MINUTES, 1)
    }

    fn half(&self, fold: Fold, (from, to): (u32, u32), generated_hours: u32) -> Source {
        let to = self.minutes.map_or(to, |minutes| to.min(from + minutes.max(1)));
        match &self.trace {
            Some(path) => Source::File {
                path: path.clone(),
                options: ReadOptions {
                    window_minutes: Some((from, to)),
                    fold: Some(fold),
                    ..ReadOptions::default()
                },
            },
            // The generator has no files to split: another start hour and seed are other functions.
            None => Source::AzureLike(AzureLikeSettings {
                functions: 250,
                duration: windfall_core::Duration::from_mins(u64::from(to - from).min(120)),
                start_hour: f64::from(8 * generated_hours),
                ..AzureLikeSettings::default()
            }),
        }
    }

    /// The benchmark with these policies as a scenario file: what another process needs to play it again.
    pub fn scenario_file(&self, policies: &[String]) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let names: Vec<String> = policies.iter().map(|policy| quoted(policy)).collect();
        let trace = match self.test_source() {
            Source::File { path, options } => {
                let (from, to) = options.window_minutes.unwrap_or(TEST_MINUTES);
                let path = quoted(&path.display().to_string());
                format!("path = {path}\nfold = \"test\"\nwindow_minutes = [{from}, {to}]")
            }
            Source::AzureLike(settings) => format!(
                "functions = {}\nminutes = {:?}\nstart_hour = {:?}",
                settings.functions,
                settings.duration.as_secs_f64() / 60.0,
                settings.start_hour
            ),
        };
        format!(
            "name = \"honest-sizing\"\n\n[trace]\n{trace}\n\n[cluster]\nloads = {:?}\n\n[run]\nseeds = {:?}\n\
             policies = [{}]\n",
            self.loads,
            self.seeds,
            names.join(", ")
        )
    }

    fn scenario(&self, policies: Vec<String>) -> Scenario {
        Scenario {
            name: "honest-sizing".into(),
            trace: self.test_source(),
            loads: self.loads.clone(),
            seeds: self.seeds.clone(),
            policies,
            ..Scenario::default()
        }
    }

    /// Plays everything. `watcher` receives progress.
    pub fn play(&self, watcher: &dyn Watcher) -> Result<HonestResult, SweepError> {
        let mut policies: Vec<String> = POLICIES.map(str::to_owned).to_vec();
        policies.extend(self.more_policies.iter().cloned());
        let scenario = self.scenario(policies);
        let played = Sweep { scenario: &scenario, threads: self.threads }.play(watcher)?;
        let ablation = if self.with_ablation { self.play_ablation(watcher)? } else { Vec::new() };
        let variants = self.play_variants((&played.rows, &played.costs), watcher)?;
        let over_commit =
            if self.with_over_commit { self.play_over_commit(watcher)? } else { Vec::new() };
        let gap_closed = verdict::gap_closed(&played.rows);
        let comparison = Comparison::with_functions(played.rows, &played.costs, "fixed");
        Ok(HonestResult {
            workload: scenario.trace.describe(),
            is_generated: self.trace.is_none(),
            bars: verdict::bars(&comparison, &gap_closed),
            gap_closed,
            variants,
            over_commit,
            comparison,
            details: played.details,
            ablation,
        })
    }
}

#[cfg(test)]
mod tests;
