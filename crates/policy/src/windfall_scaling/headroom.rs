//! Instances for busy functions, from how far arrivals find the system above its mean one lead time ago.
//!
//! ```text
//!   m   = mean calls in the system, half-life 5 s; the rate is smoothed in the same way
//!   u   = (calls found by an arrival - m one lead ago) / sqrt(m + 1)   its distribution is learned
//!   the k-th instance pays while  rate x P(u >= ((k-1) C - m) / sqrt(m + 1)) x weighted wait > price x MiB
//! ```
//!
//! Ten calls per second of 300 ms keep m at 3. The fifth instance serves an arrival that finds four or
//! more: half a standard deviation above. If one in five does, 2 calls per second would wait without it. At
//! 512 MiB and 3e-4 it costs 0.15 weighted waits per second, so it pays. The learned table adapts to smooth
//! and to bursty load.

use crate::holt::weight;
use crate::level_track::MOST_LEVELS;
use windfall_core::{Duration, FunctionView, PresenceStep};

/// Half-life of the mean and of the rate.
const HALF_LIFE: Duration = Duration::from_secs(5);
/// Factor on the price of an existing instance: hysteresis, so that instances are not started and released with
/// every tick.
const STAY: f64 = 0.5;
/// The table: from -4 to 16 standard deviations in steps of a tenth.
const LOWEST: f64 = -4.0;
const STEP: f64 = 0.1;
const BINS: usize = 200;
/// Decay of earlier weights with each tick: half is left after 693 ticks, 23 minutes of ticks of 2 s.
const DECAY: f32 = 0.999;
/// Weight of the normal distribution that the table starts with.
const BELIEF: f64 = 20.0;
/// Longest lead time, in ticks.
const MOST_LEAD: usize = 32;

/// Load statistics of a busy function.
#[derive(Clone, Debug)]
pub(crate) struct Headroom {
    mean: f64,
    rate: f64,
    /// Means at the last ticks, latest first.
    past: Vec<f32>,
    table: Vec<f32>,
    scale: f32,
    /// Calls in the system at the end of the last window.
    calls: u32,
}

/// Inputs to the decision about one more instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stakes {
    /// Price of holding an instance for a second, weighted waits.
    pub(crate) hold: f64,
    /// Current number of instances.
    pub(crate) have: usize,
    /// Calls that one instance serves concurrently.
    pub(crate) places: f64,
}

impl Default for Headroom {
    fn default() -> Self {
        let normal = |bin: usize| {
            let u = LOWEST + STEP * (bin as f64 + 0.5);
            (BELIEF * STEP * (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt()) as f32
        };
        let table = (0..BINS).map(normal).collect();
        Self { mean: 0.0, rate: 0.0, past: Vec::new(), table, scale: 1.0, calls: 0 }
    }
}

impl Headroom {
    /// Processes one window; `lead` is the time from the decision to start an instance until it serves calls.
    pub(crate) fn follow(&mut self, view: &FunctionView, window: Duration, lead: Duration) {
        let ticks = lead.as_nanos().div_ceil(window.as_nanos().max(1)) as usize;
        self.scale /= DECAY;
        // The mean one lead ago. At the beginning there is none, so the first arrivals are not counted.
        if let Some(&before) = self.past.get(ticks.clamp(1, MOST_LEAD) - 1) {
            self.count_arrivals(&view.presence, f64::from(before));
        }
        self.calls = view.presence.last().map_or(self.calls, |step| step.calls);
        if self.scale > 1e3 {
            let scale = self.scale;
            self.table.iter_mut().for_each(|weight| *weight /= scale);
            self.scale = 1.0;
        }
        let share = if self.past.is_empty() { 1.0 } else { weight(window, HALF_LIFE) };
        if view.mean_concurrency.is_finite() {
            self.mean += share * (view.mean_concurrency - self.mean);
        }
        let rate = f64::from(view.arrivals) / window.as_secs_f64().max(1e-9);
        self.rate += share * (rate - self.rate);
        self.past.insert(0, self.mean as f32);
        self.past.truncate(MOST_LEAD);
    }

    /// Discards past means, because the clock has jumped.
    pub(crate) fn break_off(&mut self) {
        self.past.clear();
    }

