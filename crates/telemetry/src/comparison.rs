//! Many runs side by side: per load and policy the mean over seeds with its interval, and each policy
//! paired with a baseline on the same seeds. Where the cost of every function is known, the ratio of
//! core-seconds held also has an interval over functions, see [`function_bootstrap`](crate::function_bootstrap).
//!
//! Four policies are reference rows and always come first: `fixed` (no management at all),
//! `safeguard-random` (what the safeguard alone is worth), `histogram` (the simplest thing that learns)
//! and `oracle` (knows each call's demand; not attainable, and not a bound for live policies). A learned
//! policy that does not beat the first three has shown nothing.

pub mod number;
pub mod tables;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::function_bootstrap::{CostPair, FunctionCosts, FunctionRatio};
use crate::metric_table::{Direction, METRICS, Metric, metric};
use crate::statistics::{Estimate, Paired};
use crate::summary::{RunLabel, RunSummary};

/// Policies that give the others their meaning, in the order in which they are shown.
pub const REFERENCES: [&str; 4] = ["fixed", "safeguard-random", "histogram", "oracle"];
/// The reference that knows the future and is therefore never called the best.
pub const ORACLE: &str = "oracle";
/// The columns of the tables in documents.
pub const HEADLINE: [&str; 10] = [
    "slowdown_p99",
    "slowdown_p999",
    "bounded_slowdown_p99",
    "rfet_mean",
    "violation_share",
    "harvested_violation_share",
    "cold_share",
    "oom_kills",
    "core_seconds_held",
    "core_seconds_held_back",
];
/// The metric of cost: what new calls could not have.
pub const COST: &str = "core_seconds_held";

/// All runs of a comparison, with what they say together.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The policy the others are paired with.
    pub baseline: String,
    /// Every run.
    pub rows: Vec<RunSummary>,
    /// Means over seeds, by load, then references first, then by first appearance.
    pub aggregates: Vec<Aggregate>,
    /// Each policy against the baseline.
    pub pairs: Vec<Pair>,
    /// Runs without a measured call. They are in `rows` and nowhere else: they say nothing.
    pub left_out: Vec<RunLabel>,
}

/// One policy at one load over all its seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Aggregate {
    /// The load.
    pub load: f64,
    /// The policy.
    pub policy: String,
    /// Whether it is there to give the others their meaning.
    pub is_reference: bool,
    /// The seeds, rising.
    pub seeds: Vec<u64>,
    /// Means with intervals by metric; geometric for slowdowns and latencies.
    pub metrics: BTreeMap<&'static str, Estimate>,
}

impl Aggregate {
    /// Whether it may be called the best: not if it knows the future, and not if it answered nobody,
    /// which is the cheapest way to run a cluster.
    pub fn is_eligible(&self) -> bool {
        self.policy != ORACLE && self.mean("completed").is_some_and(|calls| calls > 0.0)
    }

    /// The mean of one metric over the seeds.
    pub fn mean(&self, key: &str) -> Option<f64> {
        self.metrics.get(key).map(|estimate| estimate.mean)
    }
}

/// One metric of one policy against the baseline, seed by seed.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// The load.
    pub load: f64,
    /// The policy.
    pub policy: String,
    /// What it is compared with.
    pub baseline: String,
    /// In which metric.
    pub metric: &'static str,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Paired,
    /// The ratio over seeds and functions drawn again; for [`COST`], where the functions are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_functions: Option<FunctionRatio>,
}

impl Comparison {
    /// Aggregates `rows` and pairs every policy with `baseline`. Runs without a partner on the same load
    /// and seed are aggregated but not paired; runs without calls are left out of both.
    pub fn new(rows: Vec<RunSummary>, baseline: &str) -> Self {
        Self::with_functions(rows, &[], baseline)
    }

