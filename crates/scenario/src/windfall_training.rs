//! Sets the dials of `windfall` by playing the training half, from scratch.
//!
//! ```text
//!   for each round, for each dial:   try it a step up and a step down, keep what costs less
//!
//!   cost = ln(granted / used) + 0.02 ln(bounded p99) + 0.1 (violations over 0.03 % of harvested calls, in units
//!          of that), mean over loads and seeds of the training half
//! ```
//!
//! A step is a factor that shrinks from round to round: 1.6, then 1.25. All candidates meet the same calls,
//! so a difference is the dial's and not the draw's. What the policy learns while it runs (quantiles,
//! margins, experience) is not stored: it is learned anew from every function's own calls, and the same file
//! serves functions it has never seen.

mod dials;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use windfall_core::Seed;
use windfall_policy::WindfallSizingSettings;
use windfall_rl::{Checkpoint, CheckpointError};
use windfall_telemetry::RunSummary;
use windfall_trace::Source;

pub use dials::{DIALS, Dial, KIND};

use crate::run::{NoJournal, Run, RunError, reserved};
use crate::settings::Scenario;

/// Violations among harvested calls that cost nothing.
const FREE_VIOLATIONS: f64 = 0.0003;
/// A change must pay this much to be kept.
const WORTH_IT: f64 = 5e-4;

/// How the dials are set.
#[derive(Clone, Debug, Serialize)]
pub struct WindfallTraining {
    /// Where training calls come from.
    pub source: Source,
    /// Loads that every candidate is played at.
    pub loads: Vec<f64>,
    /// Seeds that every candidate is played from.
    pub seeds: Vec<u64>,
    /// The factor of a step, round by round.
    pub steps: Vec<f64>,
    /// Where the search begins.
    pub start: WindfallSizingSettings,
    /// Threads; the result does not depend on it.
    #[serde(skip)]
    pub threads: usize,
}

/// A dial that was turned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Which.
    pub dial: &'static str,
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
    /// The dials.
    pub settings: WindfallSizingSettings,
    /// As a file.
    pub checkpoint: Checkpoint,
    /// Every dial that was tried.
    pub turns: Vec<Turn>,
}

impl WindfallTraining {
    /// The usual search on `source`, from seeds `seed` and `seed + 1`.
    pub fn on(source: Source, seed: u64) -> Self {
        Self {
            source,
            loads: vec![0.5, 1.0],
            seeds: vec![seed, seed + 1],
            steps: vec![1.6, 1.25],
            start: WindfallSizingSettings::default(),
            threads: 1,
        }
    }

    /// Searches; `told` hears of every dial tried.
    pub fn run(&self, told: &mut dyn FnMut(&Turn)) -> Result<TrainedWindfall, RunError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.max(1)).build();
        match pool {
            Ok(pool) => pool.install(|| self.search()),
            Err(_) => self.search(),
        }
        .map(|(settings, turns)| {
            turns.iter().for_each(told);
            let checkpoint = dials::checkpoint(&settings, self.seeds[0], turns.len() as u64);
            TrainedWindfall { settings, checkpoint, turns }
        })
    }

    fn search(&self) -> Result<(WindfallSizingSettings, Vec<Turn>), RunError> {
        let mut best = self.start;
        let mut cost = self.cost(&best)?;
        let mut turns = Vec::new();
        for step in &self.steps {
            for dial in DIALS {
                let from = (dial.read)(&best);
                for to in [from * step, from / step].map(|to| to.clamp(dial.low, dial.high)) {
                    if to == (dial.read)(&best) {
                        continue;
                    }
                    let mut tried = best;
                    (dial.write)(&mut tried, to);
                    let cost_after = self.cost(&tried)?;
                    let kept = cost_after < cost - WORTH_IT;
                    let (dial, cost_before) = (dial.name, cost);
                    turns.push(Turn { dial, from, to, cost_before, cost_after, kept });
                    if kept {
                        (best, cost) = (tried, cost_after);
                        break;
                    }
                }
            }
        }
        Ok((best, turns))
    }

    /// What these dials cost on the training calls.
    fn cost(&self, settings: &WindfallSizingSettings) -> Result<f64, RunError> {
        let table = toml::Table::try_from(settings).expect("dials are plain numbers");
        let scenario = Scenario {
            trace: self.source.clone(),
            policy_settings: BTreeMap::from([("windfall".to_owned(), table)]),
            ..Scenario::default()
        };
        let runs: Vec<(f64, u64)> = self
            .loads
            .iter()
            .flat_map(|&load| self.seeds.iter().map(move |&seed| (load, seed)))
            .collect();
        let costs: Vec<f64> = runs
            .par_iter()
            .with_max_len(1)
            .map(|&(load, seed)| Ok(cost_of(&play(&scenario, load, seed)?)))
            .collect::<Result<_, RunError>>()?;
        Ok(costs.iter().sum::<f64>() / costs.len().max(1) as f64)
    }
}

fn play(scenario: &Scenario, load: f64, seed: u64) -> Result<RunSummary, RunError> {
    let open = || scenario.trace.open(Seed::new(seed)).map_err(RunError::from);
    let reserved = reserved(open()?.as_mut());
    let run = Run { scenario, policy: "windfall", load, seed, keep_steps: false };
    let output = run.play(&reserved, open()?.as_mut(), &mut NoJournal, &mut |_| ())?;
    Ok(output.summary)
}

/// Less is better: core-seconds first, then waiting, and promises that were broken.
fn cost_of(row: &RunSummary) -> f64 {
    let granted = (row.core_seconds_granted / row.core_seconds_used.max(1e-9)).ln();
    let waiting = row.bounded_slowdown_p99.max(1.0).ln();
    let broken = (row.harvested_violation_share / FREE_VIOLATIONS - 1.0).max(0.0);
    granted + 0.02 * waiting + 0.1 * broken
}

/// The dials in a checkpoint of kind [`KIND`], on top of the defaults.
pub fn settings_from(checkpoint: &Checkpoint) -> Result<WindfallSizingSettings, CheckpointError> {
    dials::settings_from(checkpoint)
}

#[cfg(test)]
mod tests;