    /// Counts how many calls each arrival found in the system.
    fn count_arrivals(&mut self, steps: &[PresenceStep], before: f64) {
        for step in steps {
            if step.calls > self.calls {
                let u = (f64::from(step.calls - 1) - before) / (before + 1.0).sqrt();
                let bin = (((u - LOWEST) / STEP).max(0.0) as usize).min(BINS - 1);
                self.table[bin] += self.scale;
            }
            self.calls = step.calls;
        }
    }

    /// Largest number of instances whose last one is worth its price. `wait_without` returns the weighted wait
    /// of a call that lacks the k-th instance, from 0 to 1.
    pub(crate) fn instances(&self, stakes: Stakes, wait_without: impl Fn(usize) -> f64) -> usize {
        let Stakes { hold, have, places } = stakes;
        let above = self.above();
        let spread = (self.mean + 1.0).sqrt();
        let mut most = 0;
        for k in 1..=MOST_LEVELS {
            let u = ((k - 1) as f64 * places - self.mean) / spread;
            let place = ((u - LOWEST) / STEP).ceil().max(0.0) as usize;
            let share = above.get(place).copied().unwrap_or(0.0);
            let price = if k <= have { STAY * hold } else { hold };
            if self.rate * share * wait_without(k) > price {
                most = k;
            } else if k > have {
                break;
            }
        }
        most
    }

    /// Share of arrivals at or above the lower end of every bin.
    fn above(&self) -> Vec<f64> {
        let mut shares = vec![0.0; BINS + 1];
        for bin in (0..BINS).rev() {
            shares[bin] = shares[bin + 1] + f64::from(self.table[bin]);
        }
        let total = shares[0].max(f64::MIN_POSITIVE);
        shares.iter_mut().for_each(|share| *share /= total);
        shares
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.table.capacity() + self.past.capacity()) * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::function;
    use windfall_core::{PresenceStep, Timestamp};

    /// Arrivals that find `found` in the system, ten per second.
    fn busy(found: &[u32]) -> FunctionView {
        let step = |calls| PresenceStep { at: Timestamp::ZERO, calls, passed_over: 0 };
        let presence = found.iter().flat_map(|&n| [step(n), step(n + 1)]).collect();
        let mean = found.iter().sum::<u32>() as f64 / found.len() as f64;
        FunctionView { presence, arrivals: 20, mean_concurrency: mean, ..function(0) }
    }

    fn instances_for(found: &[u32], hold: f64) -> usize {
        let mut headroom = Headroom::default();
        let second = Duration::from_secs;
        for _ in 0..300 {
            headroom.follow(&busy(found), second(2), second(3));
        }
        let stakes = Stakes { hold, have: 0, places: 1.0 };
        headroom.instances(stakes, |_| 1.0)
    }

    #[test]
    fn steady_load_needs_little_more_than_its_mean_and_bursts_more() {
        let steady = instances_for(&[3, 3, 3, 3, 3, 3, 3, 3, 3, 3], 0.15);
        let bursty = instances_for(&[0, 0, 0, 0, 0, 0, 0, 10, 10, 10], 0.15);
        assert!(steady >= 4 && steady < bursty, "{steady} {bursty}");
        assert!((10..=12).contains(&bursty), "{bursty}");
    }

    #[test]
    fn the_first_calls_do_not_enter_the_table() {
        let mut headroom = Headroom::default();
        let second = Duration::from_secs;
        let tail = |headroom: &Headroom| headroom.above()[BINS / 2];
        let initial = tail(&headroom);
        // From none to thirty calls: there is no past mean, so nothing is learned from it.
        for _ in 0..5 {
            headroom.follow(&busy(&[30; 10]), second(2), second(3));
        }
        assert!(tail(&headroom) <= initial, "{}", tail(&headroom));
        headroom.follow(&busy(&[90; 10]), second(2), second(3));
        assert!(tail(&headroom) > 0.1, "{}", tail(&headroom));
        headroom.break_off();
        let learned = tail(&headroom);
        headroom.follow(&busy(&[300; 10]), second(2), second(3));
        assert_eq!(tail(&headroom), learned, "after a jump there is no past mean");
    }

    #[test]
    fn an_instance_that_costs_more_than_any_wait_is_not_started() {
        assert_eq!(instances_for(&[3; 10], 1e9), 0);
        assert!(instances_for(&[3; 10], 1e-9) >= 4);
    }
}
