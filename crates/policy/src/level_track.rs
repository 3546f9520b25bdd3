//! When each instance of a function was needed: the calls in the system, cut into levels.
//!
//! ```text
//!   calls   3 ┤      ██             level 2 is needed while calls > 2 C
//!   in the  2 ┤   █████  ██         level 1 is needed while calls > C
//!   system  1 ┤ █████████████       level 0 is needed while there are calls at all
//!             └──────────────► t
//!                 need   release
//! ```
//!
//! With packing (the oldest instance with a free place serves) level k is what the (k+1)-th instance is
//! for, so the gaps of a level are the idle times of that instance. Level 0 is measured from need to next
//! need, because timers are regular from start to start; higher levels from release to next need, because
//! they come and go with the length of calls.

use windfall_core::{FunctionView, PresenceStep, Timestamp};

/// Levels above this number are not told apart: the platform's own limit of instances.
pub(crate) const MOST_LEVELS: usize = 1000;

/// When one level was needed last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelTimes {
    /// When the need began, the last time.
    pub(crate) needed_at: Timestamp,
    /// When it ended, the last time; of no meaning while it lasts.
    pub(crate) released_at: Timestamp,
    /// Whether it is needed now.
    pub(crate) is_needed: bool,
}

impl LevelTimes {
    /// How long the clock of its gaps has run at `now`, seconds: from the need of level 0, from the
    /// release of others.
    pub(crate) fn age(&self, level: usize, now: Timestamp) -> f64 {
        let from = if level == 0 { self.needed_at } else { self.released_at };
        now.since(from).as_secs_f64()
    }

    /// How long ago it was released, seconds; nothing while it is needed.
    pub(crate) fn idle(&self, now: Timestamp) -> f64 {
        if self.is_needed { 0.0 } else { now.since(self.released_at).as_secs_f64() }
    }
}

/// All levels that a function ever needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelTrack {
    pub(crate) levels: Vec<LevelTimes>,
    needed: usize,
    is_broken: bool,
}

/// A gap that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    pub(crate) level: usize,
    pub(crate) seconds: f64,
}

impl LevelTrack {
    /// Levels needed now.
    pub(crate) fn needed(&self) -> usize {
        self.needed
    }

    /// Takes in what happened since the last look and hands every gap that ended to `learn`. False if calls
    /// came and the platform did not tell when: then nothing is known about the gaps.
    pub(crate) fn follow(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        learn: impl FnMut(Gap),
    ) -> bool {
        self.take_in(view, now, |_| 0, learn)
    }

    /// The same, where for the moment of its start a call also needs the instances that it had to pass over: one that
    /// found an idle instance on a full node needed a second one, on another.
    pub(crate) fn follow_on_nodes(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        learn: impl FnMut(Gap),
    ) -> bool {
        self.take_in(view, now, |step| step.passed_over, learn)
    }

    fn take_in(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        besides: impl Fn(&PresenceStep) -> u32,
        mut learn: impl FnMut(Gap),
    ) -> bool {
        let places = view.concurrency.max(1);
        let levels = |calls: u32| calls.div_ceil(places) as usize;
        for step in &view.presence {
            let besides = besides(step);
            if besides > 0 {
                self.step(step.at, levels(step.calls + besides), &mut learn);
            }
            self.step(step.at, levels(step.calls), &mut learn);
        }
        let waiting = if view.sizes_calls() { 0 } else { view.queued };
        let present = levels(view.in_flight.saturating_add(waiting));
        let is_told = !view.presence.is_empty() || (view.arrivals == 0 && present == self.needed);
        if !is_told {
            // What was missed cannot be a gap; the clocks go on from here.
            self.is_broken = true;
            self.step(now, present, &mut learn);
        }
        is_told
    }

    /// Forgets running clocks: the gap that each level is in will not be learned.
    pub(crate) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// From `at` on so many levels are needed.
    pub(crate) fn step(&mut self, at: Timestamp, needed: usize, learn: &mut impl FnMut(Gap)) {
        let needed = needed.min(MOST_LEVELS);
        if self.is_broken {
            self.is_broken = false;
            for level in &mut self.levels {
                *level = LevelTimes { needed_at: at, released_at: at, is_needed: level.is_needed };
            }
            self.set(at, needed, &mut |_| {});
        } else {
            self.set(at, needed, learn);
        }
    }

