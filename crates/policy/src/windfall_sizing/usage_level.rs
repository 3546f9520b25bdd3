//! Estimates the current CPU use of a running call from noisy windows.
//!
//! The mean use of a window of `w` seconds has an error of 2 % of the use plus a millisecond of CPU time over
//! `w`. Windows that agree within three standard errors form one phase and are averaged, so the longer a phase
//! lasts, the closer the grant can follow it. A window that disagrees begins a new phase:
//!
//! ```text
//!   1.00 cores in 40 ms   error sqrt(0.02^2 + 0.025^2) = 0.032      two errors of headroom: hold 1.064
//!   four such windows     error 0.016                                                   hold 1.032
//!   then 0.02 cores       thirty errors away: a new phase, idle
//! ```

/// Relative standard error of a window's mean use.
const NOISE: f64 = 0.02;
/// Standard error of the CPU time of a window, seconds.
const JITTER: f64 = 0.001;
/// Maximum weight of the average, in windows, because use drifts.
const MOST_WINDOWS: f64 = 16.0;
/// Standard errors within which two readings belong to the same phase.
const ALIKE: f64 = 3.0;

/// CPU use in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageLevel {
    cores: f64,
    /// Mean length of the windows, seconds.
    window: f64,
    windows: f64,
}

impl UsageLevel {
    /// Mean use in the phase, cores.
    pub(super) fn cores(&self) -> f64 {
        self.cores
    }

    /// Whether at least two windows agree.
    pub(super) fn is_settled(&self) -> bool {
        self.windows >= 2.0
    }

    /// Standard error of the mean, cores.
    pub(super) fn error(&self) -> f64 {
        error_of(self.cores, self.window) / self.windows.max(1.0).sqrt()
    }

    /// Adds a window of `seconds`.
    pub(super) fn record(&mut self, cores: f64, seconds: f64) {
        let seconds = seconds.max(1e-4);
        let error = self.error().hypot(error_of(cores, seconds));
        if self.windows > 0.0 && (cores - self.cores).abs() <= ALIKE * error {
            let before = self.windows.min(MOST_WINDOWS - 1.0);
            self.windows = before + 1.0;
            self.cores += (cores - self.cores) / self.windows;
            self.window += (seconds - self.window) / self.windows;
        } else {
            *self = Self { cores, window: seconds, windows: 1.0 };
        }
    }
}

fn error_of(cores: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { (NOISE * cores).hypot(JITTER / seconds) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_numbers() {
        let mut level = UsageLevel::default();
        level.record(1.0, 0.04);
        assert!((level.error() - 0.032).abs() < 1e-3 && !level.is_settled());
        for _ in 0..3 {
            level.record(1.0, 0.04);
        }
        assert!((level.error() - 0.016).abs() < 1e-3 && level.is_settled());
        level.record(0.02, 0.04);
        assert_eq!((level.cores(), level.is_settled()), (0.02, false));
    }

    #[test]
    fn short_windows_have_larger_errors() {
        let (mut short, mut long) = (UsageLevel::default(), UsageLevel::default());
        short.record(1.0, 0.005);
        long.record(1.0, 0.1);
        assert!(short.error() > 8.0 * long.error());
        short.record(1.3, 0.005);
        assert!(short.is_settled(), "0.3 cores apart in 5 ms is noise");
        long.record(1.3, 0.1);
        assert!(!long.is_settled(), "in 100 ms it is not");
    }
}
