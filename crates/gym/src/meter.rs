//! Latency as users feel it: of calls that ended, and of calls that still wait.
//!
//! A function without instances answers nobody, and a mean over answers alone would call that perfect. So a
//! call that waits beyond its objective counts at its age:
//!
//! ```text
//!   preserved = mean over calls that ended, and waiting ones older than the objective, of min(1, SLO / latency)
//!
//!   SLO 1 s, answers after 0.5 s and 2 s, one call waiting for 4 s:  (1 + 0.5 + 0.25) / 3 = 0.58
//! ```
//!
//! A call that was turned away or died of memory counts as one of [`TIME_OUT_MS`].

use std::collections::VecDeque;

use windfall_core::statistics::nearest_rank;
use windfall_core::{CallEnd, CallRecord, TelemetrySink, Timestamp};

use crate::traffic::Shared;

/// What a call without an answer counts as: the course's "unstable latency" begins here.
pub const TIME_OUT_MS: f64 = 60_000.0;

/// The service that callers of one function got since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServiceLevel {
    /// SLO preservation, 0 to 1; 1 if nobody called.
    pub preserved: f64,
    /// Mean latency of what was counted, milliseconds; 0 if nothing was.
    pub latency_ms: f64,
    /// Calls that were counted.
    pub calls: u32,
}

/// Everything of one function since the beginning.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Latencies of all calls that ended, milliseconds.
    pub latencies_ms: Vec<f32>,
    /// Calls that were not answered.
    pub lost: u64,
}

/// The latencies of all functions.
#[derive(Debug)]
pub(crate) struct Meter {
    objectives: Vec<f64>,
    open: Vec<VecDeque<Timestamp>>,
    sums: Vec<(f64, f64, u32)>,
    tallies: Vec<Tally>,
    keeps: bool,
}

impl Meter {
    pub(crate) fn new(objectives: Vec<f64>) -> Self {
        let count = objectives.len();
        Self {
            objectives,
            open: vec![VecDeque::new(); count],
            sums: vec![(0.0, 0.0, 0); count],
            tallies: vec![Tally::default(); count],
            keeps: false,
        }
    }

    /// From now on every latency is kept, for percentiles.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
        self.tallies.fill(Tally::default());
    }

    pub(crate) fn set_objective(&mut self, function: usize, slo_ms: f64) {
        self.objectives[function] = slo_ms;
    }

    pub(crate) fn arrived(&mut self, function: usize, at: Timestamp) {
        self.open[function].push_back(at);
    }

    fn ended(&mut self, call: &CallRecord) {
        let function = call.function.index();
        let open = &mut self.open[function];
        if let Ok(place) = open.binary_search(&call.arrived_at) {
            open.remove(place);
        }
        let is_answered = call.end == CallEnd::Completed;
        let latency = if is_answered {
            call.ended_at.since(call.arrived_at).as_millis_f64()
        } else {
            TIME_OUT_MS
        };
        let sums = &mut self.sums[function];
        sums.0 += (self.objectives[function] / latency).min(1.0);
        sums.1 += latency;
        sums.2 += 1;
        if self.keeps {
            let tally = &mut self.tallies[function];
            tally.latencies_ms.push(latency as f32);
            tally.lost += u64::from(!is_answered);
        }
    }

    /// The service level of `function` since the last call of this method.
    pub(crate) fn take(&mut self, function: usize, now: Timestamp) -> ServiceLevel {
        let (mut preserved, mut latency, mut calls) = std::mem::take(&mut self.sums[function]);
        let slo = self.objectives[function];
        for &arrived in &self.open[function] {
            // The workload is one call ahead of the world, and whoever came later is younger.
            let age = now.since(arrived).as_millis_f64();
            if arrived > now || age <= slo {
                break;
            }
            preserved += slo / age;
            latency += age;
            calls += 1;
        }
        if calls == 0 {
            return ServiceLevel { preserved: 1.0, latency_ms: 0.0, calls: 0 };
        }
        let count = f64::from(calls);
        ServiceLevel { preserved: preserved / count, latency_ms: latency / count, calls }
    }

    /// Everything kept of `function`; calls that still wait beyond the objective at their age.
    pub(crate) fn tally(&self, function: usize, now: Timestamp) -> Tally {
        let mut tally = self.tallies[function].clone();
        let slo = self.objectives[function];
        let ages = self.open[function].iter().map(|&at| now.since(at).as_millis_f64());
        tally.latencies_ms.extend(ages.filter(|age| *age > slo).map(|age| age as f32));
        tally
    }
}

/// Tells the meter of every end.
#[derive(Debug)]
pub(crate) struct MeterSink(pub(crate) Shared);

impl TelemetrySink for MeterSink {
    fn call(&mut self, call: &CallRecord) {
        let mut board = self.0.board();
        board.meter.ended(call);
        board.chain.ended(call);
    }
}

/// The nearest rank of `values` at `share`, 0 of none. Sorts them in place: an episode has many.
pub fn quantile(values: &mut [f32], share: f64) -> f64 {
    values.sort_unstable_by(f32::total_cmp);
    nearest_rank(values, share).map_or(0.0, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_beyond_the_objective_counts_at_its_age() {
        let mut meter = Meter::new(vec![1000.0]);
        meter.sums[0] = (1.5, 2500.0, 2);
        meter.arrived(0, Timestamp::from_secs(6));
        meter.arrived(0, Timestamp::from_secs(10));
        let service_level = meter.take(0, Timestamp::from_secs(10));
        assert!((service_level.preserved - (1.0 + 0.5 + 0.25) / 3.0).abs() < 1e-12);
        assert_eq!(service_level.calls, 3);
        // Nothing has ended since; the old call still waits.
        assert_eq!(meter.take(0, Timestamp::from_secs(10)).calls, 1);
    }

    #[test]
    fn quantiles_by_hand() {
        let mut values: Vec<f32> = (1..=100).map(|i| i as f32).collect();
        assert_eq!(quantile(&mut values, 0.99), 99.0);
        assert_eq!(quantile(&mut values, 0.5), 50.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
