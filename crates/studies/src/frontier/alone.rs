//! Both decision points together over each alone, seed by seed on the same calls: is anything worse?
//!
//! ```text
//!   windfall + windfall-scaling   over   windfall + keep-alive 600 s         sizing alone
//!                                 over   fixed + windfall-scaling            scaling alone, at the same price
//!                                 over   the incumbents' pair with fewest slow calls
//! ```

use serde::Serialize;

use windfall_core::statistics::geometric_mean;

use super::FrontierPoint;
use super::ratios::least;
use super::tables::parameter;

const TOGETHER: &str = "windfall+windfall-scaling";
const SIZING_ALONE: (&str, f64) = ("windfall+keep-alive", 600.0);
const SCALING_ALONE: &str = "fixed+windfall-scaling";

/// One thing of ours over the same of another, on the same seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedRatio {
    /// Geometric mean over the seeds.
    pub mean: f64,
    /// Seed by seed.
    pub by_seed: Vec<f64>,
}

/// Both together at one price, over one other pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverAlone {
    /// The price of ours.
    pub price: f64,
    /// What it is compared with: `sizing alone`, `scaling alone` or `best incumbents`.
    pub what: &'static str,
    /// The pair and its parameter.
    pub over: String,
    /// p99 slowdown.
    pub slowdown_p99: PairedRatio,
    /// Share of slow calls.
    pub slow_share: PairedRatio,
    /// The same share of the mean function.
    pub slow_share_per_function: PairedRatio,
    /// CPU granted over time.
    pub core_seconds: PairedRatio,
    /// Memory held over time.
    pub mib_seconds: PairedRatio,
}

impl OverAlone {
    /// The columns of its table: head and ratio.
    pub fn columns(&self) -> [(&'static str, &PairedRatio); 5] {
        [
            ("p99", &self.slowdown_p99),
            ("slow share", &self.slow_share),
            ("slow share per function", &self.slow_share_per_function),
            ("core-s", &self.core_seconds),
            ("MiB-s", &self.mib_seconds),
        ]
    }
}

/// Every price of both together, over everything that was swept beside it.
pub fn over_alone(points: &[FrontierPoint]) -> Vec<OverAlone> {
    let mut prices: Vec<f64> = Vec::new();
    for point in points.iter().filter(|point| point.policy == TOGETHER) {
        if !prices.contains(&point.parameter) {
            prices.push(point.parameter);
        }
    }
    let incumbents = best_incumbents(points);
    let rivals = |price: f64| {
        let alone = [("sizing alone", SIZING_ALONE), ("scaling alone", (SCALING_ALONE, price))];
        alone.into_iter().chain(incumbents.map(|pair| ("best incumbents", pair)))
    };
    prices
        .iter()
        .flat_map(|&price| {
            rivals(price).filter_map(move |(what, pair)| compared(points, price, what, pair))
        })
        .collect()
}

/// The incumbents' pair and parameter with the fewest slow calls over all seeds.
fn best_incumbents(points: &[FrontierPoint]) -> Option<(&str, f64)> {
    let slow = |pair: (&str, f64)| -> f64 {
        points.iter().filter(|point| is(point, pair)).map(|point| point.slow_share).sum()
    };
    points
        .iter()
        .filter(|point| point.is_incumbent)
        .map(|point| (point.policy.as_str(), point.parameter))
        .min_by(|&a, &b| slow(a).total_cmp(&slow(b)))
}

fn is(point: &FrontierPoint, (policy, parameter): (&str, f64)) -> bool {
    point.policy == policy && point.parameter == parameter
}

/// Nothing if the other was not swept on the same seeds.
fn compared(
    points: &[FrontierPoint],
    price: f64,
    what: &'static str,
    pair: (&str, f64),
) -> Option<OverAlone> {
    let of = |pair| points.iter().filter(move |point| is(point, pair)).collect::<Vec<_>>();
    let (ours, theirs) = (of((TOGETHER, price)), of(pair));
    let on_the_same_seeds =
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| a.seed == b.seed);
    if ours.is_empty() || !on_the_same_seeds {
        return None;
    }
    let ratio = |of: fn(&FrontierPoint) -> f64| {
        let known = |point: &FrontierPoint| of(point).max(least(point));
        let by_seed: Vec<f64> =
            ours.iter().zip(&theirs).map(|(a, b)| known(a) / known(b)).collect();
        PairedRatio { mean: geometric_mean(&by_seed).unwrap_or(f64::NAN), by_seed }
    };
    Some(OverAlone {
        price,
        what,
        over: format!("{} at {}", pair.0, parameter(pair.1)),
        slowdown_p99: ratio(|point| point.slowdown_p99),
        slow_share: ratio(|point| point.slow_share),
        slow_share_per_function: ratio(|point| point.slow_share_per_function),
        core_seconds: ratio(|point| point.core_seconds),
        mib_seconds: ratio(|point| point.mib_seconds),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ratios::tests::point;
    use super::*;

    fn at(policy: &str, parameter: f64, seed: u64, slow_share: f64) -> FrontierPoint {
        let is_incumbent = policy.starts_with("libra");
        FrontierPoint { parameter, is_incumbent, ..point(policy, seed, 100.0, slow_share) }
    }

    #[test]
    fn each_half_and_the_best_incumbents_are_compared_on_the_same_seeds() {
        let points: Vec<FrontierPoint> = [1, 2]
            .into_iter()
            .flat_map(|seed| {
                [
                    at(TOGETHER, 5e-6, seed, 0.01),
                    at("windfall+keep-alive", 300.0, seed, 0.001),
                    at("windfall+keep-alive", 600.0, seed, 0.01 * seed as f64),
                    at(SCALING_ALONE, 5e-6, seed, 0.1),
                    at("libra+keep-alive", 60.0, seed, 0.08),
                    at("libra+keep-alive", 600.0, seed, 0.04),
                ]
            })
            .collect();
        let rows = over_alone(&points);
        let found: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.what, row.over.as_str())).collect();
        let expected = [
            ("sizing alone", "windfall+keep-alive at 600"),
            ("scaling alone", "fixed+windfall-scaling at 5e-6"),
            ("best incumbents", "libra+keep-alive at 600"),
        ];
        assert_eq!(found, expected);
        assert_eq!(rows[0].slow_share.by_seed, [1.0, 0.5]);
        assert!((rows[0].slow_share.mean - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(rows[1].mib_seconds.mean, 1.0);
    }

    #[test]
    fn what_was_not_swept_is_left_out() {
        assert_eq!(over_alone(&[at(TOGETHER, 5e-6, 1, 0.01), at(SCALING_ALONE, 1e-5, 1, 0.1)]), []);
    }
}
