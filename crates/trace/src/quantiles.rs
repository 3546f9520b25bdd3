//! Distributions given by a few percentiles, and tables that turn a standard normal number into a draw.
//!
//! Between two percentiles the logarithm of the value is interpolated over the probability. A draw needs no
//! logarithm and no power: the quantile function is tabulated once over the normal score `z`, and each call is
//! a table lookup.
//!
//! ```text
//!   value = Q(Phi(z))      Q: percentiles, log-interpolated      Phi: normal distribution function
//! ```

use std::sync::LazyLock;

/// Percentiles of a positive quantity: probability and value, both non-decreasing.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    points: Vec<(f32, f32)>,
}

impl Quantiles {
    /// Creates a distribution through `points` (probability, value), with values clamped to `low..=high`.
    ///
    /// Values below their predecessor (percentiles of small samples) are raised to it.
    ///
    /// # Panics
    ///
    /// Panics if there are no points.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>, low: f64, high: f64) -> Self {
        let mut last = low;
        let points: Vec<(f32, f32)> = points
            .into_iter()
            .map(|(probability, value)| {
                last = value.clamp(low, high).max(last);
                (probability as f32, last as f32)
            })
            .collect();
        assert!(!points.is_empty(), "a distribution has at least one percentile");
        Self { points }
    }

    /// Creates a lognormal distribution clamped to `low..=high`, as percentiles.
    pub fn lognormal(median: f64, sigma: f64, low: f64, high: f64) -> Self {
        const SCORES: [f64; 13] =
            [-3.5, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5];
        Self::new(SCORES.map(|z| (normal_cdf(z), median * (sigma * z).exp())), low, high)
    }

    /// Quantile at `probability`.
    pub fn at(&self, probability: f64) -> f64 {
        let above = self.points.partition_point(|&(p, _)| f64::from(p) < probability);
        let (Some(&(p1, v1)), Some(&(p0, v0))) =
            (self.points.get(above), above.checked_sub(1).and_then(|i| self.points.get(i)))
        else {
            let edge = self.points[above.min(self.points.len() - 1)];
            return f64::from(edge.1);
        };
        let share = (probability - f64::from(p0)) / f64::from(p1 - p0);
        let (low, high) = (f64::from(v0).ln(), f64::from(v1).ln());
        (low + share * (high - low)).exp()
    }
}

/// A quantile function over the normal score, at `N` scores from -4 to 4.
#[derive(Clone, Debug)]
pub(crate) struct ScoreTable<const N: usize> {
    values: [f32; N],
}

impl<const N: usize> ScoreTable<N> {
    const STEP: f32 = 8.0 / (N - 1) as f32;

    /// Tabulates `value_at(z)`.
    pub(crate) fn new(value_at: impl Fn(f64) -> f64) -> Self {
        Self { values: std::array::from_fn(|i| value_at(Self::score(i)) as f32) }
    }

    /// Tabulates a distribution.
    pub(crate) fn of(quantiles: &Quantiles) -> Self {
        Self::new(|z| quantiles.at(normal_cdf(z)))
    }

    fn score(i: usize) -> f64 {
        -4.0 + 8.0 * i as f64 / (N - 1) as f64
    }

    /// Value at score `z`, interpolated linearly.
    #[inline]
    pub(crate) fn at(&self, z: f32) -> f32 {
        const { assert!(N <= 256, "a place must fit a byte") };
        let place = (z.clamp(-4.0, 4.0) + 4.0) * (1.0 / Self::STEP);
        // The cast through a byte takes three instructions instead of twelve, and there are four lookups per call.
        let i = usize::from(place as u8).min(N - 2);
        let share = place - i as f32;
        let (low, high) = (self.values[i], self.values[i + 1]);
        low + share * (high - low)
    }

    /// Mean of all draws.
    pub(crate) fn mean(&self) -> f64 {
        let mut sum = 0.0;
        let mut weights = 0.0;
        for (i, &value) in self.values.iter().enumerate() {
            let z = Self::score(i);
            let weight = (-0.5 * z * z).exp();
            sum += weight * f64::from(value);
            weights += weight;
        }
        sum / weights
    }
}

/// Number of cells in the table of normal scores.
const NORMAL_CELLS: usize = 1024;

/// Standard normal scores from uniform bits: the inverse distribution function at even steps of probability,
/// interpolated linearly.
///
/// Two scores need one draw of 64 bits and no branch. Scores end at +-3.7, chosen so that the two outermost cells
/// have the right mean; 1 call in 10,000 would be farther out.
#[derive(Debug)]
pub(crate) struct NormalScores {
    scores: [f32; NORMAL_CELLS + 1],
}

