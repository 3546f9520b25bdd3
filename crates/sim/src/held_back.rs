//! What a node keeps out of new calls' reach, summed over time, and each call's part of it.
//!
//! A safeguard may keep CPU back on a node so that calls that were trimmed find it again. Nobody else can
//! use it, so it costs as much as if it were granted, and it is counted beside what is granted.
//!
//! ```text
//!   kept(t)   = min(asked for on the node, free on the node)
//!   a call's  = what is asked for it  *  kept(t) / asked for on the node
//! ```
//!
//! Worked: a node of 4 cores has granted 2.5, so 1.5 are free. One call asks to keep back 2 cores and
//! another 1, together 3. New calls lose the 1.5 cores that are there, not 3: over a second the node keeps
//! 1.5 core-seconds, of which the first call answers for 1 and the second for 0.5. Once 1.5 more cores are
//! free, all 3 are kept and the calls answer for 2 and 1.

use windfall_core::{Duration, MilliCpu, Timestamp};

/// The running account of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBackTime {
    /// Up to here everything is counted.
    counted_until: Timestamp,
    /// Millicore-nanoseconds kept, exact: a month of 64 cores is 1.7e20, more than a `u64`.
    kept: u128,
    /// Nanoseconds for which each millicore asked for was kept: the integral of kept over asked. A call
    /// multiplies its own by what is asked for it, so a change touches one number and not every call.
    kept_per_asked: f64,
}

impl HeldBackTime {
    /// Time has passed until `now`, with `asked` to be kept and `free` there for it.
    pub(crate) fn pass(&mut self, now: Timestamp, asked: MilliCpu, free: MilliCpu) {
        let passed = now.since(std::mem::replace(&mut self.counted_until, now));
        if asked == MilliCpu::ZERO || passed == Duration::ZERO {
            return;
        }
        let kept = asked.min(free).get();
        self.kept += u128::from(kept) * u128::from(passed.as_nanos());
        self.kept_per_asked +=
            passed.as_nanos() as f64 * (f64::from(kept) / f64::from(asked.get()));
    }

    /// Millicore-nanoseconds kept since the run began.
    pub(crate) fn kept(&self) -> u128 {
        self.kept
    }

    /// Where the account of a call begins or ends; see [`part`](Self::part).
    pub(crate) fn mark(&self) -> f64 {
        self.kept_per_asked
    }

    /// Millicore-nanoseconds that a call answers for, for which `asked` was to be kept since `mark`.
    pub(crate) fn part(&self, asked: MilliCpu, mark: f64) -> u64 {
        (f64::from(asked.get()) * (self.kept_per_asked - mark)).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u128 = 1_000_000_000;

    #[test]
    fn no_more_is_kept_than_is_free_and_calls_share_it_by_what_they_ask() {
        let mut node = HeldBackTime::default();
        let (first, second) = (MilliCpu::new(2000), MilliCpu::new(1000));
        let mark = node.mark();
        node.pass(Timestamp::from_secs(1), first + second, MilliCpu::new(1500));
        assert_eq!(node.kept(), 1500 * SECOND);
        assert_eq!(
            (node.part(first, mark), node.part(second, mark)),
            (1000 * 1_000_000_000, 500 * 1_000_000_000)
        );
        node.pass(Timestamp::from_secs(3), first + second, MilliCpu::new(3000));
        assert_eq!(node.kept(), (1500 + 2 * 3000) * SECOND);
        assert_eq!(node.part(first, mark), (1000 + 2 * 2000) * 1_000_000_000);
    }

    #[test]
    fn time_in_which_nothing_is_asked_costs_nothing() {
        let mut node = HeldBackTime::default();
        node.pass(Timestamp::from_secs(5), MilliCpu::ZERO, MilliCpu::new(4000));
        node.pass(Timestamp::from_secs(6), MilliCpu::new(1000), MilliCpu::new(4000));
        assert_eq!(node.kept(), 1000 * SECOND);
    }
}
