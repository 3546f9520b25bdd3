//! What a handful of seeds says about a policy: means, intervals, paired differences.
//!
//! Intervals are Student's, 95 %: `mean ± t(n - 1) * sd / sqrt(n)`. With three to ten seeds the factor is
//! 4.3 to 2.3 and not 1.96, which is the whole reason not to use the normal one. Quantities that range
//! over orders of magnitude (the p99 slowdown) are averaged as logarithms.

use serde::{Deserialize, Serialize};
use windfall_core::statistics::{Interval, mean, sample_deviation};

/// A mean with the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean; geometric where that is said.
    pub mean: f64,
    /// Lower end of the interval; equals the mean with a single sample, where nothing can be said.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Least sample.
    pub min: f64,
    /// Greatest sample.
    pub max: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Estimate {
    /// Arithmetic mean and interval of `samples`; nothing if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mean = mean(samples)?;
        let half = half_width(samples);
        Some(Self::around(mean, mean - half, mean + half, samples))
    }

    /// Geometric mean and interval; nothing if there are none or one is not positive.
    pub fn geometric(samples: &[f64]) -> Option<Self> {
        if samples.iter().any(|&x| x.is_nan() || x <= 0.0) {
            return None;
        }
        let logs: Vec<f64> = samples.iter().map(|x| x.ln()).collect();
        let center = mean(&logs)?;
        let half = half_width(&logs);
        // exp(ln x) is not always x; one sample should read as itself.
        let mean = if samples.len() == 1 { samples[0] } else { center.exp() };
        let (low, high) = if samples.len() == 1 {
            (mean, mean)
        } else {
            ((center - half).exp(), (center + half).exp())
        };
        Some(Self::around(mean, low, high, samples))
    }

    fn around(mean: f64, low: f64, high: f64, samples: &[f64]) -> Self {
        let Interval { low: min, high: max } = Interval::covering(samples);
        Self { mean, low, high, min, max, samples: samples.len() }
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

fn half_width(samples: &[f64]) -> f64 {
    let Some(sd) = sample_deviation(samples) else { return 0.0 };
    student_t(0.975, (samples.len() - 1) as f64) * sd / (samples.len() as f64).sqrt()
}

/// Two policies on the same seeds. Differences are `ours - theirs`, ratios `ours / theirs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Mean difference with its interval.
    pub difference: Estimate,
    /// Geometric mean of the ratios with its interval; absent where a value is zero or below.
    pub ratio: Option<Estimate>,
    /// Seeds on which ours is better.
    pub wins: usize,
    /// Seeds on which ours is worse.
    pub losses: usize,
    /// Seeds on which they are equal.
    pub ties: usize,
}

impl Paired {
    /// Compares pairs `(ours, theirs)`; nothing without pairs.
    pub fn of(pairs: &[(f64, f64)], lower_is_better: bool) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours - theirs).collect();
        let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
        let below = differences.iter().filter(|d| **d < 0.0).count();
        let above = differences.iter().filter(|d| **d > 0.0).count();
        let (wins, losses) = if lower_is_better { (below, above) } else { (above, below) };
        Some(Self {
            difference: Estimate::of(&differences)?,
            ratio: Estimate::geometric(&ratios).filter(|ratio| ratio.mean.is_finite()),
            wins,
            losses,
            ties: pairs.len() - below - above,
        })
    }

    /// Whether the interval of the difference leaves zero out.
    pub fn is_decided(&self) -> bool {
        let Estimate { low, high, samples, .. } = self.difference;
        samples > 1 && (low > 0.0 || high < 0.0)
    }
}

/// The `p` quantile of Student's t with `freedom` degrees of freedom.
///
/// By bisection of the distribution function, which is `1 - I(v / (v + t^2); v/2, 1/2) / 2` for `t > 0`.
pub fn student_t(p: f64, freedom: f64) -> f64 {
    if p < 0.5 {
        return -student_t(1.0 - p, freedom);
    }
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..100 {
        let t = (low + high) / 2.0;
        let tail = incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5) / 2.0;
        if 1.0 - tail < p { low = t } else { high = t }
    }
    (low + high) / 2.0
}

/// Regularised incomplete beta function `I(x; a, b)`.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side only; the other is its mirror image.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

/// Continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..=300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        result *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// Logarithm of the gamma function for positive `x` (Lanczos, g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let mut sum = 0.999_999_999_999_809_9;
    for (k, term) in TERMS.iter().enumerate() {
        sum += term / (x + k as f64);
    }
    let t = x + 6.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x - 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{got}, expected {want}");
    }

    #[test]
    fn students_quantiles_are_those_of_the_printed_tables() {
        for (freedom, want) in [
            (1.0, 12.7062),
            (2.0, 4.3027),
            (4.0, 2.7764),
            (9.0, 2.2622),
            (29.0, 2.0452),
            (120.0, 1.9799),
        ] {
            close(student_t(0.975, freedom), want, 5e-5);
        }
        close(student_t(0.95, 10.0), 1.8125, 5e-5);
        close(student_t(0.025, 9.0), -2.2622, 5e-5);
    }

    #[test]
    fn student_s_sleep_data_give_the_interval_of_the_textbooks() {
        // Student (1908): extra hours of sleep under two drugs, ten patients, paired.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let paired = Paired::of(&pairs, true).unwrap();
        close(paired.difference.mean, -1.58, 1e-9);
        close(paired.difference.low, -2.459_886, 1e-5);
        close(paired.difference.high, -0.700_114, 1e-5);
        assert_eq!((paired.wins, paired.losses, paired.ties), (9, 0, 1));
        assert!(paired.is_decided());
        assert_eq!(paired.ratio, None, "some of the hours are negative");
    }

    #[test]
    fn the_geometric_mean_multiplies() {
        let estimate = Estimate::geometric(&[1.0, 10.0, 100.0]).unwrap();
        close(estimate.mean, 10.0, 1e-9);
        // ln 10 * 4.3027 / sqrt 3 either way of ln 10.
        close(estimate.high.ln() - 10.0_f64.ln(), 4.302_65 * 10.0_f64.ln() / 3.0_f64.sqrt(), 1e-3);
        assert_eq!((estimate.min, estimate.max), (1.0, 100.0));
        assert_eq!(Estimate::geometric(&[1.0, 0.0]), None);
    }

    #[test]
    fn one_seed_has_no_interval_and_none_has_no_mean() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.low, one.mean, one.high), (3.0, 3.0, 3.0));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Paired::of(&[], true), None);
        assert!(!Paired::of(&[(1.0, 2.0)], true).unwrap().is_decided());
    }

    #[test]
    fn where_more_is_better_a_larger_number_wins() {
        let paired = Paired::of(&[(2.0, 1.0), (3.0, 1.0), (1.0, 1.0)], false).unwrap();
        assert_eq!((paired.wins, paired.losses, paired.ties), (2, 0, 1));
        close(paired.ratio.unwrap().mean, 6.0_f64.cbrt(), 1e-9);
    }
}
