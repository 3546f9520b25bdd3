//! Ours: a bracket around the top of the curve, and a model that says which limits are safe to try.
//!
//! ```text
//!  curve    rises while places are short, falls while too few pods have to do the work: one top
//!           ─► 30, 70, 150, 310 as long as it rises, 10 if it does not, then between the neighbours of the best
//!
//!  memory   share of a pod's limit per request in service, from every test:  m = (used - idle) / in service
//!           safe:  idle + m · limit <= 60 %
//!  places   busy share of the places, u = in service / limit; with CPU to spare a lower limit is safe if it leaves
//!           u · limit / lower <= 90 %
//! ```
//!
//! Why: a table over 16 limits has to visit each many times to tell it from its neighbours; a curve with one top is
//! found by comparing a handful of points, and what a limit does to memory is not a thing to try out but to compute:
//! 10.6 requests in service that hold 13 % of a pod's memory are 1.2 % each, so that 110 would use all of it, and no
//! limit above 60 % / 1.2 % = 50 is tried.
//!
//! A test in which more than half a percent fails closes its limit and everything beyond it. When nothing is left to
//! compare, the best limit has to hold for three tests (the luckiest of several single tests is often not the best);
//! then the search is over and it stays.

use std::collections::BTreeMap;

use super::knative::LoadTestOutcome;
use super::{LIMITS, LimitLearner};

/// Levels of the way up: limits 30, 70, 150 and 310.
const WAY_UP: [usize; 4] = [1, 3, 7, 15];
/// Most of a pod's memory that a limit may be able to fill.
const MEMORY_SHARE: f64 = 0.6;
/// Most of the places of a lower limit that may be busy.
const PLACES_SHARE: f64 = 0.9;
/// Above this the CPU is short, not the places.
const CPU_IS_SHORT: f64 = 0.6;
/// Tests that a limit has to hold for before it stays.
const CONFIRMED: f64 = 3.0;
/// More failures than this close a limit.
const FAILURES: f64 = 0.005;
/// Throughputs this close are the same.
const SAME: f64 = 0.01;

/// What the tests of one level have shown.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    tests: f64,
    throughput: f64,
    mean_ms: f64,
}

/// The bracket search.
#[derive(Clone, Debug)]
pub struct BracketSearch {
    level: usize,
    shown: BTreeMap<usize, Shown>,
    /// Levels that failed, lowest above and highest below what works.
    closed_above: usize,
    closed_below: Option<usize>,
    memory_per_request: f64,
    idle_memory: f64,
    busiest: Busy,
    /// Where it stays, once the search is over.
    stays_at: Option<usize>,
}

/// Places at the lowest level tested.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    in_service: f64,
    cpu: f64,
}

impl Default for BracketSearch {
    fn default() -> Self {
        Self {
            level: WAY_UP[0],
            shown: BTreeMap::new(),
            closed_above: LIMITS.len(),
            closed_below: None,
            memory_per_request: 0.0,
            idle_memory: 0.0,
            busiest: Busy::default(),
            stays_at: None,
        }
    }
}

impl BracketSearch {
    fn is_safe(&self, level: usize) -> bool {
        let limit = f64::from(LIMITS[level]);
        let memory = self.idle_memory + self.memory_per_request * limit;
        let lowest = self.shown.keys().next().copied().unwrap_or(level);
        let has_places = level >= lowest
            || self.busiest.cpu >= CPU_IS_SHORT
            || self.busiest.in_service / limit <= PLACES_SHARE;
        memory <= MEMORY_SHARE
            && has_places
            && level < self.closed_above
            && self.closed_below.is_none_or(|closed| level > closed)
    }

    fn is_new(&self, level: usize) -> bool {
        !self.shown.contains_key(&level) && self.is_safe(level)
    }

    /// The best level so far: most throughput, among equals the fastest answers.
    fn best(&self) -> Option<usize> {
        let usable = || self.shown.iter().filter(|(level, _)| self.is_safe(**level));
        let most = usable().map(|(_, shown)| shown.throughput).fold(0.0, f64::max);
        let close = usable().filter(|(_, shown)| shown.throughput >= most * (1.0 - SAME));
        close
            .min_by(|one, other| one.1.mean_ms.total_cmp(&other.1.mean_ms))
            .map(|(level, _)| *level)
    }

