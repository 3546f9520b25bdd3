//! Predicts what a call needs from the function's finished calls: Libra's profiler.
//!
//! For each quantity (CPU peak, memory peak, run time) it keeps a regression line of the log value on the
//! log input size, and a window of recent values. If the line explains enough of the variance, it makes the
//! prediction. Otherwise a quantile of the window does, high for peaks and low for run time:
//!
//! ```text
//!   R2 >= 0.9 :  exp(line(ln input))           inputs 1, 2, 4 MB, peaks 100, 200, 400 MiB:
//!   otherwise :  99th percentile of peaks      3 MB predicts 300 MiB by the line,
//!                5th percentile of run times   400 MiB without
//! ```

use crate::line_fit::LineFit;
use windfall_core::QuantileWindow;

/// Conditions under which the regression line is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trust {
    /// Minimum share of the variance that the line must explain.
    pub least_r2: f64,
    /// Minimum number of points.
    pub least_points: u32,
}

/// Profile of one quantity of a function's calls.
#[derive(Clone, Debug)]
pub struct DemandProfile {
    line: LineFit,
    window: QuantileWindow,
}

impl DemandProfile {
    /// Creates a profile over the last `window` calls. `forgetting` is passed to the line fit.
    pub fn new(window: usize, forgetting: f64) -> Self {
        Self { line: LineFit::new(forgetting), window: QuantileWindow::new(window) }
    }

    /// Adds the value of one call. Values that are not finite are ignored.
    pub fn push(&mut self, input: Option<f32>, value: f64) {
        self.window.push(value);
        if let Some(x) = log_input(input) {
            // Zero has no logarithm; the line ignores it like any point that is not finite.
            self.line.push(x, value.ln());
        }
    }

    /// Predicts the value for a call on `input`: by the line if it is trusted, else by `quantile` of the window.
    pub fn predict(&self, input: Option<f32>, quantile: f64, trust: Trust) -> Option<f64> {
        let is_trusted =
            self.line.points() >= trust.least_points && self.line.r2() >= trust.least_r2;
        log_input(input)
            .filter(|_| is_trusted)
            .and_then(|x| self.line.at(x))
            .map(f64::exp)
            .or_else(|| self.window.quantile(quantile))
    }
}

/// Logarithm of the input size, or `None` if the size is missing, not positive or not finite.
fn log_input(input: Option<f32>) -> Option<f64> {
    input.map(f64::from).filter(|input| *input > 0.0 && input.is_finite()).map(f64::ln)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUST: Trust = Trust { least_r2: 0.9, least_points: 3 };

    fn profile(points: &[(f32, f64)]) -> DemandProfile {
        let mut profile = DemandProfile::new(512, 1.0);
        points.iter().for_each(|&(input, value)| profile.push(Some(input), value));
        profile
    }

    #[test]
    fn the_worked_numbers() {
        let related = profile(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)]);
        let by_line = related.predict(Some(3.0), 0.99, TRUST).unwrap();
        assert!((by_line - 300.0).abs() < 1e-6, "{by_line}");
        assert_eq!(related.predict(None, 0.99, TRUST), Some(400.0));
        let strict = Trust { least_points: 4, ..TRUST };
        assert_eq!(related.predict(Some(3.0), 0.99, strict), Some(400.0));
    }

    #[test]
    fn an_unrelated_input_is_ignored() {
        let unrelated = profile(&[(1.0, 100.0), (2.0, 400.0), (4.0, 100.0), (8.0, 400.0)]);
        assert_eq!(unrelated.predict(Some(100.0), 0.99, TRUST), Some(400.0));
        assert_eq!(unrelated.predict(Some(100.0), 0.05, TRUST), Some(100.0));
    }

    #[test]
    fn inputs_without_a_logarithm_are_treated_as_missing() {
        let related = profile(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)]);
        for input in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(related.predict(Some(input), 0.99, TRUST), Some(400.0), "{input}");
        }
    }

    #[test]
    fn an_empty_profile_predicts_nothing() {
        assert_eq!(profile(&[]).predict(Some(1.0), 0.99, TRUST), None);
    }
}