    fn set(&mut self, at: Timestamp, needed: usize, learn: &mut impl FnMut(Gap)) {
        for level in self.needed..needed {
            if level == self.levels.len() {
                self.levels.push(LevelTimes::default());
            } else {
                learn(Gap { level, seconds: self.levels[level].age(level, at) });
            }
            self.levels[level].needed_at = at;
            self.levels[level].is_needed = true;
        }
        for level in needed..self.needed {
            self.levels[level].released_at = at;
            self.levels[level].is_needed = false;
        }
        self.needed = needed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::function;

    fn told(steps: &[(u64, u32)]) -> FunctionView {
        let step = |&(second, calls)| PresenceStep {
            at: Timestamp::from_secs(second),
            calls,
            passed_over: 0,
        };
        let calls = steps.last().map_or(0, |(_, calls)| *calls);
        FunctionView {
            presence: steps.iter().map(step).collect(),
            in_flight: calls,
            arrivals: steps.len() as u32,
            ..function(0)
        }
    }

    #[test]
    fn level_0_is_measured_from_need_to_need_and_others_from_release() {
        let mut track = LevelTrack::default();
        let mut gaps = Vec::new();
        let view = told(&[(0, 1), (2, 2), (5, 1), (8, 0), (60, 1), (61, 2), (62, 0)]);
        assert!(track.follow(&view, Timestamp::from_secs(70), |gap| gaps.push(gap)));
        let rounded: Vec<_> = gaps.iter().map(|gap| (gap.level, gap.seconds.round())).collect();
        assert_eq!(rounded, [(0, 60.0), (1, 56.0)], "{gaps:?}");
        assert_eq!(track.levels[0].age(0, Timestamp::from_secs(70)), 10.0);
        assert_eq!(track.levels[1].age(1, Timestamp::from_secs(70)), 8.0);
    }

    #[test]
    fn an_instance_that_was_passed_over_counts_for_the_moment() {
        let mut view = told(&[(0, 1), (2, 0), (60, 1), (62, 0), (90, 1), (92, 0)]);
        view.presence[2].passed_over = 1;
        view.presence[4].passed_over = 1;
        let gaps_of = |follow: fn(&mut LevelTrack, &FunctionView, &mut Vec<Gap>) -> bool| {
            let mut gaps = Vec::new();
            assert!(follow(&mut LevelTrack::default(), &view, &mut gaps));
            gaps.iter().map(|gap| (gap.level, gap.seconds.round())).collect::<Vec<_>>()
        };
        let on_nodes = gaps_of(|track, view, gaps| {
            track.follow_on_nodes(view, Timestamp::from_secs(95), |gap| gaps.push(gap))
        });
        assert_eq!(on_nodes, [(0, 60.0), (0, 30.0), (1, 30.0)]);
        let anywhere = gaps_of(|track, view, gaps| {
            track.follow(view, Timestamp::from_secs(95), |gap| gaps.push(gap))
        });
        assert_eq!(anywhere, [(0, 60.0), (0, 30.0)]);
    }

    #[test]
    fn several_calls_share_a_level() {
        let mut track = LevelTrack::default();
        let view = FunctionView { concurrency: 10, ..told(&[(0, 9), (1, 21)]) };
        track.follow(&view, Timestamp::from_secs(2), |_| {});
        assert_eq!(track.needed(), 3);
    }

    #[test]
    fn a_gap_that_was_not_told_is_not_learned() {
        let mut track = LevelTrack::default();
        let mut gaps = 0;
        assert!(track.follow(&told(&[(0, 1), (1, 0)]), Timestamp::from_secs(2), |_| gaps += 1));
        let silent = FunctionView { arrivals: 3, ..function(0) };
        assert!(!track.follow(&silent, Timestamp::from_secs(40), |_| gaps += 1));
        assert!(track.follow(&told(&[(60, 1)]), Timestamp::from_secs(61), |_| gaps += 1));
        assert_eq!(gaps, 1, "only the gap that began after the silence");
    }
}
