//! What is known of a function's calls, and the row that an agent sees.

use windfall_core::CallOutcome;

use super::world::NextCall;

/// What an agent sees of a call about to be sized, with ranges.
pub(super) const FEATURES: [(&str, f32, f32); 11] = [
    ("reserved_cores", 0.0, 1.0),
    ("reserved_memory", 0.0, 1.0),
    ("is_known", 0.0, 1.0),
    ("ended", 0.0, 1.0),
    ("cpu_peak", 0.0, 2.0),
    ("cpu_last_peak", 0.0, 2.0),
    ("cpu_mean", 0.0, 2.0),
    ("memory_peak", 0.0, 2.0),
    ("run_seconds", 0.0, 1.0),
    ("input", 0.0, 4.0),
    ("waiting", 0.0, 1.0),
];

/// Weight of the newest value in the means.
const NEWEST: f64 = 0.2;

/// What has been measured of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct History {
    pub(super) ended: u32,
    pub(super) memory_peak_mib: f64,
    cpu_peak: f64,
    cpu_last_peak: f64,
    cpu_mean: f64,
    run: f64,
    input: f64,
}

impl History {
    pub(super) fn learn(&mut self, outcome: &CallOutcome) {
        let is_first = self.ended == 0;
        let mean = |before: f64, now: f64| {
            if is_first { now } else { before + NEWEST * (now - before) }
        };
        self.ended += 1;
        self.memory_peak_mib = self.memory_peak_mib.max(outcome.memory_peak_mib);
        self.cpu_last_peak = outcome.cpu_peak_cores;
        self.cpu_peak = self.cpu_peak.max(outcome.cpu_peak_cores);
        self.cpu_mean = mean(self.cpu_mean, outcome.cpu_mean_cores);
        self.run = mean(self.run, outcome.run().as_secs_f64());
        if let Some(input) = outcome.input {
            self.input = mean(self.input, f64::from(input));
        }
    }

    /// Sizes are relative to the reservation; run times are 0.5 at one second and 0.91 at ten.
    pub(super) fn write_row(&self, call: &NextCall, row: &mut [f32]) {
        let (cores, mib) = (call.reservation.cpu.cores(), call.reservation.memory.mib());
        let input = match call.input {
            Some(input) if self.input > 0.0 => f64::from(input) / self.input,
            Some(_) => 1.0,
            None => 0.0,
        };
        let values = [
            cores / 8.0,
            mib / 8192.0,
            f64::from(u8::from(self.ended > 0)),
            f64::from(self.ended.min(20)) / 20.0,
            self.cpu_peak / cores,
            self.cpu_last_peak / cores,
            self.cpu_mean / cores,
            self.memory_peak_mib / mib,
            self.run / (1.0 + self.run),
            input,
            call.waiting as f64 / 100.0,
        ];
        for ((out, value), (_, low, high)) in row.iter_mut().zip(values).zip(FEATURES) {
            *out = (value as f32).clamp(low, high);
        }
    }
}