    /// The same with what each function held, one entry for each row; none if that is not known.
    pub fn with_functions(rows: Vec<RunSummary>, costs: &[FunctionCosts], baseline: &str) -> Self {
        let mut aggregates = Vec::new();
        let mut pairs = Vec::new();
        for load in loads(&rows) {
            let says_something = |row: &&RunSummary| row.load == load && row.calls > 0;
            let at_load: Vec<&RunSummary> = rows.iter().filter(says_something).collect();
            let theirs = of_policy(&at_load, baseline);
            for policy in policies_in_order(&at_load) {
                let ours = of_policy(&at_load, &policy);
                if policy != baseline {
                    let over_functions =
                        ratio_over_functions(&rows, costs, [&policy, baseline], load);
                    pairs.extend(paired(load, &policy, baseline, &ours, &theirs, over_functions));
                }
                aggregates.push(aggregate(load, policy, &ours));
            }
        }
        let idle = rows.iter().filter(|row| row.calls == 0);
        let left_out = idle
            .map(|row| RunLabel { policy: row.policy.clone(), load: row.load, seed: row.seed })
            .collect();
        Self { baseline: baseline.to_owned(), rows, aggregates, pairs, left_out }
    }

    /// A sentence about runs without calls, if there are any.
    pub fn left_out_note(&self) -> Option<String> {
        let shown =
            |run: &RunLabel| format!("{} at load {} seed {}", run.policy, run.load, run.seed);
        let names: Vec<String> = self.left_out.iter().take(5).map(shown).collect();
        let more = match self.left_out.len() {
            0 => return None,
            count if count > 5 => format!(" and {} more", count - 5),
            _ => String::new(),
        };
        Some(format!("left out, without a measured call: {}{more}", names.join(", ")))
    }

    /// The loads, rising.
    pub fn loads(&self) -> Vec<f64> {
        loads(&self.rows)
    }

    /// The policies at one load, in the order in which they are shown.
    pub fn at(&self, load: f64) -> impl Iterator<Item = &Aggregate> {
        self.aggregates.iter().filter(move |aggregate| aggregate.load == load)
    }

    /// How `policy` fares against the baseline.
    pub fn pair(&self, load: f64, policy: &str, key: &str) -> Option<&Pair> {
        self.pairs
            .iter()
            .find(|pair| pair.load == load && pair.policy == policy && pair.metric == key)
    }

    /// The best mean of a metric at a load among those that are [eligible](Aggregate::is_eligible); a
    /// column in which all are equal has no best.
    pub fn best(&self, load: f64, key: &str) -> Option<f64> {
        let direction = metric(key)?.direction;
        let values: Vec<f64> = self
            .at(load)
            .filter(|aggregate| aggregate.is_eligible())
            .filter_map(|aggregate| aggregate.mean(key))
            .collect();
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        match direction {
            Direction::Lower if least < most => Some(least),
            Direction::Higher if least < most => Some(most),
            _ => None,
        }
    }

    /// As JSON: `rows[]`, `aggregates[]`, `pairs[]`.
    pub fn to_json(&self) -> serde_json::Value {
        // Only numbers and text: there is nothing in it that JSON cannot hold.
        serde_json::to_value(self).expect("a comparison is plain data")
    }
}

fn loads(rows: &[RunSummary]) -> Vec<f64> {
    let mut loads: Vec<f64> = rows.iter().map(|row| row.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
}

fn of_policy<'a>(rows: &[&'a RunSummary], policy: &str) -> Vec<&'a RunSummary> {
    rows.iter().copied().filter(|row| row.policy == policy).collect()
}

fn policies_in_order(rows: &[&RunSummary]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        if !names.contains(&row.policy) {
            names.push(row.policy.clone());
        }
    }
    // Stable: policies that are no reference stay in the order in which they came.
    names.sort_by_key(|name| {
        REFERENCES.iter().position(|reference| reference == name).unwrap_or(REFERENCES.len())
    });
    names
}

fn aggregate(load: f64, policy: String, rows: &[&RunSummary]) -> Aggregate {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.sort_unstable();
    let metrics =
        METRICS.iter().filter_map(|metric| Some((metric.key, estimate(metric, rows)?))).collect();
    let is_reference = REFERENCES.contains(&policy.as_str());
    Aggregate { load, policy, is_reference, seeds, metrics }
}

fn estimate(metric: &Metric, rows: &[&RunSummary]) -> Option<Estimate> {
    let samples: Vec<f64> = rows.iter().filter_map(|row| metric.of(row)).collect();
    let geometric = metric.is_geometric.then(|| Estimate::geometric(&samples)).flatten();
    geometric.or_else(|| Estimate::of(&samples))
}

