//! Tracks when each instance of a function was needed, by cutting the calls in the system into levels.
//!
//! ```text
//!   calls   3 ┤      ██             level 2 is needed while calls > 2 C
//!   in the  2 ┤   █████  ██         level 1 is needed while calls > C
//!   system  1 ┤ █████████████       level 0 is needed while calls > 0
//!             └──────────────► t
//!                 need   release
//! ```
//!
//! With packing (the oldest instance with a free slot serves the call) level k corresponds to the (k+1)-th
//! instance, so the gaps of a level are the idle times of that instance. Gaps of level 0 are measured from
//! need to next need, because timers are regular from start to start. Gaps of higher levels are measured from
//! release to next need, because those levels depend on how long calls run.

use windfall_core::{FunctionView, PresenceStep, Timestamp};

/// Maximum number of tracked levels: the platform's own limit of instances.
pub(crate) const MOST_LEVELS: usize = 1000;

/// When one level was last needed and released.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelTimes {
    /// When the most recent need began.
    pub(crate) needed_at: Timestamp,
    /// When the most recent need ended; meaningless while the level is needed.
    pub(crate) released_at: Timestamp,
    /// Whether the level is needed now.
    pub(crate) is_needed: bool,
}

impl LevelTimes {
    /// Age of the current gap at `now`, seconds: since the need for level 0, since the release for other
    /// levels.
    pub(crate) fn age(&self, level: usize, now: Timestamp) -> f64 {
        let from = if level == 0 { self.needed_at } else { self.released_at };
        now.since(from).as_secs_f64()
    }

    /// Time since the release, seconds; zero while the level is needed.
    pub(crate) fn idle(&self, now: Timestamp) -> f64 {
        if self.is_needed { 0.0 } else { now.since(self.released_at).as_secs_f64() }
    }
}

/// All levels that a function has ever needed.
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

    /// Processes the presence steps since the last tick and passes every gap that ended to `learn`. Returns
    /// false if calls arrived but the platform did not report when; then the gaps are unknown.
    pub(crate) fn follow(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        learn: impl FnMut(Gap),
    ) -> bool {
        self.process(view, now, |_| 0, learn)
    }

    /// Like [`Self::follow`], but a call also needs, at the moment it starts, the instances it had to pass over: a call
    /// that finds its idle instance on a full node needs a second instance on another node.
    pub(crate) fn follow_on_nodes(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        learn: impl FnMut(Gap),
    ) -> bool {
        self.process(view, now, |step| step.passed_over, learn)
    }

    fn process(
        &mut self,
        view: &FunctionView,
        now: Timestamp,
        extra_calls: impl Fn(&PresenceStep) -> u32,
        mut learn: impl FnMut(Gap),
    ) -> bool {
        let places = view.concurrency.max(1);
        let levels = |calls: u32| calls.div_ceil(places) as usize;
        for step in &view.presence {
            let extra = extra_calls(step);
            if extra > 0 {
                self.step(step.at, levels(step.calls + extra), &mut learn);
            }
            self.step(step.at, levels(step.calls), &mut learn);
        }
        let waiting = if view.sizes_calls() { 0 } else { view.queued };
        let present = levels(view.in_flight.saturating_add(waiting));
        let arrivals_known =
            !view.presence.is_empty() || (view.arrivals == 0 && present == self.needed);
        if !arrivals_known {
            // The unreported interval is not a gap; restart the clocks from here.
            self.is_broken = true;
            self.step(now, present, &mut learn);
        }
        arrivals_known
    }

    /// Discards the running clocks: the current gap of each level is not learned.
    pub(crate) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Sets the number of levels needed from `at` on.
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

    fn with_presence(steps: &[(u64, u32)]) -> FunctionView {
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
        let view = with_presence(&[(0, 1), (2, 2), (5, 1), (8, 0), (60, 1), (61, 2), (62, 0)]);
        assert!(track.follow(&view, Timestamp::from_secs(70), |gap| gaps.push(gap)));
        let rounded: Vec<_> = gaps.iter().map(|gap| (gap.level, gap.seconds.round())).collect();
        assert_eq!(rounded, [(0, 60.0), (1, 56.0)], "{gaps:?}");
        assert_eq!(track.levels[0].age(0, Timestamp::from_secs(70)), 10.0);
        assert_eq!(track.levels[1].age(1, Timestamp::from_secs(70)), 8.0);
    }

    #[test]
    fn an_instance_that_was_passed_over_counts_when_the_call_starts() {
        let mut view = with_presence(&[(0, 1), (2, 0), (60, 1), (62, 0), (90, 1), (92, 0)]);
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
        let view = FunctionView { concurrency: 10, ..with_presence(&[(0, 9), (1, 21)]) };
        track.follow(&view, Timestamp::from_secs(2), |_| {});
        assert_eq!(track.needed(), 3);
    }

    #[test]
    fn a_gap_that_was_not_reported_is_not_learned() {
        let mut track = LevelTrack::default();
        let mut gaps = 0;
        assert!(
            track.follow(&with_presence(&[(0, 1), (1, 0)]), Timestamp::from_secs(2), |_| gaps += 1)
        );
        let silent = FunctionView { arrivals: 3, ..function(0) };
        assert!(!track.follow(&silent, Timestamp::from_secs(40), |_| gaps += 1));
        assert!(track.follow(&with_presence(&[(60, 1)]), Timestamp::from_secs(61), |_| gaps += 1));
        assert_eq!(gaps, 1, "only the gap that began after the unreported interval");
    }
}
