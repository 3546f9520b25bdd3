//! Means, deviations and quantiles of a handful of numbers, each defined once.
//!
//! All of them are pure, add up in the order of their input, and answer `None` for no values. Deviations come in
//! two kinds: that of a whole population divides by `n`, that of a sample by `n - 1`.
//!
//! Quantiles come in four kinds, because published systems differ; at the share 0.5 of the sorted values
//! 1, 2, 4, 8 they are
//!
//! | function | place in the sorted values, from 0 | result |
//! | --- | --- | --- |
//! | [`nearest_rank`] | `ceil(share n) - 1` | 2 |
//! | [`lower_neighbour`] | `floor(share (n - 1))` | 2 |
//! | [`nearest_neighbour`] | `round(share (n - 1))` | 4 |
//! | [`interpolated`] | `share (n - 1)`, linear between neighbours | 3 |
//!
//! They take values that are sorted already, so that several quantiles cost one sort. For a sliding window see
//! [`QuantileWindow`](crate::QuantileWindow).

use std::borrow::Borrow;

use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Arithmetic mean: of 1, 2 and 6 it is 3.
pub fn mean(values: impl IntoIterator<Item: Borrow<f64>>) -> Option<f64> {
    let mut count = 0_usize;
    let sum: f64 = values.into_iter().inspect(|_| count += 1).map(|value| *value.borrow()).sum();
    (count > 0).then(|| sum / count as f64)
}

/// Geometric mean, `exp(mean(ln x))`: of 1, 10 and 100 it is 10. For ratios and for quantities that range over
/// orders of magnitude. Not a number if a value is negative, zero if one is zero.
pub fn geometric_mean(values: impl IntoIterator<Item: Borrow<f64>>) -> Option<f64> {
    mean(values.into_iter().map(|value| value.borrow().ln())).map(f64::exp)
}

/// Mean and sum of squared distances from it.
struct Scatter {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Scatter {
    fn of(values: impl IntoIterator<Item: Borrow<f64>, IntoIter: Clone>) -> Option<Self> {
        let values = values.into_iter();
        let mean = mean(values.clone())?;
        let mut count = 0;
        let values = values.inspect(|_| count += 1);
        let squares = values.map(|value| (value.borrow() - mean).powi(2)).sum();
        Some(Self { count, mean, squares })
    }

    fn population_deviation(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }
}

/// Standard deviation of a whole population, `sqrt(sum (x - mean)^2 / n)`: of 2, 4, 4, 4, 5, 5, 7, 9 it is 2.
pub fn population_deviation(
    values: impl IntoIterator<Item: Borrow<f64>, IntoIter: Clone>,
) -> Option<f64> {
    Scatter::of(values).map(|scatter| scatter.population_deviation())
}

/// Standard deviation estimated from a sample, `sqrt(sum (x - mean)^2 / (n - 1))`: of 1 and 3 it is the square root
/// of 2. Nothing below two values.
pub fn sample_deviation(
    values: impl IntoIterator<Item: Borrow<f64>, IntoIter: Clone>,
) -> Option<f64> {
    let scatter = Scatter::of(values)?;
    (scatter.count > 1).then(|| (scatter.squares / (scatter.count - 1) as f64).sqrt())
}

/// Deviation of a population over its mean: of 2, 4, 4, 4, 5, 5, 7, 9 it is 2 / 5. Nothing if the mean is zero.
pub fn coefficient_of_variation(
    values: impl IntoIterator<Item: Borrow<f64>, IntoIter: Clone>,
) -> Option<f64> {
    let scatter = Scatter::of(values)?;
    (scatter.mean != 0.0).then(|| scatter.population_deviation() / scatter.mean)
}

/// The smallest value that at least this `share` of all values do not exceed. It is always one that occurred: of
/// 1 to 100 the share 0.98 gives 98.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The value at `share` of the way from the first to the last, or the next below.
pub fn lower_neighbour<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted.get((share * sorted.len().checked_sub(1)? as f64) as usize).copied()
}

/// The value nearest to `share` of the way from the first to the last; the later one halfway.
pub fn nearest_neighbour<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted.get((share * sorted.len().checked_sub(1)? as f64).round() as usize).copied()
}

/// The value at `share` of the way from the first to the last, linear between neighbours.
pub fn interpolated(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let low = place.floor() as usize;
    let (below, above) = (*sorted.get(low)?, sorted[(low + 1).min(last)]);
    Some(below + (place - low as f64) * (above - below))
}

/// The middle value, of an even number of values the later of the two: of 1, 2, 4, 8 it is 4.
pub fn upper_median<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

