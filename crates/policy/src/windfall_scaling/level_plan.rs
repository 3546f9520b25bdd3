//! Hold, release, or start ahead: a small dynamic program over the age of a gap.
//!
//! ```text
//!   h(b)     the probability that the gap ends in bin b, given that it has lasted until b
//!   hold     warm(b) = price of holding over b  +  (1 - h) min(warm(b+1), cold(b+1))
//!   be cold  cold(b) = h x miss                 +  (1 - h) min(cold(b+1), warm(b+1) + start)
//!   from the last bin down; hold where warm <= cold, begin where warm + start < cold
//! ```
//!
//! A timer of 60 s with 100 MiB, a price of 3e-5 per MiB-second and a cold start of 1 s: holding for the whole
//! gap costs 60 x 100 x 3e-5 = 0.18 weighted waits, being cold at the call costs 1. Holding only for the second in
//! which the call arrives costs 0.003, and starting ahead (a second of start and 30 s of charge) 0.093: release
//! immediately, start after 58 s. The same rule covers keep-alive, pre-warming and timers.

use crate::windfall_scaling::gap_bins::{BINS, TAIL, bin_of};
use crate::windfall_scaling::gap_history::GapHistory;

const WORDS: usize = BINS.div_ceil(64);

/// Costs in weighted waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Costs {
    /// Holding the instance for a second.
    pub(crate) hold: f32,
    /// A start ahead of a call: memory during the start, and the charge for its CPU.
    pub(crate) start: f32,
    /// A call that finds no instance.
    pub(crate) miss: f32,
}

/// A set of bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bins([u64; WORDS]);

impl Bins {
    fn add(&mut self, bin: usize) {
        self.0[bin / 64] |= 1 << (bin % 64);
    }

    fn holds(&self, bin: usize) -> bool {
        self.0[bin / 64] >> (bin % 64) & 1 == 1
    }

    fn holds_any(&self, from: usize, to: usize) -> bool {
        (from..=to).any(|bin| self.holds(bin))
    }
}

/// The action for each age of the gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelPlan {
    hold: Bins,
    begin: Bins,
}

impl LevelPlan {
    /// Whether a warm instance is worth its price at this age.
    pub(crate) fn holds(&self, age: f64) -> bool {
        self.hold.holds(bin_of(age))
    }

    /// Whether an instance should become warm somewhere between these ages. The whole interval until the next
    /// tick is checked, because a check of a single bin would miss narrow ones.
    pub(crate) fn begins(&self, from: f64, to: f64) -> bool {
        self.begin.holds_any(bin_of(from), bin_of(to))
    }
}

/// Buffers of the dynamic program, reused to avoid allocations.
#[derive(Clone, Debug)]
pub(crate) struct Programme {
    widths: Vec<f32>,
    chances: Vec<f32>,
}

impl Default for Programme {
    fn default() -> Self {
        Self { widths: super::gap_bins::widths(), chances: vec![0.0; BINS] }
    }
}

impl Programme {
    /// Best plan for gaps distributed like `history` and, with the weight of `belief` gaps, like `prior`.
    pub(crate) fn solve(
        &mut self,
        history: &GapHistory,
        prior: &[f32],
        belief: f32,
        costs: Costs,
    ) -> LevelPlan {
        history.chances(prior, belief, &mut self.chances);
        self.best(&self.chances, costs)
    }

    /// Best plan for gaps that end in each bin with this probability.
    pub(crate) fn best(&self, chances: &[f32], costs: Costs) -> LevelPlan {
        let Costs { hold, start, miss } = costs;
        let mut plan = LevelPlan::default();
        let (mut warm, mut cold) = (0.0f32, 0.0f32);
        let mut remaining = chances[TAIL];
        for bin in (0..TAIL).rev() {
            let here = chances[bin];
            remaining += here;
            let hazard = if remaining > 0.0 { here / remaining } else { 0.0 };
            let stays = 1.0 - hazard;
            let be_warm = hold * self.widths[bin] * (1.0 - 0.5 * hazard) + stays * warm.min(cold);
            let be_cold = hazard * miss + stays * cold.min(warm + start);
            if be_warm <= be_cold {
                plan.hold.add(bin);
            }
            if be_warm + start < be_cold {
                plan.begin.add(bin);
            }
            (warm, cold) = (be_warm, be_cold);
        }
        plan
    }

    /// Hazard rate: the probability per second that a gap of this age ends now.
    pub(crate) fn hazard(
        &mut self,
        history: &GapHistory,
        prior: &[f32],
        belief: f32,
        age: f64,
    ) -> f64 {
        history.chances(prior, belief, &mut self.chances);
        let at = bin_of(age);
        if at == TAIL {
            return 0.0;
        }
        let remaining: f32 = self.chances[at..].iter().sum();
        f64::from(self.chances[at]) / f64::from(remaining.max(f32::MIN_POSITIVE) * self.widths[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A low weight for the flat prior, which has many gaps of seconds.
    const BELIEF: f32 = 0.1;

    fn solve(gaps: &[f64], costs: Costs) -> LevelPlan {
        let mut history = GapHistory::default();
        let flat = vec![1.0 / BINS as f32; BINS];
        gaps.iter().for_each(|gap| history.learn(*gap, &flat, BELIEF));
        Programme::default().solve(&history, &flat, BELIEF, costs)
    }

    /// 100 MiB at 3e-5, a cold start of 1 s, a charge of 30 s.
    fn usual() -> Costs {
        Costs { hold: 0.003, start: 0.093, miss: 1.093 }
    }

    #[test]
    fn a_timer_is_released_immediately_and_started_just_ahead() {
        let plan = solve(&[60.0; 100], usual());
        // A start costs as much as 31 s of holding: an instance that is still warm after 29 s is held.
        assert!(!plan.holds(5.0) && !plan.holds(25.0) && plan.holds(40.0));
        assert!(plan.holds(59.8) && plan.begins(58.5, 60.5));
        assert!(!plan.begins(10.0, 12.0) && !plan.begins(70.0, 72.0));
    }

    #[test]
    fn instances_are_held_during_short_gaps() {
        let plan = solve(&[3.0, 5.0, 2.0, 8.0, 4.0, 6.0, 3.0, 5.0], usual());
        assert!(plan.holds(0.5) && plan.holds(4.0));
    }

    #[test]
    fn free_memory_is_held_and_expensive_memory_is_not() {
        let free = Costs { hold: 0.0, start: 0.0, miss: 1.0 };
        assert!(solve(&[600.0; 20], free).holds(1.0));
        let expensive = Costs { hold: 10.0, start: 300.0, miss: 301.0 };
        let plan = solve(&[600.0; 20], expensive);
        assert!(!plan.holds(1.0) && !plan.begins(0.0, 14_000.0));
    }

    #[test]
    fn the_hazard_of_a_timer_peaks_at_its_period() {
        let mut history = GapHistory::default();
        let flat = vec![1.0 / BINS as f32; BINS];
        (0..100).for_each(|_| history.learn(60.0, &flat, BELIEF));
        let mut programme = Programme::default();
        let mut at = |age| programme.hazard(&history, &flat, BELIEF, age);
        assert!(at(60.0) > 0.3, "{}", at(60.0));
        assert!(at(30.0) < 0.01 && at(1e9) == 0.0);
    }
}
