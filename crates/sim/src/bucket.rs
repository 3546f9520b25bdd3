//! A quota as the kernel keeps it: a bucket of CPU time that is refilled once per period.
//!
//! ```text
//!  tokens  50 ms ┐╲             ┐╲             quota 0.5, period 100 ms, one thread that always works:
//!                │ ╲            │ ╲            50 ms at full speed, then throttled until the period ends
//!              0 ┴──╲___________┴──╲________
//!                0   50        100  150        ms
//! ```

/// A limit on CPU time per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Mean rate, millicores.
    pub(crate) rate: u64,
    /// Nanoseconds.
    pub(crate) period: u64,
    /// What can be saved beyond one period's quota, millicore-nanoseconds.
    pub(crate) saved: u64,
}

impl Quota {
    /// Millicore-nanoseconds that each period brings.
    pub(crate) fn per_period(&self) -> u64 {
        self.rate * self.period
    }

    /// The most that the bucket holds.
    pub(crate) fn most(&self) -> u64 {
        self.per_period() + self.saved
    }
}

/// What is left of the quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Millicore-nanoseconds.
    pub(crate) tokens: u64,
    /// When the period under way ends, nanoseconds since the run began.
    pub(crate) refill_at: u64,
    /// Nanoseconds throttled in the period under way. The kernel's counter shows them when it has ended.
    pub(crate) throttled: u64,
}

impl Bucket {
    /// A full bucket whose period under way ends at `refill_at`.
    pub(crate) fn full(quota: Quota, refill_at: u64) -> Self {
        Self { tokens: quota.most(), refill_at, throttled: 0 }
    }

    /// Ends the periods that are over by `now`; returns the throttled time that becomes visible.
    pub(crate) fn refill(&mut self, quota: Quota, now: u64) -> u64 {
        if now < self.refill_at {
            return 0;
        }
        let periods = self.end_periods(quota, now);
        let brought = quota.per_period().saturating_mul(periods);
        self.tokens = self.tokens.saturating_add(brought).min(quota.most());
        std::mem::take(&mut self.throttled)
    }

    /// Moves on to the period that `now` lies in, without a refill; returns how many have ended.
    pub(crate) fn end_periods(&mut self, quota: Quota, now: u64) -> u64 {
        if now < self.refill_at {
            return 0;
        }
        let periods = (now - self.refill_at) / quota.period + 1;
        self.refill_at += periods * quota.period;
        periods
    }

    /// Lets `nanos` pass at the mean rate of the quota, as if it were refilled all the time.
    pub(crate) fn trickle(&mut self, quota: Quota, nanos: u64, spent: u64) {
        let brought = quota.rate.saturating_mul(nanos);
        self.tokens = self.tokens.saturating_add(brought).saturating_sub(spent).min(quota.most());
    }
}

/// Nanoseconds that `work` takes at `rate` millicores under `quota`, beginning with a full bucket whose period ends after
/// `first` nanoseconds.
///
/// A start that needs 70 ms of CPU takes 120 ms on half a core, if it begins with the period.
pub(crate) fn time_under_quota(work: u64, rate: u64, quota: Quota, first: u64) -> u64 {
    let alone = work.div_ceil(rate);
    if quota.rate >= rate || work <= quota.per_period().min(rate * first) {
        return alone;
    }
    // The first period may be cut short; each of the following gives a whole quota.
    let in_first = quota.per_period().min(rate * first);
    let rest = work - in_first;
    let whole = (rest - 1) / quota.per_period();
    first + whole * quota.period + (rest - whole * quota.per_period()).div_ceil(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const HALF: Quota = Quota { rate: 500, period: 100 * MS, saved: 0 };

    #[test]
    fn a_start_under_half_a_core_takes_about_twice_as_long() {
        let time = |millis: u64, first: u64| {
            time_under_quota(millis * MS * 1000, 1000, HALF, first * MS) / MS
        };
        assert_eq!(time(30, 100), 30);
        assert_eq!(time(70, 100), 120);
        assert_eq!(time(200, 100), 350);
        // 20 ms are left of the first period, and the next one gives 50 ms.
        assert_eq!(time(60, 20), 60);
        assert_eq!(time(90, 20), 140);
    }

    #[test]
    fn throttled_time_shows_when_the_period_has_ended() {
        let mut bucket = Bucket { tokens: 0, refill_at: 100 * MS, throttled: 40 * MS };
        assert_eq!(bucket.refill(HALF, 99 * MS), 0);
        assert_eq!(bucket.refill(HALF, 100 * MS), 40 * MS);
        assert_eq!((bucket.tokens, bucket.refill_at), (HALF.per_period(), 200 * MS));
        // Nothing is saved without a burst.
        bucket.refill(HALF, 550 * MS);
        assert_eq!((bucket.tokens, bucket.refill_at), (HALF.per_period(), 600 * MS));
    }
}
