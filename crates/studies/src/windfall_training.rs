//! Sets the parameters of `windfall` by playing the training half, from scratch.
//!
//! ```text
//!   for each round, for each parameter:   try it a step up and a step down, keep what costs less
//!
//!   cost = ln(granted / used)
//!        + 0.02 ln(bounded p99)
//!        + 10 ln(p99 / best p99 of the heuristics on the same calls), within 0 and 10 x 0.01
//!        + 0.1 (violations over 0.03 % of harvested calls, in units of that)
//!   mean over loads and seeds of the training half
//! ```
//!
//! The third term is a promise rather than a price: where nobody waits, every heuristic has a p99 of 1, and
//! cores that are saved by making one call in a hundred 0.4 % longer cost 10 x 0.004, as much as 4 % of all
//! cores. One of the loads is so low that nobody waits, and calls of the first minutes do not count: among them
//! one in fifty has a cold start, which would decide the p99 alone. A p99 that is off by more than a hundredth
//! is a matter of waiting, which differs by luck, and costs no more than that.
//!
//! A step is a factor that shrinks from round to round: 2, then 1.4. All candidates meet the same
//! calls, so a difference is the parameter's and not the draw's. What the policy learns while it runs (quantiles,
//! margins, experience) is not stored: it is learned anew from every function's own calls, and the same file
//! serves functions it has never seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use windfall_agents::windfall_parameters::{self as parameters, PARAMETERS, Parameter};
use windfall_core::statistics::mean;
use windfall_core::{Duration, Seed};
use windfall_policy::WindfallSizingSettings;
use windfall_rl::Checkpoint;
use windfall_scenario::run::{NoJournal, Run, RunError, reserved};
use windfall_scenario::settings::Scenario;
use windfall_telemetry::RunSummary;
use windfall_trace::Source;

use crate::honest_sizing::{HEURISTICS, HonestSizing};

/// Violations among harvested calls that cost nothing.
const FREE_VIOLATIONS: f64 = 0.0003;
/// What a p99 above that of the best heuristic costs.
const BROKEN_P99: f64 = 10.0;
/// Above this, in logarithms, a p99 is a matter of luck.
const MOST_SLOWER: f64 = 0.01;
/// A change must pay this much to be kept.
const WORTH_IT: f64 = 5e-4;

/// How the parameters are set.
#[derive(Clone, Debug, Serialize)]
pub struct WindfallTraining {
    /// Where training calls come from.
    pub source: Source,
    /// Loads that every candidate is played at.
    pub loads: Vec<f64>,
    /// Seeds that every candidate is played from.
    pub seeds: Vec<u64>,
    /// Calls before this do not count.
    pub warm_up: Duration,
    /// The factor of a step, round by round.
    pub steps: Vec<f64>,
    /// Where the search begins.
    pub start: WindfallSizingSettings,
    /// Threads; the result does not depend on it.
    #[serde(skip)]
    pub threads: usize,
}

/// A parameter that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Which. Scripts know it by the shorter name.
    #[serde(rename = "dial")]
    pub parameter: &'static str,
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
    /// Mean cost before.
    pub cost_before: f64,
    /// Mean cost after.
    pub cost_after: f64,
    /// Whether it was kept.
    pub kept: bool,
}

/// A finished search.
#[derive(Clone, Debug)]
pub struct TrainedWindfall {
    /// The parameters.
    pub settings: WindfallSizingSettings,
    /// As a file.
    pub checkpoint: Checkpoint,
    /// Every parameter that was tried.
    pub turns: Vec<Turn>,
}

impl WindfallTraining {
    /// The usual search on `source`, from seeds `seed` and `seed + 1`.
    pub fn on(source: Source, seed: u64) -> Self {
        Self {
            source,
            loads: vec![0.05, 1.0],
            seeds: vec![seed, seed + 1],
            warm_up: Duration::ZERO,
            steps: vec![2.0, 1.4],
            start: parameters::scratch(),
            threads: 1,
        }
    }

    /// The usual search on the first `minutes` of the training half of `trace`, or of generated calls; the
    /// first quarter of the time is for functions to get warm.
    pub fn on_training_half(trace: Option<PathBuf>, minutes: u32, seed: u64) -> Self {
        let half = HonestSizing { trace, minutes: Some(minutes), ..HonestSizing::default() };
        let warm_up = Duration::from_secs(u64::from(minutes) * 15);
        Self { warm_up, ..Self::on(half.training_source(), seed) }
    }

