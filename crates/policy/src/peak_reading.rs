//! Estimates the peak that a finished call would have had with unlimited resources.
//!
//! Measured peaks are censored: a call granted 1 core never uses 1.2. A policy that took them at face value
//! would never raise a grant that is too small, so a peak that reached its grant is scaled up:
//!
//! ```text
//!   granted 1.00 core, peak 0.60             counts as 0.60
//!   granted 1.00 core, peak 0.98             counts as 0.98 x 1.25 = 1.225
//!   granted 1.00 core, peak 0.80, throttled  counts as 0.80 x 1.25 = 1.00
//!   granted 256 MiB, killed there            counts as 256 x 1.25 = 320 MiB
//! ```

use serde::{Deserialize, Serialize};
use windfall_core::CallOutcome;

/// How measured peaks are corrected for censoring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeakReading {
    /// A CPU peak of at least this share of the grant is censored.
    pub censored_share: f64,
    /// A CPU peak is also censored if the call was throttled for at least this share of its run.
    pub throttled_share: f64,
    /// Factor applied to a censored peak.
    pub censored_growth: f64,
}

impl Default for PeakReading {
    fn default() -> Self {
        Self { censored_share: 0.97, throttled_share: 0.01, censored_growth: 1.25 }
    }
}

impl PeakReading {
    /// CPU peak in cores; `None` for a killed attempt, which may have ended before its peak.
    pub fn cpu_cores(&self, outcome: &CallOutcome) -> Option<f64> {
        let peak = outcome.cpu_peak_cores;
        if outcome.was_killed || !is_amount(peak) {
            return None;
        }
        let most = outcome.first_grant.cpu.max(outcome.last_grant.cpu).cores();
        // A call whose grant was raised while it ran was throttled before the raise, not at its peak.
        let same_throughout = outcome.first_grant.cpu == outcome.last_grant.cpu;
        let throttled = outcome.throttled.as_secs_f64();
        let was_throttled = throttled > 0.0
            && throttled >= self.throttled_share * outcome.run().as_secs_f64()
            && same_throughout;
        let is_censored = peak >= self.censored_share * most || was_throttled;
        Some(if is_censored { peak * self.censored_growth } else { peak })
    }

    /// Memory peak in MiB; for a killed attempt, its limit times the growth factor.
    pub fn memory_mib(&self, outcome: &CallOutcome) -> Option<f64> {
        let peak = outcome.memory_peak_mib;
        if outcome.was_killed {
            let limit = outcome.last_grant.memory.mib();
            return Some(
                if is_amount(peak) { peak.max(limit) } else { limit } * self.censored_growth,
            );
        }
        is_amount(peak).then_some(peak)
    }
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::outcome;
    use windfall_core::{Allocation, Duration};

    const READING: PeakReading =
        PeakReading { censored_share: 0.97, throttled_share: 0.01, censored_growth: 1.25 };

    fn used(cpu_peak_cores: f64) -> CallOutcome {
        outcome(Allocation::new(2000, 512), Allocation::new(1000, 256), cpu_peak_cores, 200.0)
    }

    #[test]
    fn the_defaults_are_those_of_the_worked_numbers() {
        assert_eq!(PeakReading::default(), READING);
    }

    #[test]
    fn the_worked_numbers() {
        assert_eq!(READING.cpu_cores(&used(0.6)), Some(0.6));
        assert_eq!(READING.cpu_cores(&used(0.98)), Some(0.98 * 1.25));
        let throttled = CallOutcome { throttled: Duration::from_millis(10), ..used(0.8) };
        assert_eq!(READING.cpu_cores(&throttled), Some(1.0));
        let killed = CallOutcome { was_killed: true, memory_peak_mib: 256.0, ..used(0.6) };
        assert_eq!(READING.memory_mib(&killed), Some(320.0));
        assert_eq!(READING.memory_mib(&used(0.6)), Some(200.0));
    }

    #[test]
    fn a_killed_attempt_has_no_cpu_peak() {
        assert_eq!(READING.cpu_cores(&CallOutcome { was_killed: true, ..used(0.6) }), None);
    }

    #[test]
    fn a_call_that_was_raised_in_time_is_not_censored() {
        let raised = CallOutcome {
            last_grant: Allocation::new(2000, 512),
            throttled: Duration::from_millis(100),
            ..used(1.5)
        };
        assert_eq!(READING.cpu_cores(&raised), Some(1.5));
    }

    #[test]
    fn invalid_readings_are_not_peaks() {
        for peak in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(READING.cpu_cores(&used(peak)), None);
            let outcome = CallOutcome { memory_peak_mib: peak, ..used(0.5) };
            assert_eq!(READING.memory_mib(&outcome), None);
        }
    }
}
