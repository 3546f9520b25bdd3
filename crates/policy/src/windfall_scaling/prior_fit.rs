//! Counts gaps by class on functions that are set aside for fitting.
//!
//! A gap that is cut off by the end of the data is censored: it is at least that long. Leaving it out would
//! underestimate gaps: a level that is needed by one burst in four hours has no gap that ends. The counts therefore
//! use the Kaplan-Meier estimator: the probability to end in a bin is computed among the gaps that reached it, censored
//! or not.

use std::fmt::Write;

use windfall_core::{Duration, Timestamp};

use super::gap_bins::{BINS, TAIL};
use super::gap_history::GapHistory;
use super::gap_prior::{CLASSES, class_of};
use super::level_gap::LevelGap;

/// Gaps by class and bin: those that ended, and those censored by the end of the data.
#[derive(Clone, Debug)]
pub struct GapCounts {
    ended: Vec<Vec<f32>>,
    cut: Vec<Vec<f32>>,
}

impl Default for GapCounts {
    fn default() -> Self {
        let none = vec![vec![0.0; BINS]; CLASSES];
        Self { ended: none.clone(), cut: none }
    }
}

impl GapCounts {
    /// Counts the gaps of one function until `end`, from the arrival and run time of its calls.
    pub fn count(&mut self, calls: &[(Timestamp, Duration)], end: Timestamp) {
        let mut histories: Vec<GapHistory> = Vec::new();
        for gap in LevelGap::all_of(calls, end) {
            if histories.len() <= gap.level {
                histories.resize_with(gap.level + 1, GapHistory::default);
            }
            let history = &mut histories[gap.level];
            let counts = if gap.is_cut { &mut self.cut } else { &mut self.ended };
            counts[class_of(gap.level, history)][gap.bin()] += 1.0;
            history.push(gap.seconds());
        }
    }

    /// Formats the tables as in `params/gap_prior.txt`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (class, (ended, cut)) in self.ended.iter().zip(&self.cut).enumerate() {
            let table = kaplan_meier(ended, cut);
            if table.iter().all(|count| *count == 0.0) {
                continue;
            }
            let _ = write!(text, "{class}");
            for (bin, count) in table.iter().enumerate().filter(|(_, count)| **count >= 5e-3) {
                let _ = write!(text, " {bin}:{}", (count * 100.0).round() / 100.0);
            }
            text.push('\n');
        }
        text
    }
}

/// Expected number of gaps, including censored ones, that end in each bin; the remainder ends beyond the horizon.
fn kaplan_meier(ended: &[f32], cut: &[f32]) -> Vec<f32> {
    let mut at_risk: f32 = ended.iter().chain(cut).sum();
    let mut left = at_risk;
    let mut table = vec![0.0; BINS];
    for bin in 0..TAIL {
        if at_risk > 0.5 {
            table[bin] = left * (ended[bin] / at_risk).min(1.0);
            left -= table[bin];
            at_risk -= ended[bin] + cut[bin];
        }
    }
    table[TAIL] = left.max(0.0);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn censored_gaps_count_as_longer_ones() {
        // Four gaps: one ends in bin 10, one is censored in bin 20, two end in bin 30. All gaps that reach bin 30
        // end there, so it gets the three that passed bin 10: 1 and 3 of 4.
        let (mut ended, mut cut) = (vec![0.0; BINS], vec![0.0; BINS]);
        (ended[10], cut[20], ended[30]) = (1.0, 1.0, 2.0);
        let table = kaplan_meier(&ended, &cut);
        assert_eq!((table[10], table[20], table[30], table[TAIL]), (1.0, 0.0, 3.0, 0.0));
    }

    #[test]
    fn a_level_that_is_never_needed_again_counts_for_the_tail() {
        let mut counts = GapCounts::default();
        let second = Timestamp::from_secs;
        let run = Duration::from_secs(1);
        counts.count(&[(second(10), run), (second(70), run)], second(3600));
        assert_eq!(counts.ended.iter().flatten().sum::<f32>(), 1.0);
        assert_eq!(counts.cut.iter().flatten().sum::<f32>(), 1.0);
        assert!(counts.to_text().contains("645:1"), "{}", counts.to_text());
    }
}
