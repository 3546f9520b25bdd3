//! How far a call has come through its segments. Integers throughout, so that a call that is looked at
//! a thousand times ends at the same nanosecond as one that is left alone.

use windfall_core::demand::Segment;
use windfall_core::{CallDemand, MilliCpu};

/// A place inside a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The segment under way; past the last one when the call is done.
    pub(crate) segment: u8,
    /// What is left of it: nanoseconds if idle, millicore-nanoseconds if work.
    pub(crate) left: u64,
}

/// What a stretch of time amounted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Millicore-nanoseconds used.
    pub(crate) used: u64,
    /// Nanoseconds during which more CPU would have been used had there been more.
    pub(crate) throttled: u64,
}

impl Progress {
    /// The beginning of a call.
    pub(crate) fn start(demand: &CallDemand) -> Self {
        let mut start = Self { segment: 0, left: amount(demand.segment(0)) };
        start.skip_empty(demand);
        start
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self, demand: &CallDemand) -> bool {
        self.segment >= demand.segments()
    }

    /// The most CPU the segment under way can use: nothing while it idles.
    pub(crate) fn demand_now(&self, demand: &CallDemand) -> MilliCpu {
        if self.segment % 2 == 1 && !self.is_done(demand) {
            demand.cycle_parallelism(self.segment / 2)
        } else {
            MilliCpu::ZERO
        }
    }

    /// Lets `nanos` pass on a CPU limit of `limit`.
    pub(crate) fn advance(
        &mut self,
        demand: &CallDemand,
        limit: MilliCpu,
        mut nanos: u64,
    ) -> Passed {
        let mut passed = Passed::default();
        while nanos > 0 && !self.is_done(demand) {
            let wanted = self.demand_now(demand);
            if wanted == MilliCpu::ZERO {
                let idle = nanos.min(self.left);
                self.left -= idle;
                nanos -= idle;
            } else {
                let rate = u64::from(wanted.min(limit).get().max(1));
                let needed = self.left.div_ceil(rate).min(nanos);
                let done = (needed * rate).min(self.left);
                passed.used += done;
                if wanted > limit {
                    passed.throttled += needed;
                }
                self.left -= done;
                nanos -= needed;
            }
            self.skip_empty(demand);
        }
        passed
    }

    /// Works off `nanos` of the segment under way at a shared `rate` (millicores), never past its end.
    pub(crate) fn advance_shared(&mut self, demand: &CallDemand, rate: f64, nanos: u64) -> Passed {
        let wanted = self.demand_now(demand);
        if wanted == MilliCpu::ZERO {
            self.left = self.left.saturating_sub(nanos);
            self.skip_empty(demand);
            return Passed::default();
        }
        let done = ((nanos as f64 * rate).round() as u64).min(self.left);
        self.left -= done;
        // Less than a nanosecond of work is left by rounding alone.
        if (self.left as f64) < rate {
            let rest = std::mem::take(&mut self.left);
            self.skip_empty(demand);
            return Passed { used: done + rest, throttled: throttled(wanted, rate, nanos) };
        }
        Passed { used: done, throttled: throttled(wanted, rate, nanos) }
    }

    /// Nanoseconds until the segment under way ends at a shared `rate`; never, at rate zero.
    pub(crate) fn until_segment_ends(&self, demand: &CallDemand, rate: f64) -> u64 {
        if self.demand_now(demand) == MilliCpu::ZERO {
            self.left
        } else if rate > 0.0 {
            (self.left as f64 / rate).ceil() as u64
        } else {
            u64::MAX
        }
    }

    /// Nanoseconds until the call is done on a CPU limit of `limit`.
    pub(crate) fn remaining(mut self, demand: &CallDemand, limit: MilliCpu) -> u64 {
        let mut nanos = 0;
        while !self.is_done(demand) {
            let wanted = self.demand_now(demand);
            nanos += if wanted == MilliCpu::ZERO {
                self.left
            } else {
                self.left.div_ceil(u64::from(wanted.min(limit).get().max(1)))
            };
            self.left = 0;
            self.skip_empty(demand);
        }
        nanos
    }

    pub(crate) fn skip_empty(&mut self, demand: &CallDemand) {
        while self.left == 0 && self.segment < demand.segments() {
            self.segment += 1;
            if self.segment < demand.segments() {
                self.left = amount(demand.segment(self.segment));
            }
        }
    }
}

fn throttled(wanted: MilliCpu, rate: f64, nanos: u64) -> u64 {
    if f64::from(wanted.get()) > rate + 1e-6 { nanos } else { 0 }
}

fn amount(segment: Segment) -> u64 {
    match segment {
        Segment::Idle(idle) => idle.as_nanos(),
        Segment::Work { work, .. } => work,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windfall_core::{Duration, Mebibytes};

    fn demand(work: u64, fixed: u64, cycles: u8, shape: u32) -> CallDemand {
        CallDemand {
            work,
            fixed: Duration::from_nanos(fixed),
            parallelism: MilliCpu::new(2000),
            memory_base: Mebibytes::new(10),
            memory_peak: Mebibytes::new(20),
            rise: Duration::ZERO,
            jumps: false,
            cycles,
            shape,
            input: None,
        }
    }

    proptest! {
        #[test]
        fn looking_does_not_change_the_end(
            work in 0u64..1 << 44, fixed in 0u64..1 << 33, cycles in 1u8..11, shape: u32,
            cpu in 1u32..3000, looks in proptest::collection::vec(1u64..1 << 32, 0..20),
        ) {
            let demand = demand(work, fixed, cycles, shape);
            let limit = MilliCpu::new(cpu);
            let total = demand.run_time(limit).as_nanos();
            let (mut progress, mut passed, mut used) = (Progress::start(&demand), 0, 0);
            prop_assert_eq!(progress.remaining(&demand, limit), total);
            for look in looks {
                let step = look.min(total - passed);
                used += progress.advance(&demand, limit, step).used;
                passed += step;
                prop_assert_eq!(passed + progress.remaining(&demand, limit), total);
            }
            used += progress.advance(&demand, limit, total - passed).used;
            prop_assert!(progress.is_done(&demand));
            prop_assert_eq!(used, work);
        }
    }
}
