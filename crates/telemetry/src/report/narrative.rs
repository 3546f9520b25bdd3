//! The paragraph at the top: what the numbers say, and where the best policy loses.

use crate::comparison::number::{percent, short};
use crate::comparison::{Aggregate, Comparison, ORACLE, REFERENCES};
use crate::metric_table::metric;
use crate::summary::RunSummary;

/// The policy with the lowest p99 slowdown at the highest load, the references left out.
pub(super) fn best_policy(comparison: &Comparison) -> Option<&str> {
    best(comparison).map(|aggregate| aggregate.policy.as_str())
}

fn best(comparison: &Comparison) -> Option<&Aggregate> {
    let load = *comparison.loads().last()?;
    let rank = |one: &&Aggregate| one.mean("slowdown_p99").unwrap_or(f64::INFINITY);
    comparison
        .at(load)
        .filter(|one| !REFERENCES.contains(&one.policy.as_str()))
        .min_by(|a, b| rank(a).total_cmp(&rank(b)))
}

pub(super) fn story(comparison: &Comparison) -> String {
    let Some(winner) = best(comparison) else {
        return "Only reference policies were run; there is nothing to judge yet.".to_owned();
    };
    let load = winner.load;
    let value = |key| winner.mean(key).unwrap_or(f64::NAN);
    let mut text = format!(
        "At load {load}, {} has the lowest p99 slowdown of the policies under test: {}",
        winner.policy,
        short(value("slowdown_p99"))
    );
    let pair = comparison.pair(load, &winner.policy, "slowdown_p99");
    if let Some((pair, ratio)) = pair.and_then(|pair| Some((pair, pair.outcome.ratio?))) {
        text += &format!(
            ", {} times that of {} on the same seeds (95 % interval {} to {}, better on {} of {})",
            short(ratio.mean),
            comparison.baseline,
            short(ratio.low),
            short(ratio.high),
            pair.outcome.wins,
            ratio.samples,
        );
    }
    text += &format!(
        ". It was granted {} core-seconds where {} were used, and {} % of its calls ran more than 5 % \
         longer than at their user's size. ",
        short(value("core_seconds_granted")),
        short(value("core_seconds_used")),
        percent(value("violation_share")),
    );
    text + &losses(comparison, winner)
}

/// Every headline column in which another policy is better, by name.
fn losses(comparison: &Comparison, winner: &Aggregate) -> String {
    let keys = ["slowdown_p99", "bounded_slowdown_p99", "rfet_mean", "violation_share"];
    let costs = ["cold_share", "oom_kills", "core_seconds_granted", "changes_per_hour"];
    let mut lost = Vec::new();
    for load in comparison.loads() {
        let Some(ours) = comparison.at(load).find(|one| one.policy == winner.policy) else {
            continue;
        };
        for key in keys.iter().chain(&costs) {
            let better = comparison
                .at(load)
                .filter(|one| one.policy != ORACLE && one.mean(key) < ours.mean(key))
                .min_by(|a, b| {
                    let of = |one: &Aggregate| one.mean(key).unwrap_or(f64::INFINITY);
                    of(a).total_cmp(&of(b))
                });
            if let (Some(better), Some(metric)) = (better, metric(key)) {
                lost.push(format!("{} at load {load} (to {})", metric.label, better.policy));
            }
        }
    }
    if lost.is_empty() {
        return "No other policy but the oracle is better in any headline column.".to_owned();
    }
    format!("It loses in: {}.", lost.join(", "))
}

pub(super) fn run_story(run: &RunSummary) -> String {
    format!(
        "{} calls were measured over {} h. Half of them had a slowdown below {}, 99 of 100 below {}; {} % \
         ran more than 5 % longer than at their user's size. Calls were granted {} core-seconds and used {}.",
        run.calls,
        short(run.measured_hours),
        short(run.slowdown_p50),
        short(run.slowdown_p99),
        percent(run.violation_share),
        short(run.core_seconds_granted),
        short(run.core_seconds_used),
    )
}