    /// One round of steps at one load from the first seed: to see it work.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.seeds.truncate(1);
        Self { loads: vec![0.8], steps: vec![2.0], ..self }
    }

    /// Searches; `progress` is called after every parameter tried.
    pub fn run(
        &self,
        progress: &mut (dyn FnMut(&Turn) + Send),
    ) -> Result<TrainedWindfall, RunError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.max(1)).build();
        let (settings, turns) = match pool {
            Ok(pool) => pool.install(|| self.search(progress)),
            Err(_) => self.search(progress),
        }?;
        let checkpoint = parameters::checkpoint(&settings, self.seeds[0], turns.len() as u64);
        Ok(TrainedWindfall { settings, checkpoint, turns })
    }

    /// How many candidates are tried at most: for progress bars.
    pub fn most_turns(&self) -> u64 {
        2 * (self.steps.len() * PARAMETERS.len()) as u64
    }

    fn search(
        &self,
        progress: &mut dyn FnMut(&Turn),
    ) -> Result<(WindfallSizingSettings, Vec<Turn>), RunError> {
        let rivals = self.best_p99s()?;
        let mut best = self.start;
        let mut cost = self.cost(&best, &rivals)?;
        let mut turns = Vec::new();
        for step in &self.steps {
            for parameter in PARAMETERS {
                let from = (parameter.read)(&best);
                for to in [from * step, from / step].map(|to| rounded(to, parameter)) {
                    if to == (parameter.read)(&best) {
                        continue;
                    }
                    let mut tried = best;
                    (parameter.write)(&mut tried, to);
                    let cost_after = self.cost(&tried, &rivals)?;
                    let kept = cost_after < cost - WORTH_IT;
                    let (parameter, cost_before) = (parameter.name, cost);
                    let turn = Turn { parameter, from, to, cost_before, cost_after, kept };
                    progress(&turn);
                    turns.push(turn);
                    if kept {
                        (best, cost) = (tried, cost_after);
                        break;
                    }
                }
            }
        }
        Ok((best, turns))
    }

    fn scenario(&self) -> Scenario {
        Scenario { trace: self.source.clone(), warm_up: self.warm_up, ..Scenario::default() }
    }

    /// Every load with every seed.
    fn trials(&self) -> Vec<Trial> {
        let with = |&load: &f64| self.seeds.iter().map(move |&seed| Trial { load, seed });
        self.loads.iter().flat_map(with).collect()
    }

    /// The lowest p99 slowdown of any heuristic, run by run.
    fn best_p99s(&self) -> Result<Vec<f64>, RunError> {
        let scenario = self.scenario();
        let best = |&trial: &Trial| {
            let mut best = f64::INFINITY;
            for policy in HEURISTICS {
                best = best.min(play(&scenario, policy, trial)?.slowdown_p99);
            }
            Ok(best)
        };
        self.trials().par_iter().with_max_len(1).map(best).collect()
    }

    /// What these parameters cost on the training calls.
    fn cost(&self, settings: &WindfallSizingSettings, rivals: &[f64]) -> Result<f64, RunError> {
        let table = toml::Table::try_from(settings).expect("parameters are plain numbers");
        let scenario = Scenario {
            policy_settings: BTreeMap::from([("windfall".to_owned(), table)]),
            ..self.scenario()
        };
        let costs: Vec<f64> = self
            .trials()
            .par_iter()
            .zip(rivals)
            .with_max_len(1)
            .map(|(&trial, &rival)| Ok(cost_of(&play(&scenario, "windfall", trial)?, rival)))
            .collect::<Result<_, RunError>>()?;
        Ok(mean(&costs).unwrap_or(0.0))
    }
}

/// Rounds to two significant digits, so that reports can print the value exactly, within its range.
fn rounded(value: f64, parameter: &Parameter) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    // Divided by a whole number where it can be, so that 0.0042 is the 0.0042 that is typed.
    let digits = (value / unit).round();
    let rounded = if unit < 1.0 { digits / (1.0 / unit).round() } else { digits * unit };
    rounded.clamp(parameter.low, parameter.high)
}

/// The test half as a scenario file, with the heuristics, `windfall` as it is and the trained one in `file`:
/// where a search is judged.
pub fn test_world(trace: Option<PathBuf>, minutes: u32, quick: bool, file: &Path) -> String {
    let test = HonestSizing {
        trace,
        minutes: Some(minutes),
        loads: if quick { vec![0.8] } else { vec![0.5, 0.8, 1.0, 1.2] },
        seeds: vec![1],
        ..HonestSizing::default()
    };
    let mut policies = vec!["fixed".to_owned()];
    policies.extend(HEURISTICS.map(str::to_owned));
    policies.extend(["windfall".to_owned(), file.display().to_string()]);
    test.scenario_file(&policies)
}

/// What every candidate is played at.
#[derive(Clone, Copy)]
struct Trial {
    load: f64,
    seed: u64,
}

fn play(scenario: &Scenario, policy: &str, trial: Trial) -> Result<RunSummary, RunError> {
    let Trial { load, seed } = trial;
    let open = || scenario.trace.open(Seed::new(seed)).map_err(RunError::from);
    let reserved = reserved(open()?.as_mut());
    let run = Run { scenario, policy, load, seed, keep_steps: false };
    let output = run.play(&reserved, open()?.as_mut(), &mut NoJournal, &mut |_| ())?;
    Ok(output.summary)
}

/// Less is better: core-seconds first, then waiting, and promises that were broken.
fn cost_of(row: &RunSummary, rival_p99: f64) -> f64 {
    let granted = (row.core_seconds_granted / row.core_seconds_used.max(1e-9)).ln();
    let waiting = row.bounded_slowdown_p99.max(1.0).ln();
    let slower = (row.slowdown_p99 / rival_p99).ln().clamp(0.0, MOST_SLOWER);
    let broken = (row.harvested_violation_share / FREE_VIOLATIONS - 1.0).max(0.0);
    granted + 0.02 * waiting + BROKEN_P99 * slower + 0.1 * broken
}

#[cfg(test)]
mod tests;
