//! A call at its own pace under the kernel's CPU: nobody competes, so only its waits and its quota decide.
//!
//! ```text
//!  wait │ work wait work wait work wait │ wait │ work wait work …        long waits, and stretches made of rounds
//!       └───────── a stretch ───────────┘
//! ```
//!
//! Rounds and periods are skipped by arithmetic wherever each is like the one before: without a quota that binds, with
//! one that can never bind, and with one that is used up in every period.

use windfall_core::CallDemand;
use windfall_core::demand::Segment;

use crate::bucket::{Bucket, Quota};
use crate::progress::Progress;

/// The waits inside the work of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Nanoseconds per cycle, all rounds together.
    pub(crate) wait: u64,
    /// Rounds per cycle, at least 1.
    pub(crate) count: u64,
}

/// The work of one cycle as it is spread over rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// The most CPU it can use, millicores.
    pub(crate) parallelism: u64,
    /// Millicore-nanoseconds of all rounds.
    work: u64,
    /// Millicore-nanoseconds of one round; the first may have less.
    round: u64,
    /// Nanoseconds of waiting after each round but the last.
    wait: u64,
    /// Nanoseconds of waiting after the last round.
    last_wait: u64,
}

impl Stretch {
    pub(crate) fn new(work: u64, parallelism: u64, rounds: Rounds) -> Self {
        let round = work.div_ceil(rounds.count.max(1)).max(1);
        let count = work.div_ceil(round).max(1);
        let wait = rounds.wait / count;
        let last_wait = rounds.wait - wait * (count - 1);
        Self { parallelism: parallelism.max(1), work, round, wait, last_wait }
    }

    /// What is left of the round under way if so much is left of the stretch.
    pub(crate) fn left_in_round(&self, left: u64) -> u64 {
        match left % self.round {
            0 => self.round.min(left),
            part => part,
        }
    }

    /// The wait that follows a round after which so much work is left.
    pub(crate) fn wait_after(&self, left: u64) -> u64 {
        if left == 0 { self.last_wait } else { self.wait }
    }

    /// Nanoseconds of work in one round, and those of the whole round.
    fn times(&self) -> (u64, u64) {
        let busy = self.round.div_ceil(self.parallelism);
        (busy, busy + self.wait)
    }

    /// Mean use at full speed, waits included, millicores: 2 ms of work and 6 ms of waiting on one core are 250.
    pub(crate) fn mean_use(&self) -> f64 {
        let waits = self.wait * ((self.work.div_ceil(self.round)).max(1) - 1) + self.last_wait;
        if waits == 0 {
            return self.parallelism as f64;
        }
        self.work as f64 / (self.work as f64 / self.parallelism as f64 + waits as f64)
    }

    /// Whether no period can ever use up the quota, wherever it begins.
    fn never_binds(&self, quota: Quota) -> bool {
        let (_, round) = self.times();
        (quota.period / round + 2) * self.round <= quota.per_period()
    }

    /// Whether every period uses up the quota, wherever it begins.
    fn always_binds(&self, quota: Quota) -> bool {
        let (_, round) = self.times();
        (quota.per_period() / self.round + 2) * round <= quota.period
    }
}

/// A call on its way through its segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    /// Its long waits are what it has as fixed time.
    pub(crate) demand: &'a CallDemand,
    pub(crate) rounds: Rounds,
    pub(crate) quota: Option<Quota>,
    pub(crate) progress: Progress,
    /// What is left of the wait under way inside a stretch, nanoseconds.
    pub(crate) wait_left: u64,
    pub(crate) bucket: Bucket,
    /// Nanoseconds since the run began.
    pub(crate) now: u64,
    /// Millicore-nanoseconds used on the way.
    pub(crate) used: u64,
    /// Nanoseconds of throttling that became visible on the way.
    pub(crate) throttled: u64,
}

