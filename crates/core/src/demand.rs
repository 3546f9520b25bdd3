//! What one call needs, and the law of how long it takes.
//!
//! A call is `cycles` rounds of waiting and working. With an effective CPU share `c`:
//!
//! ```text
//!   run(c) = fixed + sum over cycles k of (work / cycles) / min(c, p_k)
//!
//!   idle  work        idle      work     idle
//!   ────▕████████▏────────▕█████████████▏────        (2 cycles: p_0 = 2 cores, p_1 = 1.2 cores)
//! ```
//!
//! With one cycle this is `f + w / min(c, p)`, which fits the published measurements with decoupled
//! CPU and memory with 2.7 % median error. Nothing in here is visible to a policy except `input`.

use serde::{Deserialize, Serialize};

use crate::seed::mix;
use crate::time::Duration;
use crate::units::{Mebibytes, MilliCpu};

/// The demand of one call, drawn when it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallDemand {
    /// Work in millicore-nanoseconds: one core for one second is 1e12.
    pub work: u64,
    /// Time that passes whatever the CPU share: waiting for disks and neighbours.
    pub fixed: Duration,
    /// The most CPU the call can use at once.
    pub parallelism: MilliCpu,
    /// Memory in use when the call starts.
    pub memory_base: Mebibytes,
    /// The most memory it ever uses.
    pub memory_peak: Mebibytes,
    /// How long after the start the peak is reached; never longer than the fastest run.
    pub rise: Duration,
    /// Whether memory jumps to the peak at the end of `rise` instead of climbing evenly.
    pub jumps: bool,
    /// Rounds of waiting and working, at least 1.
    pub cycles: u8,
    /// Decides which cycles run at full parallelism and how far the others stay below.
    pub shape: u32,
    /// The input size a policy can see at dispatch, where the function has one.
    pub input: Option<f32>,
}

/// A stretch of a call during which nothing about its demand changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Waits this long whatever the CPU share.
    Idle(Duration),
    /// Works off `work` millicore-nanoseconds on at most `parallelism`.
    Work {
        /// Millicore-nanoseconds.
        work: u64,
        /// The most CPU this stretch can use.
        parallelism: MilliCpu,
    },
}

impl CallDemand {
    /// The most CPU that cycle `k` can use.
    ///
    /// About half of the cycles, at least one, reach the call's full parallelism; the others stay at
    /// 40 to 100 % of it.
    pub fn cycle_parallelism(&self, k: u8) -> MilliCpu {
        if self.cycles <= 1 || k == (self.shape % u32::from(self.cycles)) as u8 {
            return self.parallelism;
        }
        let bits = mix(u64::from(self.shape) << 8 | u64::from(k));
        if bits & 1 == 0 {
            return self.parallelism;
        }
        // 400 + 0..=600 thousandths, from ten of the remaining bits.
        let thousandths = 400 + (bits >> 1 & 1023) * 600 / 1023;
        let millis = u64::from(self.parallelism.get()) * thousandths / 1000;
        MilliCpu::new((millis as u32).max(1))
    }

    /// The work of cycle `k`: an even share, the last cycle takes the remainder.
    fn cycle_work(&self, k: u8) -> u64 {
        // Most calls have one cycle, and a division takes as long as the rest of a look-up.
        if self.cycles <= 1 {
            return self.work;
        }
        let cycles = u64::from(self.cycles.max(1));
        let share = self.work / cycles;
        if u64::from(k) + 1 == cycles { self.work - share * (cycles - 1) } else { share }
    }

    /// How many segments the call has: idle at even places, work at odd ones.
    pub fn segments(&self) -> u8 {
        2 * self.cycles.max(1) + 1
    }

    /// Segment `i`. Idle time lies half before and half after the work of each cycle.
    pub fn segment(&self, i: u8) -> Segment {
        if i % 2 == 1 {
            let k = i / 2;
            return Segment::Work {
                work: self.cycle_work(k),
                parallelism: self.cycle_parallelism(k),
            };
        }
        let halves = 2 * u64::from(self.cycles.max(1));
        let fixed = self.fixed.as_nanos();
        let half = if halves == 2 { fixed / 2 } else { fixed / halves };
        let idle = if i == 0 {
            half
        } else if i + 1 == self.segments() {
            fixed - half * (halves - 1)
        } else {
            2 * half
        };
        Segment::Idle(Duration::from_nanos(idle))
    }