    /// The next level worth a test; nothing when the bracket is closed.
    fn next_level(&self) -> Option<usize> {
        let Some(best) = self.best() else {
            // Nothing works yet: the safe level nearest to the lowest.
            return (0..LIMITS.len()).find(|level| self.is_new(*level));
        };
        let highest = self.shown.keys().next_back().copied().unwrap_or(best);
        if best == highest {
            let up = WAY_UP.into_iter().find(|level| *level > best && self.is_new(*level));
            if up.is_some() {
                return up;
            }
        }
        if self.shown.keys().next() == Some(&best) && best > 0 && self.is_new(best - 1) {
            return Some(best - 1);
        }
        let below = self.shown.range(..best).next_back().map(|(level, _)| *level);
        let above = self.shown.range(best + 1..).next().map(|(level, _)| *level);
        let between = |one: usize, other: usize| Some(one.midpoint(other));
        let candidates = [
            above.and_then(|above| between(best, above)),
            below.and_then(|below| between(below, best)),
        ];
        let new = candidates.into_iter().flatten().find(|level| self.is_new(*level));
        new.or_else(|| (self.shown[&best].tests < CONFIRMED).then_some(best))
    }
}

impl LimitLearner for BracketSearch {
    fn next_limit(&mut self) -> u32 {
        if self.shown.is_empty() {
            return LIMITS[self.level];
        }
        let still = self.stays_at.filter(|level| self.is_safe(*level));
        if still.is_none() {
            let next = self.next_level();
            self.stays_at = if next.is_none() { self.best() } else { None };
            self.level = next.or(self.stays_at).unwrap_or(0);
        }
        LIMITS[self.level]
    }

    fn learn(&mut self, outcome: &LoadTestOutcome) {
        let is_lowest = self.shown.keys().next().is_none_or(|lowest| self.level <= *lowest);
        let shown = self.shown.entry(self.level).or_default();
        shown.tests += 1.0;
        shown.throughput += (outcome.throughput - shown.throughput) / shown.tests;
        shown.mean_ms += (outcome.mean_ms - shown.mean_ms) / shown.tests;
        self.idle_memory = outcome.idle_memory_utilisation;
        if outcome.in_service_per_pod > 0.0 {
            let above_idle = outcome.memory_utilisation - outcome.idle_memory_utilisation;
            let each = above_idle / outcome.in_service_per_pod;
            self.memory_per_request = self.memory_per_request.max(each);
        }
        if is_lowest {
            let in_service = outcome.in_service_per_pod;
            self.busiest = Busy { in_service, cpu: outcome.cpu_utilisation };
        }
        if 1.0 - outcome.success > FAILURES {
            // Lost to memory it is too high, waited for too long it is too low.
            if outcome.killed > 0 {
                self.closed_above = self.closed_above.min(self.level);
            } else {
                self.closed_below = self.closed_below.max(Some(self.level));
            }
        }
    }

    fn settled(&self) -> u32 {
        LIMITS[self.stays_at.or_else(|| self.best()).unwrap_or(self.level)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod whose memory holds 100 requests, places for all, and a curve with its top at `top`.
    fn play(top: f64, memory_of: f64, tests: usize) -> (Vec<u32>, BracketSearch) {
        let mut learner = BracketSearch::default();
        let mut picks = Vec::new();
        for _ in 0..tests {
            let limit = learner.next_limit();
            picks.push(limit);
            let distance = (f64::from(limit) - top).abs();
            learner.learn(&LoadTestOutcome {
                throughput: 500.0 - distance,
                mean_ms: 100.0 + distance,
                success: 1.0,
                in_service_per_pod: 2.0,
                memory_utilisation: 2.0 * memory_of,
                ..LoadTestOutcome::default()
            });
        }
        (picks, learner)
    }

    #[test]
    fn the_top_is_bracketed_in_a_handful_of_tests() {
        let (picks, learner) = play(70.0, 0.0, 10);
        assert_eq!(picks, [30, 70, 150, 110, 90, 50, 70, 70, 70, 70]);
        assert_eq!(learner.settled(), 70);
    }

    #[test]
    fn a_falling_curve_leads_down_and_a_rising_one_up() {
        assert_eq!(play(10.0, 0.0, 6).1.settled(), 10);
        assert_eq!(play(310.0, 0.0, 8).1.settled(), 310);
    }

    #[test]
    fn no_limit_is_tried_that_could_fill_the_memory() {
        // Every request holds 1 % of the memory: 60 is the most.
        let (picks, _) = play(310.0, 0.01, 12);
        assert!(picks.iter().all(|limit| *limit <= 60), "{picks:?}");
    }

    #[test]
    fn what_failed_is_not_tried_again() {
        let mut learner = BracketSearch::default();
        let failed = LoadTestOutcome { success: 0.9, killed: 5, ..LoadTestOutcome::default() };
        assert_eq!(learner.next_limit(), 30);
        learner.learn(&failed);
        assert_eq!(learner.next_limit(), 10);
    }
}
