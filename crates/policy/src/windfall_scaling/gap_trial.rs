//! Evaluates priors offline: a level processes its gaps in order, with the tables or any other prior.
//!
//! ```text
//!   gaps so far ─► class ─► prior (tables, or another) ──► blend ─► chances ─► log-likelihood of the next gap
//!        ▲                                                              └─► plan ─► its cost (gap_replay.rs)
//!        └───────────────────────────── learn ◄─────────────────────────────────────────┘
//! ```
//!
//! It repeats what a level of the policy does at each gap, without the platform around it, so that a prior can be
//! evaluated on many gaps in seconds. The policy itself does not use this file.

use super::gap_history::GapHistory;
use super::gap_prior::{GapPrior, class_of, is_regular};
use super::level_gap::LevelGap;
use super::prior_fit::GapCounts;

/// Lower bound on the probability of a gap, as in the blend, so that one surprise does not outweigh all other gaps.
const LEAST: f64 = 1e-7;

/// Pooled tables by class, fitted on given counts.
#[derive(Clone, Debug)]
pub struct GapTables(GapPrior);

impl GapTables {
    /// Fits tables on `counts`, rounded as in the parameter file.
    pub fn fitted_on(counts: &GapCounts) -> Self {
        Self(GapPrior::read(&counts.to_text()))
    }
}

/// A level that processes its gaps in order.
#[derive(Clone, Debug)]
pub struct GapTrial {
    level: usize,
    history: GapHistory,
}

impl GapTrial {
    /// Creates a level without history.
    pub fn new(level: usize) -> Self {
        Self { level, history: GapHistory::default() }
    }

    /// Number of gaps seen.
    pub fn seen(&self) -> u32 {
        self.history.count()
    }

    /// The last gaps, up to six, in seconds, oldest first.
    pub fn recent(&self) -> &[f32] {
        self.history.recent()
    }

    /// Whether the last three gaps lie within 10 % and a second of each other.
    pub fn is_regular(&self) -> bool {
        is_regular(self.recent())
    }

    /// Prior of the tables for the next gap: the probability of every bin.
    pub fn prior<'a>(&self, tables: &'a GapTables) -> &'a [f32] {
        tables.0.of(class_of(self.level, &self.history))
    }

    /// Probability of every bin for the next gap, from the level's own gaps and `prior` with an initial weight of `belief`
    /// gaps, which each level adapts.
    pub fn chances(&self, prior: &[f32], belief: f64) -> Vec<f32> {
        let mut chances = vec![0.0; LevelGap::BINS];
        self.history.chances(prior, belief as f32, &mut chances);
        chances
    }

    /// Adds a gap without scoring the experts.
    pub fn see(&mut self, gap: &LevelGap) {
        self.history.push(gap.seconds());
    }

    /// Learns a gap and scores the experts on it; `prior` is the prior from before the gap.
    pub fn learn(&mut self, gap: &LevelGap, prior: &[f32], belief: f64) {
        self.history.learn(gap.seconds(), prior, belief as f32);
    }
}

impl LevelGap {
    /// Logarithm of the probability of this gap; for a censored gap, of all gaps at least as long.
    pub fn log_likelihood(&self, chances: &[f32]) -> f64 {
        let bin = self.bin();
        let until = if self.is_cut { chances.len() } else { bin + 1 };
        let chance: f64 = chances[bin..until].iter().copied().map(f64::from).sum();
        chance.max(LEAST).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{Duration, Timestamp};

    fn gap(seconds: u64, is_cut: bool) -> LevelGap {
        let (from, until) = (Timestamp::ZERO, Timestamp::from_secs(seconds));
        LevelGap { level: 0, from, released: from, until, is_cut }
    }

    #[test]
    fn a_censored_gap_is_as_likely_as_all_longer_ones() {
        let mut chances = vec![0.0; LevelGap::BINS];
        (chances[gap(60, false).bin()], chances[gap(600, false).bin()]) = (0.25, 0.75);
        let log = |seconds, is_cut| gap(seconds, is_cut).log_likelihood(&chances);
        assert!((log(60, false) - 0.25f64.ln()).abs() < 1e-12);
        assert!((log(100, true) - 0.75f64.ln()).abs() < 1e-12);
        assert_eq!(log(60, true), 0.0);
        assert!((log(100, false) - 1e-7f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_level_begins_with_its_prior_and_learns_its_own_gaps() {
        // The fitted function is called every 100 s, and this level is needed every 60 s.
        let calls: Vec<_> =
            (0..40).map(|n| (Timestamp::from_secs(100 * n), Duration::from_secs(1))).collect();
        let mut counts = GapCounts::default();
        counts.count(&calls, Timestamp::from_secs(3950));
        let tables = GapTables::fitted_on(&counts);
        let mut trial = GapTrial::new(0);
        assert_eq!(trial.chances(trial.prior(&tables), 5.0), trial.prior(&tables));
        let likely = |trial: &GapTrial| {
            gap(60, false).log_likelihood(&trial.chances(trial.prior(&tables), 5.0))
        };
        let before = likely(&trial);
        for _ in 0..20 {
            let prior = trial.prior(&tables).to_vec();
            trial.learn(&gap(60, false), &prior, 5.0);
        }
        assert!(trial.is_regular() && trial.seen() == 20 && trial.recent() == [60.0; 6]);
        assert!(before < -5.0 && likely(&trial) > -1.5, "{before} {}", likely(&trial));
    }
}