/// The middle value, of an even number of values halfway between the two: of 8, 1, 4, 2 it is 3. Sorts a copy.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    interpolated(&sorted, 0.5)
}

/// From a lower to an upper end; `[low, high]` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The least and the largest value; of no values, from plus to minus infinity.
    pub fn covering(values: impl IntoIterator<Item: Borrow<f64>>) -> Self {
        let none = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values.into_iter().fold(none, |found, value| Self {
            low: found.low.min(*value.borrow()),
            high: found.high.max(*value.borrow()),
        })
    }

    /// The middle 95 % of `values`, from the lower neighbour of 0.025 to that of 0.975: what a bootstrap reports.
    pub fn middle_95(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (lower_neighbour(&values, 0.025)?, lower_neighbour(&values, 0.975)?);
        Some(Self { low, high })
    }
}

impl From<[f64; 2]> for Interval {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for [f64; 2] {
    fn from(Interval { low, high }: Interval) -> Self {
        [low, high]
    }
}

/// How often each of `count` items is in a sample of the same size drawn with replacement: one draw of a bootstrap.
pub fn redraw(count: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut times = vec![0; count];
    (0..count).for_each(|_| times[(rng.next_u64() % count as u64) as usize] += 1);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn means_by_hand() {
        assert_eq!(mean([1.0, 2.0, 6.0]), Some(3.0));
        let borrowed = vec![1.0, 2.0, 6.0];
        assert_eq!(mean(&borrowed), Some(borrowed[2] / 2.0));
        assert!((geometric_mean([1.0, 10.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean([2.0, 0.0]), Some(0.0));
    }

    #[test]
    fn deviations_by_hand() {
        let school = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(population_deviation(school), Some(2.0));
        assert_eq!(coefficient_of_variation(school), Some(0.4));
        assert!((sample_deviation(school).unwrap() - 2.138).abs() < 1e-3);
        assert_eq!(sample_deviation([1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!((sample_deviation([1.0]), population_deviation([1.0])), (None, Some(0.0)));
        assert_eq!(coefficient_of_variation([0.0, 0.0]), None);
    }

    #[test]
    fn the_four_quantiles_of_the_table() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(nearest_rank(&sorted, 0.5), Some(2.0));
        assert_eq!(lower_neighbour(&sorted, 0.5), Some(2.0));
        assert_eq!(nearest_neighbour(&sorted, 0.5), Some(4.0));
        assert_eq!(interpolated(&sorted, 0.5), Some(3.0));
        assert_eq!(upper_median(&sorted), Some(4.0));
        assert_eq!(median(&[8.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn quantiles_at_the_ends_are_the_ends() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        for quantile in [nearest_rank, lower_neighbour, nearest_neighbour] {
            assert_eq!((quantile(&sorted, 0.0), quantile(&sorted, 1.0)), (Some(1.0), Some(100.0)));
        }
        assert_eq!(interpolated(&sorted, 1.0), Some(100.0));
        assert_eq!(nearest_rank(&sorted, 0.98), Some(98.0));
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let none: [f64; 0] = [];
        assert_eq!((mean(none), geometric_mean(none), median(&none)), (None, None, None));
        assert_eq!((population_deviation(none), sample_deviation(none)), (None, None));
        assert_eq!((nearest_rank(&none, 0.5), lower_neighbour(&none, 0.5)), (None, None));
        assert_eq!((nearest_neighbour(&none, 0.5), interpolated(&none, 0.5)), (None, None));
        assert_eq!((upper_median(&none), Interval::middle_95(Vec::new())), (None, None));
    }

    #[test]
    fn a_redraw_has_as_many_items_as_there_are() {
        let times = redraw(50, &mut Seed::new(1).generator());
        assert_eq!(times.iter().sum::<u32>(), 50);
        assert!(times.contains(&0) && times.iter().any(|&times| times > 1));
        assert!(redraw(0, &mut Seed::new(1).generator()).is_empty());
    }

    #[test]
    fn the_middle_of_a_hundred_values_leaves_two_out_on_either_side() {
        let values = (0..=100).map(f64::from).rev().collect();
        assert_eq!(Interval::middle_95(values), Some(Interval { low: 2.0, high: 97.0 }));
    }

    #[test]
    fn an_interval_spans_all_values_and_is_written_as_a_pair() {
        let interval = Interval::covering([3.0, 1.0, 2.5]);
        assert_eq!(interval, Interval { low: 1.0, high: 3.0 });
        let written = serde_json::to_string(&interval).unwrap();
        assert_eq!(written, "[1.0,3.0]");
        assert_eq!(serde_json::from_str::<Interval>(&written).unwrap(), interval);
    }
}
