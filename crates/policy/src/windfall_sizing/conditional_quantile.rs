//! A high (or low) quantile of what a call will need, given its input.
//!
//! A line of the logarithm of the need on the logarithm of the input is kept per function, pulled towards
//! flat while there are few calls. Every new call is first predicted, then learned from: the errors of
//! predictions are what decides the quantile, not the errors of the fit, so it covers new calls whether the
//! line is any good or not (split conformal prediction).
//!
//! ```text
//!   need = exp( line(ln input) + Q_q(errors of the last 512 predictions) )
//!
//!   line says 1.0 core for this input; of 100 errors the 99th smallest is ln 1.3      ->  1.3 cores
//! ```

use windfall_core::QuantileWindow;

use crate::line_fit::LineFit;

/// Calls whose weight the prior belief in a flat line has.
const FLAT_CALLS: f64 = 3.0;

/// One need of one function's calls.
#[derive(Clone, Debug)]
pub(super) struct ConditionalQuantile {
    line: LineFit,
    errors: QuantileWindow,
}

impl ConditionalQuantile {
    pub(super) fn new(window: usize, forgetting: f64) -> Self {
        Self { line: LineFit::new(forgetting), errors: QuantileWindow::new(window) }
    }

    /// The need that calls on an input with this logarithm have at quantile `q`; nothing before the
    /// second call.
    pub(super) fn at(&self, log_input: Option<f64>, q: f64) -> Option<f64> {
        let centre = self.line.shrunk_at(log_input, FLAT_CALLS)?;
        self.errors.quantile(q).map(|error| (centre + error).exp())
    }

    /// Takes in what a call needed; what is not a positive amount is ignored.
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

/// The logarithm of an input size that has one.
pub(super) fn log_input(input: Option<f32>) -> Option<f64> {
    input.map(f64::from).filter(|input| *input > 0.0 && input.is_finite()).map(f64::ln)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_input_explains_is_not_held_ready() {
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
        // A spread that the input (none) does not explain: a fixed sequence that looks random.
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
    fn nonsense_is_ignored_and_nothing_is_known_at_first() {
        let mut need = ConditionalQuantile::new(8, 1.0);
        assert_eq!(need.at(None, 0.5), None);
        for value in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            need.push(Some(1.0), value);
        }
        assert_eq!(need.at(None, 0.5), None);
        need.push(None, 2.0);
        assert_eq!(need.at(None, 0.5), None, "one call has no error of prediction");
        need.push(None, 2.0);
        assert!((need.at(None, 0.5).unwrap() - 2.0).abs() < 1e-6);
    }
}
