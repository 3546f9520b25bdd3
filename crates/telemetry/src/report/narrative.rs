//! The paragraph at the top: what the numbers say, and where the best policy loses.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::comparison::number::{percent, short};
use crate::comparison::{Aggregate, Comparison, REFERENCES};
use crate::metric_table::metric;
use crate::summary::RunSummary;

/// A policy that slows more of its calls than this does not win by waiting less: a call that is given
/// too little leaves room for others.
const MOST_VIOLATIONS: f64 = 0.01;

fn breaks_promises(one: &Aggregate) -> bool {
    one.mean("violation_share").is_some_and(|share| share > MOST_VIOLATIONS)
}

/// The policy with the lowest p99 slowdown at the highest load, the references left out; one that keeps
/// its promises, if any does.
pub(super) fn best_policy(comparison: &Comparison) -> Option<&str> {
    best(comparison).map(|aggregate| aggregate.policy.as_str())
}

fn best(comparison: &Comparison) -> Option<&Aggregate> {
    let load = *comparison.loads().last()?;
    let rank = |one: &&Aggregate| one.mean("slowdown_p99").unwrap_or(f64::INFINITY);
    comparison
        .at(load)
        .filter(|one| one.is_eligible() && !REFERENCES.contains(&one.policy.as_str()))
        .min_by(|a, b| {
            breaks_promises(a).cmp(&breaks_promises(b)).then(rank(a).total_cmp(&rank(b)))
        })
}

pub(super) fn story(comparison: &Comparison) -> String {
    let Some(winner) = best(comparison) else {
        return "Only reference policies were run; there is nothing to judge yet.".to_owned();
    };
    let load = winner.load;
    let value = |key| winner.mean(key).unwrap_or(f64::NAN);
    let is_barred = !breaks_promises(winner) && comparison.at(load).any(breaks_promises);
    let mut text = format!(
        "At load {load}, {} has the lowest p99 slowdown of the policies under test{}: {}",
        winner.policy,
        if is_barred { " that slow at most 1 % of their calls" } else { "" },
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
        ". It held {} core-seconds ({} granted, {} held back) where {} were used, and {} % of its calls ran \
         more than 5 % longer than at their user's size. ",
        short(value("core_seconds_held")),
        short(value("core_seconds_granted")),
        short(value("core_seconds_held_back")),
        short(value("core_seconds_used")),
        percent(value("violation_share")),
    );
    text + &losses(&verdicts(comparison))
}

/// What is said about one load: who is judged, and where it loses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Verdict {
    policy: String,
    losses: Vec<String>,
}

/// The columns in which losing is worth a sentence.
const JUDGED: [&str; 11] = [
    "slowdown_p99",
    "slowdown_p999",
    "bounded_slowdown_p99",
    "rfet_mean",
    "violation_share",
    "harvested_violation_share",
    "cold_share",
    "oom_kills",
    "core_seconds_held",
    "mib_seconds_granted",
    "changes_per_hour",
];

/// For each load, where the best policy of the highest load loses to another, the oracle aside.
pub(super) fn verdicts(comparison: &Comparison) -> BTreeMap<String, Verdict> {
    let Some(winner) = best(comparison) else { return BTreeMap::new() };
    let judged = |load: f64| {
        let ours = comparison.at(load).find(|one| one.policy == winner.policy)?;
        let mut losses: Vec<String> =
            JUDGED.iter().filter_map(|key| loss(comparison, ours, key)).collect();
        if losses.is_empty() {
            losses.push("In no judged column is any policy but the oracle better.".to_owned());
        }
        Some((load.to_string(), Verdict { policy: winner.policy.clone(), losses }))
    };
    comparison.loads().into_iter().filter_map(judged).collect()
}

/// Who does better in one column, if anyone does.
fn loss(comparison: &Comparison, ours: &Aggregate, key: &str) -> Option<String> {
    let (metric, mine) = (metric(key)?, ours.mean(key)?);
    let better: Vec<(&str, f64)> = comparison
        .at(ours.load)
        .filter(|one| one.is_eligible())
        .filter_map(|one| Some((one.policy.as_str(), one.mean(key)?)))
        .filter(|(_, theirs)| *theirs < mine)
        .collect();
    let (name, theirs) = *better.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let shown = |value| match metric.unit {
        "1" if key.ends_with("_share") => percent(value) + " %",
        // Three digits hide a difference of a thousandth, and here that difference matters.
        "1" if key == "rfet_mean" => format!("{value:.4}"),
        _ => short(value),
    };
    let others = match better.len() - 1 {
        0 => String::new(),
        1 => "; one other policy is better too".to_owned(),
        count => format!("; {count} other policies are better too"),
    };
    let spread =
        if is_clear(ours, comparison, name, key) { "" } else { ", within the spread of seeds" };
    Some(format!(
        "{}: {} against {} of {name}{spread}{others}.",
        metric.label,
        shown(mine),
        shown(theirs)
    ))
}

