//! Profile of one function: its needs given the input, its CPU margin, its memory growth.

use super::conditional_quantile::ConditionalQuantile;
use super::settings::WindfallSizingSettings;
use windfall_core::QuantileWindow;

/// A call that lost more than this share of its run before it was ever trimmed started too small.
const LOST_TOO_MUCH: f64 = 0.035;
/// Increase of the margin for such a call, and decrease for every call: one in 2000 keeps it constant.
const WIDEN: f64 = 0.05;
const NARROW: f64 = 2.5e-5;
const WIDEST: f64 = 0.6;
/// Calls with known memory growth before memory is reclaimed from running calls.
const LEAST_JUMPS: usize = 20;

/// Profile of one function.
#[derive(Clone, Debug)]
pub(super) struct FunctionProfile {
    pub(super) cpu: ConditionalQuantile,
    pub(super) memory: ConditionalQuantile,
    pub(super) run: ConditionalQuantile,
    pub(super) finished: u32,
    /// Margin on the CPU quantile, as a share of it.
    pub(super) margin: f64,
    /// Lower bound on memory from killed calls: their limit scaled up, MiB.
    pub(super) memory_floor: f64,
    /// Largest growth of memory between two looks, as a ratio, per call.
    jumps: QuantileWindow,
}

impl FunctionProfile {
    pub(super) fn new(settings: &WindfallSizingSettings) -> Self {
        let need = || ConditionalQuantile::new(settings.window, settings.forgetting);
        Self {
            cpu: need(),
            memory: need(),
            run: need(),
            finished: 0,
            margin: settings.first_margin,
            memory_floor: 0.0,
            jumps: QuantileWindow::new(256),
        }
    }

    /// Adapts the margin to a call that lost this share of its run at its first size.
    pub(super) fn calibrate(&mut self, lost_share: f64) {
        let step = if lost_share > LOST_TOO_MUCH { WIDEN } else { 0.0 } - NARROW;
        self.margin = (self.margin + step).clamp(0.0, WIDEST);
    }

    /// Records the largest ratio by which a call's memory grew between two looks.
    pub(super) fn record_jump(&mut self, ratio: f64) {
        self.jumps.push(ratio);
    }

    /// Largest growth between two looks over all recent calls; `None` until enough calls were seen.
    pub(super) fn largest_jump(&self) -> Option<f64> {
        self.jumps.quantile(1.0).filter(|_| self.jumps.len() >= LEAST_JUMPS)
    }
}
