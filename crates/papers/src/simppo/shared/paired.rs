//! Intervals of paired differences and ratios, drawn over seeds and over functions.
//!
//! Two policies meet the same functions and hours. A draw takes seeds and functions with replacement, the same for both
//! policies; the interval is the middle 95 % of 1000 draws. Twelve functions of five seeds are 60 pairs, but no more
//! independent than five seeds and twelve functions are.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::{Interval, redraw};

use crate::simppo::online::OnlineRow;

const DRAWS: u64 = 1000;

/// A number with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// From all pairs.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Rows of two policies, seed by seed and function by function.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    /// Seeds, then functions.
    cells: Vec<Vec<(&'a OnlineRow, &'a OnlineRow)>>,
}

impl<'a> Pairs<'a> {
    /// Pairs of rows with the same seed and function.
    pub fn new(ours: &'a [OnlineRow], theirs: &'a [OnlineRow]) -> Self {
        let mut seeds: Vec<u64> = ours.iter().map(|row| row.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let twin = |row: &'a OnlineRow| {
            let is_twin =
                |other: &&OnlineRow| other.seed == row.seed && other.function == row.function;
            theirs.iter().find(is_twin).map(|other| (row, other))
        };
        let of =
            |seed: &u64| ours.iter().filter(|row| row.seed == *seed).filter_map(twin).collect();
        let cells: Vec<Vec<_>> = seeds.iter().map(of).collect();
        Self { cells: cells.into_iter().filter(|cells: &Vec<_>| !cells.is_empty()).collect() }
    }

    /// `statistic` of sums: each pair gives two numbers, and the statistic is of both sums over the same draw.
    fn estimate(
        &self,
        of: &dyn Fn(&OnlineRow, &OnlineRow) -> (f64, f64),
        statistic: &dyn Fn(f64, f64, f64) -> f64,
    ) -> Estimate {
        let functions = self.cells.iter().map(Vec::len).min().unwrap_or(0);
        if functions == 0 {
            return Estimate::default();
        }
        let values: Vec<Vec<(f64, f64)>> = self
            .cells
            .iter()
            .map(|cells| cells.iter().map(|(ours, theirs)| of(ours, theirs)).collect())
            .collect();
        let total = |seeds: &[u32], taken: &[u32]| {
            let (mut one, mut other, mut count) = (0.0, 0.0, 0.0);
            for (cells, times) in values.iter().zip(seeds) {
                for ((left, right), often) in cells.iter().zip(taken) {
                    let weight = f64::from(times * often);
                    one += weight * left;
                    other += weight * right;
                    count += weight;
                }
            }
            statistic(one, other, count)
        };
        let mut rng = Seed::new(1).stream("paired").generator();
        let draws = (0..DRAWS).map(|_| {
            let seeds = redraw(values.len(), &mut rng);
            total(&seeds, &redraw(functions, &mut rng))
        });
        let draws: Vec<f64> = draws.filter(|value| value.is_finite()).collect();
        let value = total(&vec![1; values.len()], &vec![1; functions]);
        let interval = Interval::middle_95(draws).unwrap_or(Interval { low: value, high: value });
        Estimate { value, low: interval.low, high: interval.high }
    }

    /// Mean difference of a number.
    pub fn difference(&self, of: &dyn Fn(&OnlineRow) -> f64) -> Estimate {
        self.estimate(&|ours, theirs| (of(ours) - of(theirs), 0.0), &|sum, _, count| sum / count)
    }

    /// Ratio of the sums of a number.
    pub fn ratio_of_sums(&self, of: &dyn Fn(&OnlineRow) -> f64) -> Estimate {
        self.estimate(&|ours, theirs| (of(ours), of(theirs)), &|ours, theirs, _| ours / theirs)
    }

    /// Geometric mean of the ratio of p99s.
    pub fn p99_ratio(&self) -> Estimate {
        let log = |ours: &OnlineRow, theirs: &OnlineRow| {
            ((ours.p99_ms.max(1.0) / theirs.p99_ms.max(1.0)).ln(), 0.0)
        };
        self.estimate(&log, &|sum, _, count| (sum / count).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simppo::online::blank_row;

    #[test]
    fn a_constant_difference_has_no_width() {
        let rows = |extra: f64| -> Vec<OnlineRow> {
            let row = |place: u64| OnlineRow {
                seed: 1 + place / 3,
                function: format!("f{}", place % 3),
                reward: place as f64 + extra,
                p99_ms: 100.0 * (1.0 + extra),
                ..blank_row("x")
            };
            (0..9).map(row).collect()
        };
        let (ours, theirs) = (rows(1.0), rows(0.0));
        let pairs = Pairs::new(&ours, &theirs);
        assert_eq!(
            pairs.difference(&|row| row.reward),
            Estimate { value: 1.0, low: 1.0, high: 1.0 }
        );
        let ratio = pairs.p99_ratio();
        assert!((ratio.value - 2.0).abs() < 1e-9 && (ratio.high - 2.0).abs() < 1e-9);
        let sums = pairs.ratio_of_sums(&|row| row.reward);
        assert!((sums.value - 45.0 / 36.0).abs() < 1e-9 && sums.low < sums.high);
    }
}
