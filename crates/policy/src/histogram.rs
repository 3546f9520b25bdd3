//! Histogram: the 99th percentile of the function's last 512 peaks, and a margin.
//!
//! ```text
//!   cpu    = 1.05 x Q99(CPU peaks)                    at most the ceiling
//!   memory = 1.30 x Q99(memory peaks)                 at most the reservation
//! ```
//!
//! Peaks of 0.8, 1.0 and 0.9 cores and 100, 120 and 110 MiB give 1.05 cores and 156 MiB. Peaks that
//! reached their grant are scaled up ([`PeakReading`]), so a function whose user reserves too little CPU is
//! raised call by call until it no longer saturates: 1, 1.31, 1.72, 2.26, .. cores.
//!
//! Memory exceeds the reservation only after a call was killed at the user's own size: then the reservation
//! is known to be too small. Otherwise more memory than the user reserved has no benefit.

use serde::{Deserialize, Serialize};
use windfall_core::{
    CallDecision, CallOutcome, CallPolicy, CallView, Duration, FunctionId, PolicyError, RunningCall,
};

use crate::peak_reading::PeakReading;
use crate::per_function::PerFunction;
use windfall_core::QuantileWindow;

/// Settings of [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistogramSettings {
    /// Quantile of the peaks that is granted.
    pub quantile: f64,
    /// Number of recent peaks that count.
    pub window: usize,
    /// Finished calls before a call starts with anything but the user's size.
    pub warm_calls: usize,
    /// Added to the CPU quantile, as a share of it.
    pub cpu_margin: f64,
    /// Added to the memory quantile, as a share of it.
    pub memory_margin: f64,
    /// Minimum CPU of a call, cores.
    pub floor_cpu_cores: f64,
    /// Minimum memory of a call, MiB.
    pub floor_memory_mib: f64,
    /// How measured peaks are corrected for censoring.
    pub peaks: PeakReading,
    /// Trim running calls to 1.05 times their use this often, and restore them once they are throttled; 0 never does.
    pub trim_millis: u64,
}

impl Default for HistogramSettings {
    fn default() -> Self {
        Self {
            quantile: 0.99,
            window: 512,
            warm_calls: 3,
            cpu_margin: 0.05,
            memory_margin: 0.30,
            floor_cpu_cores: 0.05,
            floor_memory_mib: 16.0,
            peaks: PeakReading::default(),
            trim_millis: 0,
        }
    }
}

impl HistogramSettings {
    fn trim_after(&self) -> Option<Duration> {
        (self.trim_millis > 0).then(|| Duration::from_millis(self.trim_millis))
    }
}

/// A trimmed call holds this times what it used.
const TRIM_MARGIN: f64 = 1.05;

/// The peaks of one function.
#[derive(Clone, Debug)]
struct Peaks {
    cpu: QuantileWindow,
    memory: QuantileWindow,
    finished: usize,
    reservation_was_too_small: bool,
}

/// A high quantile of past peaks, the same for every call of a function.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    settings: HistogramSettings,
    functions: PerFunction<Option<Peaks>>,
}

