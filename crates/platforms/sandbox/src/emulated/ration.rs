//! When to stop and when to continue processes so that their CPU time follows a quota.
//!
//! A bucket as in the kernel: it fills at the quota's rate and is emptied by the CPU time used. Samples come late, so
//! it may fall below zero; what was used too much is missing later, and the average is exact. Example: 50 % of 100 ms, one
//! busy thread, samples every 5 ms. The bucket begins with 50 ms and loses 0.5 ms per ms: after 100 ms it is empty, the
//! processes stop, and continue when a quarter of the quota (12.5 ms) has come together, 25 ms later.

use std::time::Duration;

use crate::control::Budget;

/// Accounts of one instance.
#[derive(Debug)]
pub(super) struct Ration {
    budget: Budget,
    /// CPU time that may be used now, nanoseconds; negative if too much was used.
    credit: i64,
    is_stopped: bool,
    /// Time since the current period began.
    into_period: Duration,
    was_stopped_in_period: bool,
    was_busy_in_period: bool,
    pub(super) counters: Counters,
}

/// What the kernel counts in `cpu.stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) periods: u64,
    pub(super) throttled_periods: u64,
    pub(super) throttled_time: Duration,
}

impl Ration {
    /// Begins with a full bucket.
    pub(super) fn new(budget: Budget, counters: Counters) -> Self {
        let credit = nanos(budget.time);
        Self {
            budget,
            credit,
            is_stopped: false,
            into_period: Duration::ZERO,
            was_stopped_in_period: false,
            was_busy_in_period: false,
            counters,
        }
    }

    /// Takes note of CPU time `used` in the last `elapsed`; returns whether the processes should be stopped now.
    pub(super) fn sample(&mut self, elapsed: Duration, used: Duration) -> bool {
        let time = nanos(self.budget.time);
        let earned = i128::from(nanos(elapsed)) * i128::from(time)
            / i128::from(nanos(self.budget.period).max(1));
        let most = time + nanos(self.budget.burst);
        let credit = i128::from(self.credit) + earned - i128::from(nanos(used));
        self.credit = i64::try_from(credit).unwrap_or(i64::MIN).min(most);
        self.count(elapsed, !used.is_zero());
        self.is_stopped = if self.is_stopped { self.credit < time / 4 } else { self.credit <= 0 };
        self.is_stopped
    }

    fn count(&mut self, elapsed: Duration, is_busy: bool) {
        if self.is_stopped {
            self.counters.throttled_time += elapsed;
        }
        self.was_stopped_in_period |= self.is_stopped;
        self.was_busy_in_period |= is_busy || self.is_stopped;
        self.into_period += elapsed;
        if self.into_period >= self.budget.period {
            self.into_period = Duration::ZERO;
            self.counters.periods += u64::from(self.was_busy_in_period);
            self.counters.throttled_periods += u64::from(self.was_stopped_in_period);
            (self.was_stopped_in_period, self.was_busy_in_period) = (false, false);
        }
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Duration = Duration::from_millis(5);

    fn budget(share: u32) -> Budget {
        let period = Duration::from_millis(100);
        Budget { time: period * share / 100, period, burst: Duration::ZERO }
    }

    /// CPU time of `threads` busy threads over ten seconds.
    fn used(share: u32, threads: u32) -> (Duration, Counters) {
        let mut ration = Ration::new(budget(share), Counters::default());
        let (mut total, mut is_stopped) = (Duration::ZERO, false);
        for _ in 0..2000 {
            let now = if is_stopped { Duration::ZERO } else { SAMPLE * threads };
            total += now;
            is_stopped = ration.sample(SAMPLE, now);
        }
        (total, ration.counters)
    }

    #[test]
    fn the_average_follows_the_quota_whatever_the_number_of_threads() {
        for (share, threads) in [(75, 1), (50, 1), (10, 1), (50, 4), (150, 2)] {
            let (time, _) = used(share, threads);
            let cores = time.as_secs_f64() / 10.0;
            let asked = f64::from(share) / 100.0;
            assert!((cores - asked).abs() < 0.02, "asked {asked}, used {cores} by {threads}");
        }
    }

    #[test]
    fn a_quota_that_is_never_reached_never_stops() {
        let (time, counters) = used(100, 1);
        assert_eq!(time, Duration::from_secs(10));
        assert_eq!((counters.periods, counters.throttled_periods), (100, 0));
    }

    #[test]
    fn stopped_time_and_periods_are_counted() {
        let (_, counters) = used(50, 1);
        assert_eq!(counters.periods, 100);
        assert!(counters.throttled_periods > 90);
        let stopped = counters.throttled_time.as_secs_f64();
        assert!((4.5..5.1).contains(&stopped), "{stopped} s of 10 s at half a core");
    }
}
