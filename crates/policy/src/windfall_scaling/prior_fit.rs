//! Counts gaps by class on functions that are set aside for fitting.
//!
//! A gap that the end of the data cuts off is no gap of that length, but it is known to be longer. Leaving it out would
//! say that what was used once comes back soon: of a level that one burst in four hours needed no gap ever ends. So
//! counts are those of Kaplan and Meier: the chance to end in a bin is taken among the gaps that got there, cut or not.

use std::fmt::Write;

use windfall_core::{Duration, Timestamp};

use super::gap_bins::{BINS, TAIL};
use super::gap_history::GapHistory;
use super::gap_prior::{CLASSES, class_of};
use super::level_gap::LevelGap;

/// Gaps by class and bin: those that ended, and those that the end of the data cut off.
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
    /// Counts the gaps of one function, whose calls come at these moments and run so long, until `end`.
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

    /// The tables as they are kept in `params/gap_prior.txt`.
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

/// How many of all gaps, cut ones among them, end in each bin; what no gap shows ends beyond the horizon.
fn kaplan_meier(ended: &[f32], cut: &[f32]) -> Vec<f32> {
    let mut there: f32 = ended.iter().chain(cut).sum();
    let mut left = there;
    let mut table = vec![0.0; BINS];
    for bin in 0..TAIL {
        if there > 0.5 {
            table[bin] = left * (ended[bin] / there).min(1.0);
            left -= table[bin];
            there -= ended[bin] + cut[bin];
        }
    }
    table[TAIL] = left.max(0.0);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_are_cut_off_count_as_longer_ones() {
        // Four gaps: one ends in bin 10, one is cut in bin 20, two end in bin 30. Of the three that got past bin
        // 10 the two in bin 30 are all that got there: 1 and 3 of 4.
        let (mut ended, mut cut) = (vec![0.0; BINS], vec![0.0; BINS]);
        (ended[10], cut[20], ended[30]) = (1.0, 1.0, 2.0);
        let table = kaplan_meier(&ended, &cut);
        assert_eq!((table[10], table[20], table[30], table[TAIL]), (1.0, 0.0, 3.0, 0.0));
    }

    #[test]
    fn a_level_that_is_never_needed_again_speaks_for_the_tail() {
        let mut counts = GapCounts::default();
        let second = Timestamp::from_secs;
        let run = Duration::from_secs(1);
        counts.count(&[(second(10), run), (second(70), run)], second(3600));
        assert_eq!(counts.ended.iter().flatten().sum::<f32>(), 1.0);
        assert_eq!(counts.cut.iter().flatten().sum::<f32>(), 1.0);
        assert!(counts.to_text().contains("645:1"), "{}", counts.to_text());
    }
}