/// Whether the two 95 % intervals are apart; with one seed nothing is.
fn is_clear(ours: &Aggregate, comparison: &Comparison, rival: &str, key: &str) -> bool {
    let theirs = comparison.at(ours.load).find(|one| one.policy == rival);
    match (ours.metrics.get(key), theirs.and_then(|one| one.metrics.get(key))) {
        (Some(mine), Some(theirs)) => {
            theirs.samples > 1 && mine.samples > 1 && theirs.high < mine.low
        }
        _ => false,
    }
}

/// One sentence for the paragraph at the top; the numbers are below.
fn losses(verdicts: &BTreeMap<String, Verdict>) -> String {
    let lost =
        |verdict: &Verdict| verdict.losses.iter().filter_map(|one| one.split_once(": ")).count();
    let count: usize = verdicts.values().map(lost).sum();
    match count {
        0 => "No other policy but the oracle is better in any judged column.".to_owned(),
        1 => "It loses in one column, listed below.".to_owned(),
        _ => format!("It loses in {count} columns over all loads, each listed below."),
    }
}

pub(super) fn run_story(run: &RunSummary) -> String {
    if run.calls == 0 {
        return "No call was measured: every number below is empty.".to_owned();
    }
    format!(
        "{} calls were measured over {} h. Half of them had a slowdown below {}, 99 of 100 below {}; {} % \
         ran more than 5 % longer than at their user's size. Calls held {} core-seconds ({} granted, {} held \
         back) and used {}.",
        run.calls,
        short(run.measured_hours),
        short(run.slowdown_p50),
        short(run.slowdown_p99),
        percent(run.violation_share),
        short(run.core_seconds_held),
        short(run.core_seconds_granted),
        short(run.core_seconds_held_back),
        short(run.core_seconds_used),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, load: f64, p99: f64, granted: f64) -> RunSummary {
        RunSummary {
            policy: policy.to_owned(),
            load,
            seed: 1,
            calls: 10,
            completed: 10,
            slowdown_p99: p99,
            core_seconds_held: granted,
            ..RunSummary::default()
        }
    }

    #[test]
    fn losses_name_the_rival_with_both_numbers_and_leave_the_oracle_out() {
        let rows = vec![
            row("fixed", 0.8, 9.0, 100.0),
            row("oracle", 0.8, 1.0, 10.0),
            row("thrifty", 0.8, 5.0, 50.0),
            row("quick", 0.8, 3.0, 120.0),
            row("thrifty", 0.5, 2.0, 40.0),
            row("quick", 0.5, 2.5, 30.0),
        ];
        let comparison = Comparison::new(rows, "fixed");
        let verdicts = verdicts(&comparison);
        assert_eq!(verdicts["0.8"].policy, "quick");
        assert_eq!(
            verdicts["0.8"].losses,
            ["core-s held: 120 against 50.0 of thrifty, within the spread of seeds; \
              one other policy is better too."]
        );
        assert_eq!(
            verdicts["0.5"].losses,
            ["p99 slowdown: 2.50 against 2.00 of thrifty, within the spread of seeds."]
        );
        assert!(
            story(&comparison)
                .ends_with("It loses in 2 columns over all loads, each listed below.")
        );
    }

    #[test]
    fn who_waits_least_by_slowing_calls_does_not_win() {
        let harmful = RunSummary { violation_share: 0.38, ..row("harmful", 0.8, 1.5, 40.0) };
        let rows = vec![row("fixed", 0.8, 9.0, 100.0), harmful, row("fair", 0.8, 3.0, 50.0)];
        let comparison = Comparison::new(rows, "fixed");
        assert_eq!(best_policy(&comparison), Some("fair"));
        let text = story(&comparison);
        assert!(text.contains("of the policies under test that slow at most 1 %"), "{text}");
    }

    #[test]
    fn who_loses_nowhere_is_said_to() {
        let rows = vec![row("fixed", 0.8, 9.0, 100.0), row("quick", 0.8, 3.0, 50.0)];
        let comparison = Comparison::new(rows, "fixed");
        assert_eq!(
            verdicts(&comparison)["0.8"].losses,
            ["In no judged column is any policy but the oracle better."]
        );
    }
}
