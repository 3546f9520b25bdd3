//! Prior distribution of a level's gaps, used until the level has enough of its own: the pooled gaps of
//! similar levels of functions that were set aside for fitting.
//!
//! ```text
//!   class = (level 0 or above, none seen | median of the last 6 in steps of 2^1.25, regular or not)
//!   regular: the last 3 lie within 10 % and a second of each other
//! ```
//!
//! The tables are in `params/gap_prior.txt`, one line per class: its number, then `bin:count`.

use windfall_core::statistics::upper_median;

use crate::windfall_scaling::gap_bins::BINS;
use crate::windfall_scaling::gap_history::GapHistory;

/// Steps of the median: 2^(1.25 n) seconds, up to 2^15 s.
const STEPS: usize = 13;
/// Classes of one kind of level: no gap seen, then each step of the median, irregular and regular.
const CLASSES_PER_KIND: usize = 1 + 2 * STEPS;
/// All classes.
pub(crate) const CLASSES: usize = 2 * CLASSES_PER_KIND;
/// Weight of the mean over the kind of level in every class, in gaps; it fills bins without counts.
const PSEUDO_COUNTS: f32 = 30.0;
/// Bins on each side that a count is spread over: a training function's 61 s is evidence for 60 and 62 s.
const SMOOTHING: usize = 2;

/// Returns the class of a level with this history.
pub(crate) fn class_of(level: usize, history: &GapHistory) -> usize {
    let kind = usize::from(level > 0) * CLASSES_PER_KIND;
    let recent = history.recent();
    let mut sorted = [0.0; 6];
    let sorted = &mut sorted[..recent.len()];
    sorted.copy_from_slice(recent);
    sorted.sort_unstable_by(f32::total_cmp);
    let Some(median) = upper_median(sorted).map(f64::from) else { return kind };
    let step = ((median.max(1.0).log2() / 1.25) as usize).min(STEPS - 1);
    kind + 1 + 2 * step + usize::from(is_regular(recent))
}

/// Whether the last three gaps lie within 10 % and a second of each other.
pub(crate) fn is_regular(recent: &[f32]) -> bool {
    let Some(last) = recent.len().checked_sub(3).map(|from| &recent[from..]) else { return false };
    let (low, high) = last.iter().fold((f32::MAX, 0.0f32), |(l, h), x| (l.min(*x), h.max(*x)));
    high - low <= 0.1 * low + 1.0
}

/// Probabilities of gaps by class.
#[derive(Clone, Debug)]
pub(crate) struct GapPrior {
    classes: Vec<Vec<f32>>,
}

impl GapPrior {
    /// Loads the tables fitted on the functions set aside for fitting.
    pub(crate) fn fitted() -> Self {
        Self::read(include_str!("../../params/gap_prior.txt"))
    }

    /// Parses tables; lines that do not start with a class number are ignored.
    pub(crate) fn read(text: &str) -> Self {
        let mut counts = vec![vec![0.0f32; BINS]; CLASSES];
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let class = words.next().and_then(|word| word.parse::<usize>().ok());
            let Some(table) = class.and_then(|class| counts.get_mut(class)) else { continue };
            for (bin, count) in words.filter_map(|word| word.split_once(':')) {
                if let (Ok(bin), Ok(count)) = (bin.parse::<usize>(), count.parse::<f32>()) {
                    table[bin.min(BINS - 1)] += count;
                }
            }
        }
        Self::of_counts(&counts)
    }

    /// Builds the prior from counts of gaps by class and bin. A class without counts gets the mean of its kind
    /// of level.
    pub(crate) fn of_counts(counts: &[Vec<f32>]) -> Self {
        let kind_mean = |kind: usize| {
            let mut mean = vec![1.0 / BINS as f32; BINS];
            let of_kind = &counts[kind * CLASSES_PER_KIND..(kind + 1) * CLASSES_PER_KIND];
            for table in of_kind {
                for (sum, count) in mean.iter_mut().zip(table) {
                    *sum += count;
                }
            }
            normal(smoothed(&mean))
        };
        let means = [kind_mean(0), kind_mean(1)];
        let classes = counts.iter().enumerate().map(|(class, table)| {
            let mean = &means[class / CLASSES_PER_KIND];
            let table = smoothed(table).into_iter().zip(mean);
            normal(table.map(|(count, mean)| count + PSEUDO_COUNTS * mean).collect())
        });
        Self { classes: classes.collect() }
    }

    /// Probability of every bin for a class.
    pub(crate) fn of(&self, class: usize) -> &[f32] {
        &self.classes[class]
    }

    /// Heap memory in bytes, shared by all functions.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.classes.len() * BINS * size_of::<f32>()
    }
}

/// Spreads every count evenly over its bin and two on each side; the tail is not spread.
fn smoothed(counts: &[f32]) -> Vec<f32> {
    let last = BINS - 2;
    let mut spread = vec![0.0; BINS];
    for (bin, &count) in counts.iter().enumerate().take(BINS - 1).filter(|(_, c)| **c > 0.0) {
        let (from, to) = (bin.saturating_sub(SMOOTHING), (bin + SMOOTHING).min(last));
        let each = count / (to - from + 1) as f32;
        spread[from..=to].iter_mut().for_each(|sum| *sum += each);
    }
    spread[BINS - 1] = counts[BINS - 1];
    spread
}

fn normal(mut weights: Vec<f32>) -> Vec<f32> {
    let total: f32 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total.max(f32::MIN_POSITIVE));
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windfall_scaling::gap_bins::bin_of;

    fn history(gaps: &[f64]) -> GapHistory {
        let mut history = GapHistory::default();
        gaps.iter().for_each(|gap| history.push(*gap));
        history
    }

    #[test]
    fn regular_gaps_have_a_class_of_their_own() {
        let timer = class_of(0, &history(&[60.0, 60.2, 59.9, 60.1]));
        let wild = class_of(0, &history(&[60.0, 2.0, 900.0, 55.0]));
        assert_ne!(timer, wild);
        assert_eq!(timer, class_of(0, &history(&[60.0, 61.0, 62.0])));
        assert_ne!(timer, class_of(1, &history(&[60.0, 60.2, 59.9, 60.1])));
        assert_eq!(class_of(0, &history(&[])), 0);
        assert!(class_of(1, &history(&[1e9, 1e9, 1e9])) < CLASSES);
    }

    #[test]
    fn the_fitted_tables_are_probabilities() {
        let prior = GapPrior::fitted();
        for class in 0..CLASSES {
            let total: f32 = prior.of(class).iter().sum();
            assert!((total - 1.0).abs() < 1e-3, "class {class}: {total}");
            assert!(prior.of(class).iter().all(|share| *share >= 0.0));
        }
    }

    #[test]
    fn a_table_with_many_counts_dominates_the_mean() {
        let prior = GapPrior::read("# nothing\n3 275:1000\n");
        assert!(prior.of(3)[275] > 0.15 && prior.of(3)[bin_of(3600.0)] < 0.01);
    }
}
