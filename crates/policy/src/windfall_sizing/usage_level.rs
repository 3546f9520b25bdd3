//! What a running call uses in the stretch it is in, from windows that are noisy.
//!
//! A window of `w` seconds reads its mean use with an error of 2 % of it and of a millisecond of CPU time
//! over `w`. Windows that agree within three standard errors belong to one stretch and are averaged, so the
//! longer a stretch lasts the closer the grant may follow it; a window that disagrees begins a new one:
//!
//! ```text
//!   1.00 cores in 40 ms   error sqrt(0.02^2 + 0.025^2) = 0.032      room of two errors: hold 1.064
//!   four such windows     error 0.016                                                   hold 1.032
//!   then 0.02 cores       thirty errors away: a new stretch, idle
//! ```

/// Relative error of a window's mean use.
const NOISE: f64 = 0.02;
/// CPU time a window may be off by, seconds.
const JITTER: f64 = 0.001;
/// Windows after which an average no longer gets more certain: use drifts.
const MOST_WINDOWS: f64 = 16.0;
/// Standard errors within which two readings are the same use.
const ALIKE: f64 = 3.0;

/// The use of one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageLevel {
    cores: f64,
    /// Mean length of its windows, seconds.
    window: f64,
    windows: f64,
}

impl UsageLevel {
    /// Mean use of the stretch, cores.
    pub(super) fn cores(&self) -> f64 {
        self.cores
    }

    /// Whether at least two windows agree.
    pub(super) fn is_settled(&self) -> bool {
        self.windows >= 2.0
    }

    /// The standard error of the mean, cores.
    pub(super) fn error(&self) -> f64 {
        error_of(self.cores, self.window) / self.windows.max(1.0).sqrt()
    }

    /// Takes in a window of `seconds`.
    pub(super) fn see(&mut self, cores: f64, seconds: f64) {
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
        level.see(1.0, 0.04);
        assert!((level.error() - 0.032).abs() < 1e-3 && !level.is_settled());
        for _ in 0..3 {
            level.see(1.0, 0.04);
        }
        assert!((level.error() - 0.016).abs() < 1e-3 && level.is_settled());
        level.see(0.02, 0.04);
        assert_eq!((level.cores(), level.is_settled()), (0.02, false));
    }

    #[test]
    fn short_windows_are_believed_less() {
        let (mut short, mut long) = (UsageLevel::default(), UsageLevel::default());
        short.see(1.0, 0.005);
        long.see(1.0, 0.1);
        assert!(short.error() > 8.0 * long.error());
        short.see(1.3, 0.005);
        assert!(short.is_settled(), "0.3 cores apart in 5 ms is noise");
        long.see(1.3, 0.1);
        assert!(!long.is_settled(), "in 100 ms it is not");
    }
}
