//! How far one family lies below the envelope of the incumbents, price by price and seed by seed.

use serde::Serialize;

use windfall_core::statistics;

use super::envelope::{Envelope, Trade};
use super::parameters::is_on_first_grid;
use super::{FrontierPoint, Interval, Question};

/// One setting of a family against the incumbents' envelope, over all seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// The family.
    pub policy: String,
    /// Where its parameter stood.
    pub price: f64,
    /// Its MiB-seconds over the envelope's at the same slow share: geometric mean over the seeds on which
    /// the envelope gets there, nothing if it never does.
    pub mib_seconds_at_equal_slow_share: Option<f64>,
    /// The same, with the incumbents' settings of the first grid alone; see [`is_on_first_grid`].
    pub mib_seconds_at_equal_slow_share_on_first_grid: Option<f64>,
    /// Its slow share over the envelope's at the same MiB-seconds.
    pub slow_share_at_equal_mib_seconds: Option<f64>,
    /// Its instance-seconds over the envelope's at the same slow share.
    pub instance_seconds_at_equal_slow_share: Option<f64>,
    /// Its slow share per function over the envelope's at the same MiB-seconds.
    pub slow_share_per_function_at_equal_mib_seconds: Option<f64>,
    /// The same against the hybrid histogram alone, all its settings.
    pub slow_share_per_function_over_hybrid_histogram: Option<f64>,
    /// Its changes per hour over those of the hybrid histogram with a range of an hour, on the same seeds.
    pub changes_over_hybrid_histogram: Option<f64>,
    /// Its core-seconds over the envelope's at the same p99 slowdown.
    pub core_seconds_at_equal_p99: Option<f64>,
    /// Its p99 slowdown over the envelope's at the same core-seconds.
    pub p99_at_equal_core_seconds: Option<f64>,
    /// Seeds on which it pays less for the same service, or serves better than the envelope ever gets.
    pub seeds_won: usize,
    /// Seeds.
    pub seeds: usize,
    /// What it pays over what the envelope pays, seed by seed: core-seconds where sizing is the question,
    /// else MiB-seconds.
    pub by_seed: Vec<Option<f64>>,
    /// 2.5 and 97.5 % of the first ratio when functions are drawn again, on the first seed.
    pub bootstrap: Option<Interval>,
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

    /// What is paid for the same service, and what is served at the same price, over `rivals`.
    fn over(self, point: &FrontierPoint, rivals: &[&FrontierPoint]) -> (Option<f64>, Option<f64>) {
        let Trade { paid, bad } = self.of(point);
        let on_seed = rivals.iter().filter(|rival| rival.seed == point.seed);
        let envelope = Envelope::of(on_seed.map(|rival| self.of(rival)), least(point));
        (
            envelope.paid_at(bad).map(|rival| paid / rival),
            envelope.bad_at(paid).map(|rival| bad / rival),
        )
    }
}

/// The incumbent whose service of rare functions and whose churn ours is held to.
const HYBRID: &str = "hybrid-histogram";
/// The setting of it whose churn counts, minutes.
const HYBRID_RANGE: f64 = 60.0;

/// Half a call stands for none.
pub(super) fn least(point: &FrontierPoint) -> f64 {
    0.5 / point.calls.max(1) as f64
}

