//! Level and trend of a series of readings: Holt's linear method with half-lives instead of smoothing
//! factors, so that readings may be unevenly spaced.
//!
//! ```text
//!   a = 1 - 2^(-dt / half life of the level)        b = 1 - 2^(-dt / half life of the trend)
//!   level' = a reading + (1 - a) (level + dt trend)
//!   trend' = b (level' - level) / dt + (1 - b) trend
//!   forecast(ahead) = level + ahead trend           never below 0, because it forecasts rates
//! ```
//!
//! With both half-lives equal to the spacing, readings 10 and 20 give level 15, trend 2.5 per step, and
//! a forecast of 20 for two steps ahead.

use windfall_core::Duration;

/// Weight of a new reading taken `dt` after the last, if the weight of old ones halves every `half_life`.
pub(crate) fn weight(dt: Duration, half_life: Duration) -> f64 {
    if half_life.is_zero() {
        return 1.0;
    }
    1.0 - (-dt.as_secs_f64() / half_life.as_secs_f64()).exp2()
}

/// A smoothed level with its trend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Holt {
    /// `None` before the first reading.
    state: Option<Line>,
}

/// A level with its trend.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    level: f64,
    /// Per second.
    trend: f64,
}

impl Holt {
    /// Adds a reading taken `dt` after the last. Readings that are not finite or have a `dt` of zero are ignored.
    pub fn push(&mut self, reading: f64, dt: Duration, level_half: Duration, trend_half: Duration) {
        if !reading.is_finite() || dt.is_zero() {
            return;
        }
        let Some(Line { level, trend }) = self.state else {
            self.state = Some(Line { level: reading, trend: 0.0 });
            return;
        };
        let (a, b) = (weight(dt, level_half), weight(dt, trend_half));
        let seconds = dt.as_secs_f64();
        let next = a * reading + (1.0 - a) * (level + seconds * trend);
        self.state =
            Some(Line { level: next, trend: b * (next - level) / seconds + (1.0 - b) * trend });
    }

    /// Current level.
    pub fn level(&self) -> f64 {
        self.state.map_or(0.0, |line| line.level.max(0.0))
    }

    /// Level after `ahead` if the trend continues.
    pub fn forecast(&self, ahead: Duration) -> f64 {
        self.state.map_or(0.0, |line| (line.level + ahead.as_secs_f64() * line.trend).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(1);

    fn after(readings: impl IntoIterator<Item = f64>, half: Duration) -> Holt {
        let mut holt = Holt::default();
        readings.into_iter().for_each(|reading| holt.push(reading, STEP, half, half));
        holt
    }

    #[test]
    fn the_worked_numbers() {
        let holt = after([10.0, 20.0], STEP);
        assert!((holt.level() - 15.0).abs() < 1e-12);
        assert!((holt.forecast(STEP * 2) - 20.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_has_no_trend_and_a_ramp_is_followed_without_lag() {
        let constant = after([3.0; 20], STEP * 5);
        assert_eq!(constant.forecast(STEP * 100), 3.0);
        let ramp = after((0..400).map(f64::from), STEP * 5);
        assert!((ramp.level() - 399.0).abs() < 1e-6);
        assert!((ramp.forecast(STEP * 10) - 409.0).abs() < 1e-6);
    }

    #[test]
    fn it_never_forecasts_a_negative_rate() {
        let falling = after([100.0, 50.0, 10.0], STEP);
        assert_eq!(falling.forecast(STEP * 100), 0.0);
    }

    #[test]
    fn half_of_the_weight_is_gone_after_a_half_life() {
        assert_eq!(weight(STEP * 5, STEP * 5), 0.5);
        assert_eq!(weight(STEP * 10, STEP * 5), 0.75);
        assert_eq!(weight(STEP, Duration::ZERO), 1.0);
    }

    #[test]
    fn invalid_readings_are_ignored() {
        let mut holt = after([1.0, 2.0], STEP);
        let before = holt;
        holt.push(f64::NAN, STEP, STEP, STEP);
        holt.push(5.0, Duration::ZERO, STEP, STEP);
        assert_eq!(holt, before);
    }
}