impl Histogram {
    /// Creates a policy without history.
    pub fn new(settings: HistogramSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn peaks(&mut self, function: FunctionId) -> &mut Peaks {
        let window = self.settings.window;
        self.functions.state(function).get_or_insert_with(|| Peaks {
            cpu: QuantileWindow::new(window),
            memory: QuantileWindow::new(window),
            finished: 0,
            reservation_was_too_small: false,
        })
    }
}

impl CallPolicy for Histogram {
    fn name(&self) -> &str {
        "histogram"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let peaks = self.peaks(call.function);
        let quantiles =
            peaks.cpu.quantile(settings.quantile).zip(peaks.memory.quantile(settings.quantile));
        let Some((cpu, memory)) = quantiles.filter(|_| peaks.finished >= settings.warm_calls)
        else {
            return Ok(CallDecision::exactly(call.reservation, "too few calls seen"));
        };
        let most_memory = if peaks.reservation_was_too_small {
            call.ceiling.memory
        } else {
            call.reservation.memory.min(call.ceiling.memory)
        };
        let cpu = cpu * (1.0 + settings.cpu_margin);
        let memory = memory * (1.0 + settings.memory_margin);
        Ok(CallDecision {
            cpu_cores: cpu.max(settings.floor_cpu_cores).min(call.ceiling.cpu.cores()),
            memory_mib: memory.max(settings.floor_memory_mib).min(most_memory.mib()),
            look_after: self.settings.trim_after(),
            ..CallDecision::exactly(call.reservation, "a high quantile of past peaks")
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let hold = CallDecision::exactly(running.grant, "as it is");
        if settings.trim_millis == 0 {
            return Ok(hold);
        }
        let peaks = self.peaks(running.function);
        let whole = peaks.cpu.quantile(settings.quantile).unwrap_or(f64::MAX);
        let whole = (whole * (1.0 + settings.cpu_margin)).min(running.reservation.cpu.cores());
        let sensed = running.sensed;
        let trimmed =
            (TRIM_MARGIN * sensed.cpu_used_cores).min(whole).max(settings.floor_cpu_cores);
        let cpu_cores = if sensed.throttled_share > 0.0 { whole } else { trimmed };
        Ok(CallDecision { cpu_cores, look_after: settings.trim_after(), ..hold })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let reading = self.settings.peaks;
        let peaks = self.peaks(outcome.function);
        if let Some(cpu) = reading.cpu_cores(outcome) {
            peaks.cpu.push(cpu);
        }
        if let Some(memory) = reading.memory_mib(outcome) {
            peaks.memory.push(memory);
        }
        peaks.finished += usize::from(!outcome.was_killed);
        peaks.reservation_was_too_small |=
            outcome.was_killed && outcome.last_grant.memory >= outcome.reservation.memory;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second, outcome, view};
    use windfall_core::{Allocation, CallDemand, Mebibytes};

    const USER: Allocation = Allocation::new(4000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-5 * right
    }

    #[test]
    fn the_worked_numbers_after_three_calls_at_the_users_size() {
        let mut histogram = Histogram::default();
        for (cpu, memory) in [(0.8, 100.0), (1.0, 120.0), (0.9, 110.0)] {
            let decision = histogram.size(&view(USER, CEILING)).unwrap();
            assert_eq!((decision.cpu_cores, decision.memory_mib), (4.0, 512.0));
            histogram.learn(&outcome(USER, USER, cpu, memory));
        }
        let decision = histogram.size(&view(USER, CEILING)).unwrap();
        assert!(
            close(decision.cpu_cores, 1.05) && close(decision.memory_mib, 156.0),
            "{decision:?}"
        );
    }

    #[test]
    fn a_saturated_function_is_raised_until_it_no_longer_saturates() {
        let mut platform = FakePlatform::new(Allocation::new(1000, 512), CEILING);
        let mut histogram = Histogram::default();
        let demand =
            CallDemand { parallelism: windfall_core::MilliCpu::new(2000), ..one_core_second() };
        let grants: Vec<u32> =
            (0..10).map(|_| platform.call(&mut histogram, demand).first_grant.cpu.get()).collect();
        // 1 x 1.25 x 1.05 = 1.3125, x 1.3125 = 1.7227, x 1.3125 = 2.2610; then 2.0 is uncensored, but the
        // censored 1.7227 x 1.25 = 2.1533 stays the highest peak.
        assert_eq!(grants[..6], [1000, 1000, 1000, 1313, 1724, 2263]);
        assert_eq!(grants[6..], [2263; 4]);
    }

    #[test]
    fn an_old_spike_leaves_the_window() {
        let settings = HistogramSettings { window: 4, ..HistogramSettings::default() };
        let mut histogram = Histogram::new(settings);
        for cpu in [3.0, 1.0, 1.0, 1.0] {
            histogram.learn(&outcome(USER, USER, cpu, 100.0));
        }
        assert!(close(histogram.size(&view(USER, CEILING)).unwrap().cpu_cores, 3.15));
        histogram.learn(&outcome(USER, USER, 1.0, 100.0));
        assert!(close(histogram.size(&view(USER, CEILING)).unwrap().cpu_cores, 1.05));
    }

    #[test]
    fn memory_stays_within_the_reservation_until_a_call_is_killed_there() {
        let user = Allocation::new(2000, 256);
        let mut histogram = Histogram::default();
        (0..3).for_each(|_| histogram.learn(&outcome(user, user, 1.0, 250.0)));
        assert_eq!(histogram.size(&view(user, CEILING)).unwrap().memory_mib, 256.0);
        let killed = CallOutcome { was_killed: true, ..outcome(user, user, 1.0, 256.0) };
        histogram.learn(&killed);
        // 256 x 1.25 x 1.3 = 416.
        assert!(close(histogram.size(&view(user, CEILING)).unwrap().memory_mib, 416.0));
    }

    #[test]
    fn a_kill_below_the_reservation_raises_the_next_call() {
        let mut platform = FakePlatform::new(USER, CEILING);
        let mut histogram = Histogram::default();
        let small = CallDemand { memory_peak: Mebibytes::new(120), ..one_core_second() };
        for _ in 0..3 {
            platform.call(&mut histogram, small);
        }
        let killed = platform.call(&mut histogram, one_core_second());
        assert!(killed.was_killed);
        assert_eq!(killed.first_grant.memory, Mebibytes::new(156));
        // The retry at the user's size shows the peak of 300 MiB: 390 MiB from now on.
        let after = platform.call(&mut histogram, one_core_second());
        assert_eq!((after.was_killed, after.first_grant.memory), (false, Mebibytes::new(390)));
    }
}
