//! Counts gaps by class on functions that are set aside for fitting.

use std::fmt::Write;

use windfall_core::{Observation, TelemetrySink, TickRecord};

use super::gap_bins::{BINS, bin_of};
use super::gap_history::GapHistory;
use super::gap_prior::{CLASSES, class_of};
use crate::level_track::LevelTrack;
use crate::per_function::PerFunction;

/// Reads ticks of a run and counts each gap under the class its level had before.
#[derive(Clone, Debug)]
pub struct GapCounts {
    functions: PerFunction<(LevelTrack, Vec<GapHistory>)>,
    counts: Vec<Vec<f32>>,
}

impl Default for GapCounts {
    fn default() -> Self {
        Self { functions: PerFunction::default(), counts: vec![vec![0.0; BINS]; CLASSES] }
    }
}

impl GapCounts {
    /// Begins a run: counts stay, what is known of single functions goes.
    pub fn next_run(&mut self) {
        self.functions = PerFunction::default();
    }

    /// The tables as they are kept in `params/gap_prior.txt`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (class, table) in self.counts.iter().enumerate() {
            if table.iter().all(|count| *count == 0.0) {
                continue;
            }
            let _ = write!(text, "{class}");
            for (bin, count) in table.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                let _ = write!(text, " {bin}:{count}");
            }
            text.push('\n');
        }
        text
    }

    fn count(&mut self, seen: &Observation) {
        for view in &seen.functions {
            let (track, histories) = self.functions.state(view.function);
            let counts = &mut self.counts;
            track.follow(view, seen.now, |gap| {
                if gap.level >= histories.len() {
                    histories.resize_with(gap.level + 1, GapHistory::default);
                }
                let history = &mut histories[gap.level];
                counts[class_of(gap.level, history)][bin_of(gap.seconds)] += 1.0;
                history.push(gap.seconds);
            });
        }
    }
}

impl TelemetrySink for GapCounts {
    fn tick(&mut self, tick: &TickRecord) {
        self.count(&tick.observation);
    }
}