    /// Run time on a constant CPU share of `cpu`, to the nanosecond.
    ///
    /// | call                                   | 500m   | 1000m  | 2000m  |
    /// | -------------------------------------- | ------ | ------ | ------ |
    /// | 1 core-second, p = 1.5, fixed = 0.2 s  | 2.2 s  | 1.2 s  | 0.87 s |
    #[inline]
    pub fn run_time(&self, cpu: MilliCpu) -> Duration {
        if self.cycles <= 1 {
            let rate = u64::from(self.parallelism.min(cpu).get().max(1));
            return self.fixed + Duration::from_nanos(self.work.div_ceil(rate));
        }
        self.run_time_of_cycles(cpu)
    }

    fn run_time_of_cycles(&self, cpu: MilliCpu) -> Duration {
        let mut nanos = self.fixed.as_nanos();
        for k in 0..self.cycles {
            let rate = u64::from(self.cycle_parallelism(k).min(cpu).get().max(1));
            nanos += self.cycle_work(k).div_ceil(rate);
        }
        Duration::from_nanos(nanos)
    }

    /// Run time with all the CPU it can use.
    pub fn fastest(&self) -> Duration {
        self.run_time(self.parallelism)
    }

    /// The same demand with its work chosen so that it runs for `run` on a share of `cpu`.
    ///
    /// Traces record how long calls took at the size their users had chosen; this turns that around.
    pub fn with_run_time(self, run: Duration, cpu: MilliCpu) -> Self {
        Self { rise: self.rise, ..self.with_run_time_and_rise(run, cpu, 0.0) }
    }

    /// [`Self::with_run_time`], with memory at its peak after `rise_share` (0 to 1) of the fastest run.
    ///
    /// Both in one go, because workloads draw millions of calls and most of them have one cycle, which
    /// needs no division at all where the user's size is at least the parallelism.
    #[inline]
    pub fn with_run_time_and_rise(mut self, run: Duration, cpu: MilliCpu, rise_share: f32) -> Self {
        let busy = run.saturating_sub(self.fixed).as_nanos_f64();
        let (work, fastest) = if self.cycles <= 1 {
            let rate = f64::from(self.parallelism.min(cpu).get().max(1));
            let work = busy * rate;
            let all = f64::from(self.parallelism.get().max(1));
            (work, if cpu >= self.parallelism { busy } else { work / all })
        } else {
            let (limited, free) = self.inverse_rates(cpu);
            let share = busy / limited;
            (share * f64::from(self.cycles), share * free)
        };
        // Signed, because that is one instruction and unsigned is ten.
        self.work = work as i64 as u64;
        // Rounding moves the fastest run by at most a nanosecond per cycle.
        let fastest = self.fixed.as_nanos_f64() + fastest;
        self.rise = Duration::from_nanos_f64(fastest * f64::from(rise_share));
        self
    }

    /// Nanoseconds per unit of work, summed over the cycles: on a share of `cpu`, and without a limit.
    fn inverse_rates(&self, cpu: MilliCpu) -> (f64, f64) {
        let (mut limited, mut free) = (0.0, 0.0);
        for k in 0..self.cycles.max(1) {
            let rate = self.cycle_parallelism(k);
            let inverse = 1.0 / f64::from(rate.get().max(1));
            free += inverse;
            limited += if rate <= cpu { inverse } else { 1.0 / f64::from(cpu.get().max(1)) };
        }
        (limited, free)
    }

    /// Memory in use `elapsed` after the start.
    pub fn memory_at(&self, elapsed: Duration) -> Mebibytes {
        if elapsed >= self.rise {
            return self.memory_peak;
        }
        if self.jumps {
            return self.memory_base;
        }
        let climb = u64::from(self.memory_peak.saturating_sub(self.memory_base).get());
        let grown =
            u128::from(climb) * u128::from(elapsed.as_nanos()) / u128::from(self.rise.as_nanos());
        self.memory_base + Mebibytes::new(grown as u32)
    }

    /// When after the start memory first exceeds `limit`; never, if the peak fits.
    ///
    /// A call that climbs from 100 to 300 MiB in 2 s crosses a limit of 150 MiB after 0.5 s.
    pub fn crosses(&self, limit: Mebibytes) -> Option<Duration> {
        if self.memory_peak <= limit {
            return None;
        }
        if limit < self.memory_base {
            return Some(Duration::ZERO);
        }
        if self.jumps {
            return Some(self.rise);
        }
        let climb = u64::from(self.memory_peak.saturating_sub(self.memory_base).get());
        let room = u64::from(limit.saturating_sub(self.memory_base).get());
        let nanos = u128::from(self.rise.as_nanos()) * u128::from(room) / u128::from(climb);
        Some(Duration::from_nanos(nanos as u64))
    }

