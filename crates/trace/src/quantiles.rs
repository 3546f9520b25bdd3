//! Distributions given by a few percentiles, and tables that turn a standard normal into a draw.
//!
//! Between two percentiles the logarithm of the value is interpolated over the probability. A draw costs
//! no logarithm and no power: the quantile function is tabulated over the normal score `z` once, and a
//! call looks its own `z` up.
//!
//! ```text
//!   value = Q(Phi(z))      Q: percentiles, log-interpolated      Phi: normal distribution function
//! ```

/// Percentiles of a positive quantity: probability and value, both rising.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    points: Vec<(f32, f32)>,
}

impl Quantiles {
    /// The distribution through `points` (probability, value), each value brought into `low..=high`.
    ///
    /// Values that fall where they should rise (percentiles of small samples do) are lifted to the one
    /// before.
    ///
    /// # Panics
    ///
    /// If there is no point.
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

    /// A lognormal distribution brought into `low..=high`, as percentiles.
    pub fn lognormal(median: f64, sigma: f64, low: f64, high: f64) -> Self {
        const SCORES: [f64; 13] =
            [-3.5, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5];
        Self::new(SCORES.map(|z| (normal_cdf(z), median * (sigma * z).exp())), low, high)
    }

    /// The value below which the share `probability` of all draws lies.
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

    /// The value at score `z`, linear between two entries.
    #[inline]
    pub(crate) fn at(&self, z: f32) -> f32 {
        let place = (z.clamp(-4.0, 4.0) + 4.0) * (1.0 / Self::STEP);
        let i = (place as usize).min(N - 2);
        let share = place - i as f32;
        let (low, high) = (self.values[i], self.values[i + 1]);
        low + share * (high - low)
    }

    /// The mean of all draws.
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

/// The standard normal distribution function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
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
    fn falling_percentiles_are_lifted_and_limits_hold() {
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
    fn the_normal_distribution_by_hand() {
        assert!((normal_cdf(0.0) - 0.5).abs() < 1e-7);
        assert!((normal_cdf(1.959_964) - 0.975).abs() < 1e-6);
        assert!((normal_cdf(-1.0) - 0.158_655).abs() < 1e-6);
    }
}