fn paired(
    load: f64,
    policy: &str,
    baseline: &str,
    ours: &[&RunSummary],
    theirs: &[&RunSummary],
    over_functions: Option<FunctionRatio>,
) -> Vec<Pair> {
    let partners: Vec<(&RunSummary, &RunSummary)> = ours
        .iter()
        .filter_map(|our| {
            let their = theirs.iter().find(|their| their.seed == our.seed)?;
            Some((*our, *their))
        })
        .collect();
    let judged = METRICS.iter().filter(|metric| metric.direction != Direction::Neither);
    judged
        .filter_map(|metric| {
            let values: Vec<(f64, f64)> = partners
                .iter()
                .filter_map(|(our, their)| Some((metric.of(our)?, metric.of(their)?)))
                .collect();
            Some(Pair {
                load,
                policy: policy.to_owned(),
                baseline: baseline.to_owned(),
                metric: metric.key,
                outcome: Paired::of(&values, metric.direction == Direction::Lower)?,
                over_functions: over_functions.filter(|_| metric.key == COST),
            })
        })
        .collect()
}

/// Core-seconds held by the first of two policies over those of the second at one load, on the seeds that
/// both have.
pub fn ratio_over_functions(
    rows: &[RunSummary],
    costs: &[FunctionCosts],
    [ours, theirs]: [&str; 2],
    load: f64,
) -> Option<FunctionRatio> {
    let of = |policy: &str, seed: u64| {
        rows.iter()
            .zip(costs)
            .filter(|(row, _)| row.load == load && row.seed == seed && row.calls > 0)
            .find(|(row, _)| row.policy == policy)
            .map(|(_, costs)| costs)
    };
    let seeds = rows.iter().filter(|row| row.load == load && row.policy == ours);
    let pairs: Vec<CostPair<'_>> = seeds
        .filter_map(|row| {
            Some(CostPair { ours: of(ours, row.seed)?, theirs: of(theirs, row.seed)? })
        })
        .collect();
    FunctionRatio::of(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn row(policy: &str, load: f64, seed: u64, p99: f64) -> RunSummary {
        RunSummary {
            policy: policy.to_owned(),
            load,
            seed,
            calls: 1000,
            completed: 1000,
            slowdown_p99: p99,
            bounded_slowdown_p99: p99 / 2.0,
            rfet_mean: 1.0 + p99 / 1000.0,
            core_seconds_held: 5000.0 - p99,
            core_seconds_granted: 5000.0 - p99,
            ..RunSummary::default()
        }
    }

    #[test]
    fn references_come_first_and_in_their_order() {
        let rows = ["libra", "oracle", "ensure", "histogram", "fixed"]
            .map(|policy| row(policy, 0.8, 1, 10.0));
        let comparison = Comparison::new(rows.to_vec(), "fixed");
        let order: Vec<&str> = comparison.at(0.8).map(|one| one.policy.as_str()).collect();
        assert_eq!(order, ["fixed", "histogram", "oracle", "libra", "ensure"]);
    }

    #[test]
    fn slowdowns_are_averaged_as_factors_and_paired_by_seed() {
        let rows = vec![
            row("fixed", 0.8, 1, 10.0),
            row("fixed", 0.8, 2, 1000.0),
            row("libra", 0.8, 2, 500.0),
            row("libra", 0.8, 1, 5.0),
            row("libra", 0.8, 9, 1.0),
        ];
        let comparison = Comparison::new(rows, "fixed");
        let fixed = comparison.at(0.8).next().unwrap();
        assert!((fixed.mean("slowdown_p99").unwrap() - 100.0).abs() < 1e-9);
        let pair = comparison.pair(0.8, "libra", "slowdown_p99").unwrap();
        assert_eq!((pair.outcome.wins, pair.outcome.losses), (2, 0));
        assert!((pair.outcome.ratio.unwrap().mean - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_oracle_is_never_the_best_and_equals_have_none() {
        let rows =
            vec![row("oracle", 0.8, 1, 1.0), row("fixed", 0.8, 1, 9.0), row("a", 0.8, 1, 3.0)];
        let comparison = Comparison::new(rows, "fixed");
        assert_eq!(comparison.best(0.8, "slowdown_p99"), Some(3.0));
        assert_eq!(comparison.best(0.8, "oom_kills"), None);
        assert_eq!(comparison.best(0.8, "core_seconds_used"), None, "it judges nothing");
    }

    #[test]
    fn a_run_without_calls_is_left_out_and_named() {
        let idle = RunSummary { calls: 0, completed: 0, ..row("idle", 0.8, 1, 0.0) };
        let half_idle = RunSummary { calls: 0, ..row("a", 0.8, 2, 0.0) };
        let violating =
            |policy, seed| RunSummary { violation_share: 0.1, ..row(policy, 0.8, seed, 5.0) };
        let rows =
            vec![violating("fixed", 1), violating("fixed", 2), violating("a", 1), half_idle, idle];
        let comparison = Comparison::new(rows, "fixed");
        let shown: Vec<&str> = comparison.at(0.8).map(|one| one.policy.as_str()).collect();
        assert_eq!(shown, ["fixed", "a"]);
        let ours = comparison.at(0.8).nth(1).unwrap();
        assert_eq!((ours.seeds.as_slice(), ours.mean("violation_share")), (&[1][..], Some(0.1)));
        assert_eq!(comparison.pair(0.8, "a", "slowdown_p99").unwrap().outcome.ties, 1);
        assert_eq!(
            comparison.left_out_note().unwrap(),
            "left out, without a measured call: a at load 0.8 seed 2, idle at load 0.8 seed 1"
        );
    }

    #[test]
    fn who_answers_nobody_or_harvests_nobody_does_not_win_by_it() {
        let silent = RunSummary {
            completed: 0,
            rejected: 1000,
            core_seconds_held: 0.0,
            ..row("silent", 0.8, 1, 0.0)
        };
        let harvesting = |policy, share| RunSummary {
            harvested_share: 0.5,
            harvested_violation_share: share,
            violation_share: share,
            ..row(policy, 0.8, 1, 5.0)
        };
        let rows = vec![
            RunSummary { violation_share: 0.3, ..row("fixed", 0.8, 1, 9.0) },
            silent,
            harvesting("a", 0.1),
            harvesting("b", 0.2),
        ];
        let comparison = Comparison::new(rows, "fixed");
        assert_eq!(comparison.best(0.8, "violation_share"), Some(0.1));
        assert_eq!(comparison.best(0.8, "slowdown_p99"), Some(5.0));
        assert_eq!(comparison.best(0.8, "core_seconds_held"), Some(4991.0), "silence is cheap");
        assert_eq!(comparison.best(0.8, "harvested_violation_share"), Some(0.1));
        assert!(comparison.pair(0.8, "a", "harvested_violation_share").is_none());
    }

    #[test]
    fn where_functions_are_known_the_cost_has_an_interval_over_them() {
        let rows = vec![row("fixed", 0.8, 1, 9.0), row("a", 0.8, 1, 3.0)];
        let costs = [vec![10.0, 10.0], vec![5.0, 10.0]]
            .map(|of_functions| FunctionCosts { of_functions, of_none: 0.0 });
        let comparison = Comparison::with_functions(rows, &costs, "fixed");
        let cost = comparison.pair(0.8, "a", COST).unwrap().over_functions.unwrap();
        assert_eq!((cost.ratio, cost.low, cost.high), (0.75, 0.5, 1.0));
        let waiting = comparison.pair(0.8, "a", "slowdown_p99").unwrap();
        assert_eq!(waiting.over_functions, None);
        let json = comparison.to_json();
        let of = |key: &str| {
            let pairs = json["pairs"].as_array().unwrap();
            pairs.iter().find(|pair| pair["metric"] == key).unwrap().clone()
        };
        assert_eq!(of(COST)["over_functions"]["functions"], 2);
        assert!(of("slowdown_p99").get("over_functions").is_none());
    }

    #[test]
    fn json_has_the_three_parts() {
        let json = Comparison::new(vec![row("fixed", 0.8, 1, 9.0)], "fixed").to_json();
        assert_eq!(json["rows"][0]["slowdown_p99"], 9.0);
        assert_eq!(json["aggregates"][0]["metrics"]["slowdown_p99"]["mean"], 9.0);
        assert!(json["pairs"].as_array().unwrap().is_empty());
    }
}