impl NormalScores {
    /// The shared table, created on first use.
    pub(crate) fn shared() -> &'static Self {
        static SCORES: LazyLock<NormalScores> = LazyLock::new(NormalScores::new);
        &SCORES
    }

    fn new() -> Self {
        let step = 1.0 / NORMAL_CELLS as f64;
        let mut scores = std::array::from_fn(|i| normal_score(i as f64 * step) as f32);
        // The mean beyond z is density(z) / probability beyond z, and the cell's mean is the middle of its ends.
        let last = normal_score(1.0 - step);
        let density = (-0.5 * last * last).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let end = 2.0 * density / step - last;
        (scores[0], scores[NORMAL_CELLS]) = (-end as f32, end as f32);
        Self { scores }
    }

    /// Two independent scores from 64 uniform bits.
    #[inline]
    pub(crate) fn pair(&self, bits: u64) -> (f32, f32) {
        (self.at((bits >> 32) as u32), self.at(bits as u32))
    }

    #[inline]
    fn at(&self, bits: u32) -> f32 {
        const SHIFT: u32 = 32 - NORMAL_CELLS.ilog2();
        let cell = (bits >> SHIFT) as usize;
        let share = (bits & ((1 << SHIFT) - 1)) as f32 * (1.0 / (1u32 << SHIFT) as f32);
        let (low, high) = (self.scores[cell], self.scores[cell + 1]);
        low + share * (high - low)
    }
}

/// Normal score at `probability`, between -5 and 5, by bisection.
pub fn normal_score(probability: f64) -> f64 {
    let (mut low, mut high) = (-5.0, 5.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if normal_cdf(middle) < probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Standard normal distribution function, accurate to 1.5e-7 (Abramowitz and Stegun 7.1.26).
pub fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper = 0.5 * poly * (-x * x).exp();
    if z >= 0.0 { 1.0 - upper } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_percentiles_the_logarithm_is_interpolated() {
        let quantiles = Quantiles::new([(0.0, 1.0), (0.5, 100.0), (1.0, 100.0)], 0.1, 1e6);
        assert!((quantiles.at(0.25) - 10.0).abs() < 1e-4);
        assert!((quantiles.at(0.75) - 100.0).abs() < 1e-3);
        assert_eq!(quantiles.at(-1.0), 1.0);
        assert_eq!(quantiles.at(2.0), 100.0);
    }

    #[test]
    fn decreasing_percentiles_are_raised_and_limits_hold() {
        let quantiles = Quantiles::new([(0.0, 0.0), (0.5, 5.0), (1.0, 3.0)], 1.0, 600.0);
        assert_eq!(quantiles.at(0.0), 1.0);
        assert!((quantiles.at(1.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_table_repeats_the_quantiles_it_was_made_from() {
        let quantiles = Quantiles::lognormal(200.0, 0.8, 1.0, 1e6);
        let table = ScoreTable::<129>::of(&quantiles);
        for z in [-2.0f32, -1.0, -0.3, 0.0, 0.7, 1.9] {
            let exact = 200.0 * (0.8 * z).exp();
            assert!((table.at(z) / exact - 1.0).abs() < 0.03, "{z}: {} {exact}", table.at(z));
        }
        // The mean of a lognormal is its median times exp(sigma^2 / 2).
        assert!((table.mean() / (200.0 * 0.32f64.exp()) - 1.0).abs() < 0.03);
    }

    #[test]
    fn scores_from_bits_are_standard_normal() {
        let scores = NormalScores::shared();
        let steps = 1u64 << 16;
        let all: Vec<f64> =
            (0..steps).map(|i| f64::from(scores.pair((i << 48) + (1 << 47)).0)).collect();
        let mean = all.iter().sum::<f64>() / steps as f64;
        let variance = all.iter().map(|z| z * z).sum::<f64>() / steps as f64;
        assert!(mean.abs() < 1e-4, "{mean}");
        assert!((variance - 1.0).abs() < 2e-3, "{variance}");
        assert!(all.is_sorted());
        for (probability, z) in [(0.025, -1.96), (0.5, 0.0), (0.9, 1.2816), (0.99, 2.3263)] {
            let found = all[(probability * steps as f64) as usize];
            assert!((found - z).abs() < 2e-3, "{probability}: {found}");
        }
        // The lower half of the bits gives an independent score.
        assert_eq!(scores.pair(1 << 63), (scores.at(1 << 31), scores.at(0)));
    }

    #[test]
    fn the_normal_distribution_has_known_values() {
        assert!((normal_cdf(0.0) - 0.5).abs() < 1e-7);
        assert!((normal_cdf(1.959_964) - 0.975).abs() < 1e-6);
        assert!((normal_cdf(-1.0) - 0.158_655).abs() < 1e-6);
    }
}
