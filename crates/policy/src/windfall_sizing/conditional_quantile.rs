//! A high (or low) quantile of what a call will need, given its input.
//!
//! Per function, a regression line of the log need on the log input is kept, shrunk towards a flat line while
//! there are few calls. Every new call is first predicted, then learned. The quantile is taken from the errors
//! of these predictions, not of the fit, so it covers new calls even if the line fits badly (split conformal
//! prediction).
//!
//! ```text
//!   need = exp( line(ln input) + Q_q(errors of the last 512 predictions) )
//!
//!   line says 1.0 core for this input; of 100 errors the 99th smallest is ln 1.3      ->  1.3 cores
//! ```

use windfall_core::QuantileWindow;

use crate::line_fit::LineFit;

/// Weight of the prior for a flat line, in calls.
const FLAT_CALLS: f64 = 3.0;

/// Distribution of one need (CPU, memory or run time) of a function's calls.
#[derive(Clone, Debug)]
pub(super) struct ConditionalQuantile {
    line: LineFit,
    errors: QuantileWindow,
}

impl ConditionalQuantile {
    pub(super) fn new(window: usize, forgetting: f64) -> Self {
        Self { line: LineFit::new(forgetting), errors: QuantileWindow::new(window) }
    }

    /// Need at quantile `q` of calls with this log input; `None` before the second call.
    pub(super) fn at(&self, log_input: Option<f64>, q: f64) -> Option<f64> {
        let centre = self.line.shrunk_at(log_input, FLAT_CALLS)?;
        self.errors.quantile(q).map(|error| (centre + error).exp())
    }

    /// Adds the need of one call. Values that are not positive and finite are ignored.
    pub(super) fn push(&mut self, log_input: Option<f64>, need: f64) {
        let need = need.ln();
        if !need.is_finite() {
            return;
        }
        if let Some(centre) = self.line.shrunk_at(log_input, FLAT_CALLS) {
            self.errors.push(need - centre);
        }
        self.line.push(log_input.unwrap_or(0.0), need);
    }
}

/// Logarithm of the input size, or `None` if the size is missing, not positive or not finite.
pub(super) fn log_input(input: Option<f32>) -> Option<f64> {
    input.map(f64::from).filter(|input| *input > 0.0 && input.is_finite()).map(f64::ln)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visible_input_narrows_the_quantile() {
        let mut by_input = ConditionalQuantile::new(512, 0.998);
        let mut blind = ConditionalQuantile::new(512, 0.998);
        for n in 0..300 {
            let size = f64::from(1 + n % 10);
            by_input.push(Some(size.ln()), 100.0 * size);
            blind.push(None, 100.0 * size);
        }
        let small = by_input.at(Some(0.0), 0.99).unwrap();
        assert!(small > 99.0 && small < 160.0, "{small}");
        let any = blind.at(None, 0.99).unwrap();
        assert!(any > 900.0 && any < 1400.0, "{any}");
    }

    #[test]
    fn the_quantile_covers_new_calls() {
        let mut need = ConditionalQuantile::new(512, 0.998);
        let mut missed = 0;
        // A spread that no input explains: a fixed pseudo-random sequence.
        for n in 0u64..4000 {
            let draw = (windfall_core::seed::mix(n) >> 11) as f64 / (1u64 << 53) as f64;
            let value = (0.3 * (draw - 0.5)).exp();
            if n > 1000 && need.at(None, 0.99).unwrap() < value {
                missed += 1;
            }
            need.push(None, value);
        }
        assert!((10..=60).contains(&missed), "{missed} of 3000 missed, 30 expected");
    }

    #[test]
    fn invalid_values_are_ignored_and_two_calls_are_needed() {
        let mut need = ConditionalQuantile::new(8, 1.0);
        assert_eq!(need.at(None, 0.5), None);
        for value in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            need.push(Some(1.0), value);
        }
        assert_eq!(need.at(None, 0.5), None);
        need.push(None, 2.0);
        assert_eq!(need.at(None, 0.5), None, "one call has no prediction error");
        need.push(None, 2.0);
        assert!((need.at(None, 0.5).unwrap() - 2.0).abs() < 1e-6);
    }
}
