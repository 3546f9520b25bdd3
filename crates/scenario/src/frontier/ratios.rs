//! How far one family lies below the envelope of the incumbents, price by price and seed by seed.

use serde::Serialize;

use super::FrontierPoint;
use super::envelope::{Envelope, Trade};

/// One setting of a family against the incumbents' envelope, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The family.
    pub policy: String,
    /// Where its dial stood.
    pub price: f64,
    /// Its MiB-seconds over the envelope's at the same slow share: geometric mean over the seeds on which
    /// the envelope gets there, nothing if it never does.
    pub mib_seconds_at_equal_slow_share: Option<f64>,
    /// Its slow share over the envelope's at the same MiB-seconds.
    pub slow_share_at_equal_mib_seconds: Option<f64>,
    /// Its instance-seconds over the envelope's at the same slow share.
    pub instance_seconds_at_equal_slow_share: Option<f64>,
    /// Its slow share per function over the envelope's at the same MiB-seconds.
    pub slow_share_per_function_at_equal_mib_seconds: Option<f64>,
    /// Its core-seconds over the envelope's at the same p99 slowdown.
    pub core_seconds_at_equal_p99: Option<f64>,
    /// Seeds on which it holds less at the same slow share, or is better than the envelope ever gets.
    pub seeds_won: usize,
    /// Seeds.
    pub seeds: usize,
    /// Its MiB-seconds over the envelope's, seed by seed.
    pub by_seed: Vec<Option<f64>>,
    /// 2.5 and 97.5 % of the first ratio when functions are drawn again, on the first seed.
    pub bootstrap: Option<(f64, f64)>,
}

/// What is compared.
#[derive(Clone, Copy)]
struct Axes {
    paid: fn(&FrontierPoint) -> f64,
    bad: fn(&FrontierPoint) -> f64,
}

const MEMORY: Axes = Axes { paid: |point| point.mib_seconds, bad: |point| point.slow_share };
const INSTANCES: Axes =
    Axes { paid: |point| point.instance_seconds, bad: |point| point.slow_share };
const FUNCTIONS: Axes =
    Axes { paid: |point| point.mib_seconds, bad: |point| point.slow_share_per_function };

const CORES: Axes = Axes { paid: |point| point.core_seconds, bad: |point| point.slowdown_p99 };

impl Axes {
    fn of(self, point: &FrontierPoint) -> Trade {
        Trade { paid: (self.paid)(point), bad: (self.bad)(point).max(least(point)) }
    }

    /// The incumbents' envelope on the seed of `point`.
    fn envelope(self, points: &[FrontierPoint], point: &FrontierPoint) -> Envelope {
        let rivals = points.iter().filter(|other| other.is_incumbent && other.seed == point.seed);
        Envelope::of(rivals.map(|other| self.of(other)), least(point))
    }
}

/// Half a call stands for none.
fn least(point: &FrontierPoint) -> f64 {
    0.5 / point.calls.max(1) as f64
}

/// The ratios of every family that is not an incumbent, in the order of the points.
pub fn ratios(points: &[FrontierPoint]) -> Vec<Ratio> {
    let mut settings: Vec<(&str, f64)> = Vec::new();
    for point in points.iter().filter(|point| !point.is_incumbent) {
        let setting = (point.policy.as_str(), point.dial);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings.into_iter().map(|(policy, price)| ratio(points, policy, price)).collect()
}

fn ratio(points: &[FrontierPoint], policy: &str, price: f64) -> Ratio {
    let ours: Vec<&FrontierPoint> =
        points.iter().filter(|point| point.policy == policy && point.dial == price).collect();
    let paid = |axes: Axes| -> Vec<Option<f64>> {
        let each = |point: &&FrontierPoint| {
            let Trade { paid, bad } = axes.of(point);
            Some(paid / axes.envelope(points, point).paid_at(bad)?)
        };
        ours.iter().map(each).collect()
    };
    let bad = |axes: Axes| -> Vec<Option<f64>> {
        let each = |point: &&FrontierPoint| {
            let Trade { paid, bad } = axes.of(point);
            Some(bad / axes.envelope(points, point).bad_at(paid)?)
        };
        ours.iter().map(each).collect()
    };
    let by_seed = paid(MEMORY);
    Ratio {
        policy: policy.to_owned(),
        price,
        mib_seconds_at_equal_slow_share: geometric_mean(&by_seed),
        slow_share_at_equal_mib_seconds: geometric_mean(&bad(MEMORY)),
        instance_seconds_at_equal_slow_share: geometric_mean(&paid(INSTANCES)),
        slow_share_per_function_at_equal_mib_seconds: geometric_mean(&bad(FUNCTIONS)),
        core_seconds_at_equal_p99: geometric_mean(&paid(CORES)),
        seeds_won: by_seed.iter().filter(|ratio| ratio.is_none_or(|ratio| ratio < 1.0)).count(),
        seeds: ours.len(),
        by_seed,
        bootstrap: super::bootstrap::interval(points, policy, price),
    }
}

fn geometric_mean(ratios: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = ratios.iter().flatten().map(|ratio| ratio.ln()).collect();
    (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(policy: &str, seed: u64, mib_seconds: f64, slow_share: f64) -> FrontierPoint {
        FrontierPoint {
            policy: policy.to_owned(),
            dial: mib_seconds,
            seed,
            is_incumbent: policy != "ours",
            calls: 1_000_000,
            slow_share,
            slow_share_per_function: slow_share,
            bounded_slowdown_p99: 1.0,
            mib_seconds,
            instance_seconds: mib_seconds,
            changes_per_hour: 0.0,
            slowdown_p99: 1.0,
            core_seconds: 1.0,
            functions: Vec::new(),
        }
    }

    #[test]
    fn half_the_memory_at_the_same_slow_share_is_one_half() {
        let points = [
            point("keep-alive", 1, 100.0, 0.1),
            point("keep-alive", 1, 400.0, 0.01),
            point("ours", 1, 200.0, 0.01),
            point("keep-alive", 2, 100.0, 0.1),
            point("ours", 2, 200.0, 0.01),
        ];
        let ratios = ratios(&points);
        assert_eq!(ratios.len(), 1);
        let ratio = &ratios[0];
        assert!((ratio.by_seed[0].unwrap() - 0.5).abs() < 1e-9 && ratio.by_seed[1].is_none());
        assert!((ratio.mib_seconds_at_equal_slow_share.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!((ratio.seeds_won, ratio.seeds), (2, 2));
        let worse = 0.1f64 * 0.1f64.sqrt();
        let expected = ((0.01 / worse) * (0.01 / 0.1)).sqrt();
        assert!((ratio.slow_share_at_equal_mib_seconds.unwrap() - expected).abs() < 1e-9);
    }
}
