//! Quantiles, moments, straight lines.

use windfall_core::statistics;

/// The `probability` quantile, linear between neighbours; not a number of none.
pub(crate) fn quantile(values: &[f64], probability: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    statistics::interpolated(&sorted, probability).unwrap_or(f64::NAN)
}

pub(crate) fn quantiles(values: &[f64], probabilities: &[f64]) -> Vec<f64> {
    probabilities.iter().map(|&probability| quantile(values, probability)).collect()
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    statistics::mean(values).unwrap_or(0.0)
}

/// The mean product of deviations; with itself, the variance.
pub(crate) fn covariance(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).collect();
    mean(&products)
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    covariance(a, b) / (covariance(a, a) * covariance(b, b)).sqrt()
}

/// The correlation of the normal scores behind two quantities, from their ranks (ties share a rank).
pub(crate) fn score_correlation(a: &[f64], b: &[f64]) -> f64 {
    2.0 * (std::f64::consts::PI / 6.0 * correlation(&ranks(a), &ranks(b))).sin()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let upto = sorted.partition_point(|other| other <= value);
        (below + upto) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// A straight line through points: slope, share of the variance explained, spread of what is left.
pub(crate) struct Line {
    pub(crate) slope: f64,
    pub(crate) explained: f64,
    pub(crate) residual: f64,
}

pub(crate) fn line(x: &[f64], y: &[f64]) -> Line {
    let slope = covariance(x, y) / covariance(x, x);
    let explained = correlation(x, y).powi(2);
    Line { slope, explained, residual: (covariance(y, y) * (1.0 - explained)).max(0.0).sqrt() }
}
