//! What is known of one function: its needs given the input, its margin, its memory.

use super::conditional_quantile::ConditionalQuantile;
use super::settings::WindfallSizingSettings;
use windfall_core::QuantileWindow;

/// A call that lost more than this share of its run before it was ever trimmed started too small.
const LOST_TOO_MUCH: f64 = 0.035;
/// What such a call adds to the margin, and what every call takes off: 1 in 2000 keeps it level.
const WIDEN: f64 = 0.05;
const NARROW: f64 = 2.5e-5;
const WIDEST: f64 = 0.6;
/// Calls whose growth of memory must have been seen before memory is taken from running calls.
const LEAST_JUMPS: usize = 20;

/// One function.
#[derive(Clone, Debug)]
pub(super) struct FunctionProfile {
    pub(super) cpu: ConditionalQuantile,
    pub(super) memory: ConditionalQuantile,
    pub(super) run: ConditionalQuantile,
    pub(super) finished: u32,
    /// Share on top of the CPU quantile.
    pub(super) margin: f64,
    /// Memory that a killed call has shown to be too little, and more, MiB.
    pub(super) memory_floor: f64,
    /// Per call, the largest growth of memory from one look to the next, as a ratio.
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

    /// A call has lost this share of its run at its first size.
    pub(super) fn calibrate(&mut self, lost_share: f64) {
        let step = if lost_share > LOST_TOO_MUCH { WIDEN } else { 0.0 } - NARROW;
        self.margin = (self.margin + step).clamp(0.0, WIDEST);
    }

    /// A call's memory grew at most by this ratio from one look to the next.
    pub(super) fn note_jump(&mut self, ratio: f64) {
        self.jumps.push(ratio);
    }

    /// The largest growth seen from one look to the next, once enough calls were seen.
    pub(super) fn largest_jump(&self) -> Option<f64> {
        self.jumps.quantile(1.0).filter(|_| self.jumps.len() >= LEAST_JUMPS)
    }
}