/// The ratios of every family that is not an incumbent, in the order of the points.
pub fn ratios(question: Question, points: &[FrontierPoint]) -> Vec<Ratio> {
    let mut settings: Vec<(&str, f64)> = Vec::new();
    for point in points.iter().filter(|point| !point.is_incumbent) {
        let setting = (point.policy.as_str(), point.parameter);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings.into_iter().map(|setting| ratio(question, points, setting)).collect()
}

fn ratio(question: Question, points: &[FrontierPoint], (policy, price): (&str, f64)) -> Ratio {
    let ours: Vec<&FrontierPoint> =
        points.iter().filter(|point| point.policy == policy && point.parameter == price).collect();
    let incumbents: Vec<&FrontierPoint> =
        points.iter().filter(|point| point.is_incumbent).collect();
    let first: Vec<&FrontierPoint> = incumbents
        .iter()
        .copied()
        .filter(|point| is_on_first_grid(&point.policy, point.parameter))
        .collect();
    let hybrid: Vec<&FrontierPoint> =
        points.iter().filter(|point| point.policy.starts_with(HYBRID)).collect();
    let over = |axes: Axes, rivals: &[&FrontierPoint]| -> (Vec<Option<f64>>, Vec<Option<f64>>) {
        ours.iter().map(|point| axes.over(point, rivals)).unzip()
    };
    let (memory, slow) = over(MEMORY, &incumbents);
    let (cores, p99) = over(CORES, &incumbents);
    let by_seed = match question {
        Question::Scaling | Question::Together { .. } => memory.clone(),
        Question::Sizing { .. } => cores.clone(),
    };
    Ratio {
        policy: policy.to_owned(),
        price,
        mib_seconds_at_equal_slow_share: geometric_mean(&memory),
        mib_seconds_at_equal_slow_share_on_first_grid: geometric_mean(&over(MEMORY, &first).0),
        slow_share_at_equal_mib_seconds: geometric_mean(&slow),
        instance_seconds_at_equal_slow_share: geometric_mean(&over(INSTANCES, &incumbents).0),
        slow_share_per_function_at_equal_mib_seconds: geometric_mean(
            &over(FUNCTIONS, &incumbents).1,
        ),
        slow_share_per_function_over_hybrid_histogram: geometric_mean(&over(FUNCTIONS, &hybrid).1),
        changes_over_hybrid_histogram: changes_over(&ours, &hybrid),
        core_seconds_at_equal_p99: geometric_mean(&cores),
        p99_at_equal_core_seconds: geometric_mean(&p99),
        seeds_won: by_seed.iter().filter(|ratio| ratio.is_none_or(|ratio| ratio < 1.0)).count(),
        seeds: ours.len(),
        by_seed,
        bootstrap: super::bootstrap::interval(points, policy, price),
    }
}

/// Changes per hour over those of the hybrid histogram, seed by seed.
fn changes_over(ours: &[&FrontierPoint], hybrid: &[&FrontierPoint]) -> Option<f64> {
    let over = |point: &&FrontierPoint| {
        let same = |other: &&&FrontierPoint| {
            other.policy == HYBRID && other.parameter == HYBRID_RANGE && other.seed == point.seed
        };
        let theirs = hybrid.iter().find(same)?.changes_per_hour;
        (theirs > 0.0 && point.changes_per_hour > 0.0).then(|| point.changes_per_hour / theirs)
    };
    geometric_mean(&ours.iter().map(over).collect::<Vec<_>>())
}

fn geometric_mean(ratios: &[Option<f64>]) -> Option<f64> {
    statistics::geometric_mean(ratios.iter().flatten())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn point(
        policy: &str,
        seed: u64,
        mib_seconds: f64,
        slow_share: f64,
    ) -> FrontierPoint {
        FrontierPoint {
            policy: policy.to_owned(),
            parameter: mib_seconds,
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
        let ratios = ratios(Question::Scaling, &points);
        assert_eq!(ratios.len(), 1);
        let ratio = &ratios[0];
        assert!((ratio.by_seed[0].unwrap() - 0.5).abs() < 1e-9 && ratio.by_seed[1].is_none());
        assert!((ratio.mib_seconds_at_equal_slow_share.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!((ratio.seeds_won, ratio.seeds), (2, 2));
        let worse = 0.1f64 * 0.1f64.sqrt();
        let expected = ((0.01 / worse) * (0.01 / 0.1)).sqrt();
        assert!((ratio.slow_share_at_equal_mib_seconds.unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn the_question_says_what_a_seed_is_won_by() {
        let cores = |policy, core_seconds, slowdown_p99| FrontierPoint {
            core_seconds,
            slowdown_p99,
            ..point(policy, 1, 100.0, 0.1)
        };
        // Half the cores at the same p99, and the same memory at the same slow share.
        let points = [cores("histogram", 100.0, 2.0), cores("ours", 50.0, 2.0)];
        let won = |question| ratios(question, &points)[0].clone();
        let sizing = won(Question::Sizing { load: 0.8 });
        assert_eq!((sizing.by_seed, sizing.seeds_won), (vec![Some(0.5)], 1));
        let scaling = won(Question::Scaling);
        assert_eq!((scaling.by_seed, scaling.seeds_won), (vec![Some(1.0)], 0));
    }

    #[test]
    fn rare_functions_and_churn_are_held_against_the_hybrid_histogram() {
        let at_an_hour = FrontierPoint {
            parameter: 60.0,
            changes_per_hour: 100.0,
            ..point("hybrid-histogram", 1, 200.0, 0.02)
        };
        let ours = FrontierPoint { changes_per_hour: 250.0, ..point("ours", 1, 200.0, 0.01) };
        let better = point("keep-alive", 1, 200.0, 0.001);
        let ratio = &ratios(Question::Scaling, &[at_an_hour, better, ours])[0];
        let over_hybrid = ratio.slow_share_per_function_over_hybrid_histogram.unwrap();
        assert!((over_hybrid - 0.5).abs() < 1e-9, "{over_hybrid}");
        assert!((ratio.changes_over_hybrid_histogram.unwrap() - 2.5).abs() < 1e-9);
    }
}