impl Walk<'_> {
    /// Goes on until `until` or the end of the call.
    pub(crate) fn pass(&mut self, until: u64) {
        self.pass_some(until, u32::MAX);
    }

    /// Goes on until `until` or the end of the call, in at most so many steps.
    pub(crate) fn pass_some(&mut self, until: u64, mut steps: u32) {
        while self.now < until && steps > 0 && !self.progress.is_done(self.demand) {
            steps -= 1;
            match self.demand.segment(self.progress.segment) {
                Segment::Idle(_) => {
                    let nanos = self.progress.left.min(until - self.now);
                    self.progress.left -= nanos;
                    self.now += nanos;
                    self.progress.skip_empty(self.demand);
                }
                Segment::Work { work, parallelism } => {
                    let parallelism = u64::from(parallelism.get());
                    self.pass_stretch(Stretch::new(work, parallelism, self.rounds), until);
                }
            }
        }
        if let Some(quota) = self.quota {
            self.throttled += self.bucket.refill(quota, self.now);
        }
    }

    fn pass_stretch(&mut self, stretch: Stretch, until: u64) {
        if self.wait_left > 0 {
            return self.wait(stretch, until);
        }
        let rate = stretch.parallelism;
        let needed = stretch.left_in_round(self.progress.left).div_ceil(rate);
        let Some(quota) = self.quota.filter(|quota| quota.rate < rate) else {
            return self.work(stretch, needed.min(until - self.now));
        };
        self.throttled += self.bucket.refill(quota, self.now);
        if self.bucket.tokens < rate {
            return self.throttle(quota, stretch, until);
        }
        let nanos = needed
            .min(self.bucket.tokens / rate)
            .min(self.bucket.refill_at - self.now)
            .min(until - self.now);
        let before = self.used;
        self.work(stretch, nanos);
        self.bucket.tokens -= self.used - before;
    }

    /// Works for `nanos` at full speed, which is never beyond the end of the round.
    fn work(&mut self, stretch: Stretch, nanos: u64) {
        let round_left = stretch.left_in_round(self.progress.left);
        let done = (nanos * stretch.parallelism).min(round_left);
        self.progress.left -= done;
        self.used += done;
        self.now += nanos;
        if done == round_left {
            self.wait_left = stretch.wait_after(self.progress.left);
            self.leave_if_done();
        }
    }

    fn wait(&mut self, stretch: Stretch, until: u64) {
        if self.wait_left == stretch.wait {
            self.skip_rounds(stretch, until);
        }
        let nanos = self.wait_left.min(until - self.now);
        self.wait_left -= nanos;
        self.now += nanos;
        self.leave_if_done();
    }

    fn leave_if_done(&mut self) {
        if self.wait_left == 0 && self.progress.left == 0 {
            self.progress.skip_empty(self.demand);
        }
    }

    /// At the end of a round: goes on to the end of a later one, if the quota has no say in between.
    fn skip_rounds(&mut self, stretch: Stretch, until: u64) {
        let (busy, round) = stretch.times();
        let ahead = (self.progress.left / stretch.round).saturating_sub(1);
        let rounds = ahead.min((until - self.now) / round);
        if rounds < 2 {
            return;
        }
        if let Some(quota) = self.quota.filter(|quota| quota.rate < stretch.parallelism) {
            if !stretch.never_binds(quota) || rounds * round <= quota.period {
                return;
            }
            let now = self.now + rounds * round;
            self.throttled += self.bucket.refill(quota, now);
            // Counted back from the end of a round to the last refill.
            let since = now + quota.period - self.bucket.refill_at;
            let spent =
                since / round * stretch.round + (since % round).min(busy) * stretch.parallelism;
            self.bucket.tokens = quota.most().saturating_sub(spent);
        }
        self.progress.left -= rounds * stretch.round;
        self.used += rounds * stretch.round;
        self.now += rounds * round;
    }

    /// Waits for the end of the period; many periods at once if each uses up its quota.
    fn throttle(&mut self, quota: Quota, stretch: Stretch, until: u64) {
        self.bucket.tokens = 0;
        let each = quota.per_period() / stretch.parallelism * stretch.parallelism;
        let binds = stretch.wait == 0 || stretch.always_binds(quota);
        if each > 0 && binds {
            let keep = if stretch.wait == 0 { 1 } else { stretch.round + 1 };
            let periods = (self.progress.left.saturating_sub(keep) / each)
                .min((until - self.now) / quota.period);
            let left = self.progress.left - periods * each;
            // A period that ends with a round would let the wait overlap with the throttling.
            if stretch.wait == 0 || !left.is_multiple_of(stretch.round) {
                self.progress.left = left;
                self.used += periods * each;
                self.now += periods * quota.period;
                self.bucket.refill_at += periods * quota.period;
                self.throttled += periods * (quota.period - each / stretch.parallelism);
            }
        }
        let nanos = self.bucket.refill_at.min(until) - self.now;
        self.bucket.throttled += nanos;
        self.now += nanos;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windfall_core::{Duration, Mebibytes, MilliCpu};

    const MS: u64 = 1_000_000;

    fn demand(work_ms: u64, cores: u32, waits_ms: u64, cycles: u8) -> CallDemand {
        CallDemand {
            work: work_ms * MS * 1000,
            fixed: Duration::from_millis(waits_ms),
            parallelism: MilliCpu::new(cores),
            memory_base: Mebibytes::new(1),
            memory_peak: Mebibytes::new(1),
            rise: Duration::ZERO,
            jumps: false,
            cycles,
            shape: 7,
            input: None,
        }
    }

    fn walk(demand: &CallDemand, rounds: Rounds, quota: Option<Quota>, phase: u64) -> Walk<'_> {
        let bucket = quota.map_or_else(Bucket::default, |quota| Bucket::full(quota, phase));
        Walk {
            demand,
            rounds,
            quota,
            progress: Progress::start(demand),
            wait_left: 0,
            bucket,
            now: 0,
            used: 0,
            throttled: 0,
        }
    }

    fn run_ms(mut walk: Walk<'_>) -> f64 {
        walk.pass(u64::MAX >> 1);
        assert_eq!(walk.used, walk.demand.work);
        walk.now as f64 / MS as f64
    }

    fn quota(rate: u64, period_ms: u64) -> Quota {
        Quota { rate, period: period_ms * MS, saved: 0 }
    }

    #[test]
    fn work_under_half_a_core_by_hand() {
        let call = demand(270, 1000, 0, 1);
        let run = |phase| run_ms(walk(&call, Rounds::default(), Some(quota(500, 100)), phase * MS));
        // Five periods of 50 ms, and 20 ms in the sixth.
        assert_eq!(run(100), 520.0);
        // 30 ms of the first period are left: 30 + 4 * 50 + 40.
        assert_eq!(run(30), 470.0);
        // Two threads use 50 ms in 25.
        let wide = demand(270, 2000, 0, 1);
        let run = run_ms(walk(&wide, Rounds::default(), Some(quota(500, 100)), 100 * MS));
        assert_eq!(run, 510.0);
    }

    #[test]
    fn bursts_within_the_quota_are_not_slowed() {
        // 3 ms of work and 5 ms of waiting, a hundred times.
        let call = demand(300, 1000, 0, 1);
        let rounds = Rounds { wait: 500 * MS, count: 100 };
        for limit in [None, Some(quota(450, 100)), Some(quota(1000, 100))] {
            assert_eq!(run_ms(walk(&call, rounds, limit, 100 * MS)), 800.0);
        }
        // Half of what it needs: 18.75 ms in each period of 100 ms.
        let run = run_ms(walk(&call, rounds, Some(Quota { rate: 187, ..quota(0, 100) }), 100 * MS));
        assert!((1550.0..1625.0).contains(&run), "{run}");
    }

    #[test]
    fn a_saved_burst_lets_a_rare_peak_pass() {
        // 60 ms of work after 300 ms of waiting under 17.5 ms per period.
        let call = demand(60, 1000, 600, 1);
        let strict = quota(175, 100);
        let saving = Quota { saved: strict.per_period(), ..strict };
        let run = |quota| run_ms(walk(&call, Rounds::default(), Some(quota), 100 * MS));
        // 17.5 ms in each of four periods at 300, 400, 500 and 600 ms; with the burst 35 ms in the first.
        assert_eq!(run(strict), 300.0 + 300.0 + 7.5 + 300.0);
        assert_eq!(run(saving), 300.0 + 200.0 + 7.5 + 300.0);
    }

    proptest! {
        #[test]
        fn skipping_changes_nothing(
            work in 1u64..2000, waits in 0u64..2000, fine in 0u64..2000, count in 1u64..300,
            rate in 20u64..1500, period in prop_oneof![Just(20u64), Just(100)], phase in 1u64..20,
            cores in 300u32..2500, cycles in 1u8..5, step in 1u64..50,
        ) {
            let call = demand(work, cores, waits, cycles);
            let rounds = Rounds { wait: fine * MS / u64::from(cycles), count };
            let limit = Some(quota(rate, period)).filter(|_| rate < 1400);
            let whole = run_ms(walk(&call, rounds, limit, phase * MS));
            // In small steps nothing is skipped.
            let mut stepped = walk(&call, rounds, limit, phase * MS);
            while !stepped.progress.is_done(&call) {
                let now = stepped.now;
                stepped.pass(now + step * MS);
            }
            prop_assert_eq!(stepped.used, call.work);
            let run = stepped.now as f64 / MS as f64;
            prop_assert!((run - whole).abs() < 0.02 + 1e-3 * whole, "{} in steps, {} at once", run, whole);
        }
    }
}