    /// MiB-nanoseconds used over the first `elapsed` of the run.
    pub fn memory_used(&self, elapsed: Duration) -> u64 {
        let (base, peak) = (u64::from(self.memory_base.get()), u64::from(self.memory_peak.get()));
        let rising = elapsed.min(self.rise).as_nanos();
        let after = elapsed.as_nanos() - rising;
        let climbing = if self.jumps {
            base * rising
        } else if elapsed >= self.rise {
            // The whole climb: halfway between base and peak on average.
            (base + peak.max(base)) * rising / 2
        } else {
            // The mean of a straight line: base at the start, this much at the end of the stretch.
            let reached = u128::from(peak - base.min(peak)) * u128::from(rising)
                / u128::from(self.rise.as_nanos());
            base * rising + (reached as u64) * rising / 2
        };
        climbing + peak * after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_core_second() -> CallDemand {
        CallDemand {
            work: 1_000_000_000_000,
            fixed: Duration::from_millis(200),
            parallelism: MilliCpu::new(1500),
            memory_base: Mebibytes::new(100),
            memory_peak: Mebibytes::new(300),
            rise: Duration::from_millis(400),
            jumps: false,
            cycles: 1,
            shape: 0,
            input: None,
        }
    }

    #[test]
    fn the_law_by_hand() {
        let call = one_core_second();
        assert_eq!(call.run_time(MilliCpu::new(500)), Duration::from_millis(2200));
        assert_eq!(call.run_time(MilliCpu::new(1000)), Duration::from_millis(1200));
        // More than the parallelism is of no use: 0.2 s + 1 / 1.5 s.
        assert_eq!(call.run_time(MilliCpu::new(2000)), call.fastest());
        assert_eq!(call.fastest().as_nanos(), 200_000_000 + 666_666_667);
    }

    #[test]
    fn memory_by_hand() {
        let call = one_core_second();
        assert_eq!(call.memory_at(Duration::from_millis(200)), Mebibytes::new(200));
        assert_eq!(call.crosses(Mebibytes::new(150)), Some(Duration::from_millis(100)));
        assert_eq!(call.crosses(Mebibytes::new(300)), None);
        // 0.4 s at 200 MiB on average, then 0.6 s at 300 MiB: 80 + 180 MiB-s.
        assert_eq!(call.memory_used(Duration::from_secs(1)), 260_000_000_000);
    }

    #[test]
    fn a_jump_comes_at_the_end_of_the_rise() {
        let call = CallDemand { jumps: true, ..one_core_second() };
        assert_eq!(call.memory_at(Duration::from_millis(399)), Mebibytes::new(100));
        assert_eq!(call.crosses(Mebibytes::new(150)), Some(Duration::from_millis(400)));
    }

    proptest! {
        #[test]
        fn segments_add_up_to_the_law(work in 1u64..1 << 50, fixed in 0u64..1 << 40, cycles in 1u8..11, shape: u32, cpu in 1u32..9000) {
            let call = CallDemand { work, fixed: Duration::from_nanos(fixed), cycles, shape, ..one_core_second() };
            let (mut total, mut worked) = (0, 0);
            for i in 0..call.segments() {
                total += match call.segment(i) {
                    Segment::Idle(idle) => idle.as_nanos(),
                    Segment::Work { work, parallelism } => {
                        worked += work;
                        work.div_ceil(u64::from(parallelism.get().min(cpu)))
                    }
                };
            }
            prop_assert_eq!(worked, work);
            prop_assert_eq!(total, call.run_time(MilliCpu::new(cpu)).as_nanos());
        }

        #[test]
        fn work_is_recovered_from_a_run_time(millis in 1u64..600_000, cycles in 1u8..11, shape: u32, cpu in 50u32..9000) {
            let run = Duration::from_millis(millis);
            let call = CallDemand { fixed: run.scaled(0.3), cycles, shape, ..one_core_second() };
            let call = call.with_run_time(run, MilliCpu::new(cpu));
            prop_assert_eq!(call.rise, one_core_second().rise);
            let again = call.run_time(MilliCpu::new(cpu));
            let error = again.as_nanos().abs_diff(run.as_nanos());
            prop_assert!(error <= u64::from(cycles) + run.as_nanos() / 1_000_000, "off by {error} ns");
        }

        #[test]
        fn the_rise_is_the_share_of_the_fastest_run(millis in 1u64..600_000, cycles in 1u8..11, shape: u32, cpu in 50u32..9000, share in 0f32..1.0) {
            let run = Duration::from_millis(millis);
            let call = CallDemand { fixed: run.scaled(0.3), cycles, shape, ..one_core_second() };
            let call = call.with_run_time_and_rise(run, MilliCpu::new(cpu), share);
            let wanted = call.fastest().as_nanos() as f64 * f64::from(share);
            let error = (call.rise.as_nanos() as f64 - wanted).abs();
            prop_assert!(error <= f64::from(cycles) + wanted * 1e-6, "off by {error} ns");
        }
    }
}
