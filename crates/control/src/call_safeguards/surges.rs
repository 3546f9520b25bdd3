//! How far the calls of a function rise above what they were first seen to use.
//!
//! A call that has settled at 0.6 cores may need 1.0 in its next stretch. The ratio of the highest use seen
//! later to the first settled use is its surge; the 95th percentile of a function's last surges says how
//! much room above present use has to be kept ready:
//!
//! ```text
//!   surges 1.0, 1.0, 1.1, 1.0, .., 1.6 (19 of 20 at most 1.1), margin 2 %
//!   a call seen at 0.6 cores is taken to want 0.6 x 1.1 x 1.02 = 0.67 cores, not the 1.4 it started with
//! ```
//!
//! The margin is calibrated: a call that lost more than it should after it was trimmed widens it, every
//! other call narrows it a little, so that the share of calls that lose too much settles near the ratio of
//! the two steps.

use windfall_core::QuantileWindow;

/// How surges are turned into room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurgeSettings {
    /// Calls of a function that must have ended before its surges are believed.
    pub least_calls: usize,
    /// Surges that are remembered per function.
    pub window: usize,
    /// Which quantile of them is kept ready.
    pub quantile: f64,
    /// Room on top, as a share, before any calibration.
    pub margin: f64,
    /// Lost share of a run from which a call counts against the margin.
    pub too_much: f64,
    /// What such a call adds to the margin.
    pub widen: f64,
    /// What every call takes off it.
    pub narrow: f64,
    /// The widest it gets.
    pub widest: f64,
}

impl Default for SurgeSettings {
    fn default() -> Self {
        Self {
            least_calls: 20,
            window: 256,
            quantile: 0.95,
            margin: 0.02,
            too_much: 0.035,
            widen: 0.2,
            narrow: 1e-4,
            widest: 3.0,
        }
    }
}

/// The surges of one function.
#[derive(Clone, Debug)]
pub(super) struct Surges {
    ratios: QuantileWindow,
    widened: f64,
    /// The factor on settled use, kept up to date because every look asks for it.
    factor: Option<f64>,
}

impl Surges {
    pub(super) fn new(settings: &SurgeSettings) -> Self {
        Self { ratios: QuantileWindow::new(settings.window), widened: 0.0, factor: None }
    }

    /// What settled use is multiplied by; nothing before enough calls were seen.
    pub(super) fn factor(&self) -> Option<f64> {
        self.factor
    }

    /// A call has ended: `ratio` is its surge, if it ever settled, `lost` the share of its run that it
    /// lost.
    pub(super) fn learn(&mut self, settings: &SurgeSettings, ratio: Option<f64>, lost: f64) {
        if let Some(ratio) = ratio {
            self.ratios.push(ratio.max(1.0));
        }
        let step = if lost > settings.too_much { settings.widen } else { 0.0 } - settings.narrow;
        self.widened = (self.widened + step).clamp(0.0, settings.widest);
        let known = self.ratios.len() >= settings.least_calls;
        let quantile = self.ratios.quantile(settings.quantile).filter(|_| known);
        self.factor = quantile.map(|surge| surge * (1.0 + settings.margin + self.widened));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_number() {
        let settings = SurgeSettings::default();
        let mut surges = Surges::new(&settings);
        for _ in 0..10 {
            surges.learn(&settings, Some(1.0), 0.0);
        }
        for _ in 0..9 {
            surges.learn(&settings, Some(1.1), 0.0);
        }
        assert_eq!(surges.factor(), None, "19 calls are too few");
        surges.learn(&settings, Some(1.6), 0.0);
        let factor = surges.factor().unwrap();
        assert!((factor - 1.1 * 1.02).abs() < 1e-6, "{factor}");
    }

    #[test]
    fn one_loss_in_two_thousand_calls_keeps_the_margin_where_it_is() {
        let settings = SurgeSettings::default();
        let mut surges = Surges::new(&settings);
        for call in 0..20_000 {
            surges.learn(&settings, Some(1.0), if call % 2000 == 0 { 0.1 } else { 0.0 });
        }
        assert!(surges.factor().unwrap() < 1.02 + 0.21);
        for _ in 0..20 {
            surges.learn(&settings, Some(1.0), 0.1);
        }
        assert!(surges.factor().unwrap() > 3.9);
    }
}
