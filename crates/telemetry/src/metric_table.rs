//! All metrics of a run in one place: name, unit, which way is better, and what it means. Tables,
//! reports and the reference page are made from it.

use crate::summary::RunSummary;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// It describes the run and judges nothing.
    Neither,
}

impl Direction {
    /// In words, for tables.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Lower => "lower is better",
            Self::Higher => "higher is better",
            Self::Neither => "describes",
        }
    }
}

/// One column of [`RunSummary`].
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The column's name in files.
    pub key: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// The unit, `1` for ratios and shares.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// Whether seeds differ by factors rather than by amounts, so that logarithms are averaged.
    pub is_geometric: bool,
    /// What it means, in one or two sentences.
    pub meaning: &'static str,
    /// Its number in a row, 0 where it has no meaning; see [`of`](Self::of).
    pub read: fn(&RunSummary) -> f64,
}

impl Metric {
    /// Its value in a row, or nothing where there is no call to say it of.
    ///
    /// Ratios and times are about calls that were answered. A run that answered none has a violation
    /// share of 0 in its row, and must not win by it; nor may a policy that harvests nobody win the
    /// promise to the harvested.
    pub fn of(&self, row: &RunSummary) -> Option<f64> {
        let is_about_answers = matches!(self.unit, "1" | "seconds");
        let compared = row.completed - row.calls_without_baseline;
        let has_none = match self.key {
            "harvested_violation_share" => row.harvested_share == 0.0 || compared == 0,
            key if needs_baseline(key) => compared == 0,
            _ => is_about_answers && row.completed == 0,
        };
        (row.calls > 0 && !has_none).then(|| (self.read)(row)).filter(|value| !value.is_nan())
    }
}

/// Whether a metric compares calls with themselves at the user's size.
fn needs_baseline(key: &str) -> bool {
    ["rfet_", "slowdown_", "bounded_slowdown_", "violation_"].iter().any(|of| key.starts_with(of))
}

/// The metric with this key.
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

macro_rules! metrics {
    ($($key:ident, $label:literal, $unit:literal, $direction:ident, $mean:ident, $meaning:literal;)*) => {
        /// Every number of a [`RunSummary`], in its order.
        pub const METRICS: &[Metric] = &[$(Metric {
            key: stringify!($key),
            label: $label,
            unit: $unit,
            direction: Direction::$direction,
            is_geometric: metrics!(@$mean),
            meaning: $meaning,
            read: |row| row.$key as f64,
        }),*];
    };
    (@arithmetic) => { false };
    (@geometric) => { true };
}

metrics! {
    calls, "calls", "calls", Neither, arithmetic,
        "Calls that arrived after the warm-up and ended, in whatever way.";
    rfet_mean, "mean RFET", "1", Lower, arithmetic,
        "Execution time relative to the user's allocation: run time over the run time the call would have had alone at the size its user reserved. Below 1 the call was accelerated. Waiting does not count.";
    slowdown_p50, "p50 slowdown", "1", Lower, geometric,
        "Median of the time from arrival to end, waiting and cold start included, over the run time alone at the user's size.";
    slowdown_p95, "p95 slowdown", "1", Lower, geometric,
        "The slowdown that 95 of 100 calls stay below.";
    slowdown_p99, "p99 slowdown", "1", Lower, geometric,
        "The slowdown that 99 of 100 calls stay below. Often decided by calls of a millisecond behind one burst; read it with the bounded form.";
    bounded_slowdown_p99, "bounded p99", "1", Lower, geometric,
        "p99 of the slowdown with a denominator of at least 100 ms and a value of at least 1, so that waits no person would notice do not decide it.";
    violation_share, "violations", "1", Lower, arithmetic,
        "Share of completed calls that ran more than 5 % longer than alone at the user's size.";
    harvested_violation_share, "violations, harvested", "1", Lower, arithmetic,
        "The same share among the calls that held less than their reservation at some time: the promise to those who gave.";
    cold_share, "cold starts", "1", Lower, arithmetic,
        "Share of completed calls that waited for a new instance.";
    oom_kills, "OOM kills", "kills", Lower, arithmetic,
        "Attempts killed because memory crossed the limit; each is tried once more at the user's size.";
    core_seconds_granted, "core-s granted", "core-seconds", Lower, arithmetic,
        "CPU granted to running calls and to instances that start ahead of any, summed over time.";
    core_seconds_used, "core-s used", "core-seconds", Neither, arithmetic,
        "CPU in use, summed over time: the floor under what must be granted.";
    mib_seconds_granted, "MiB-s granted", "MiB-seconds", Lower, arithmetic,
        "Memory held by running calls, summed over time.";
    mib_seconds_used, "MiB-s used", "MiB-seconds", Neither, arithmetic,
        "Memory in use, summed over time.";
    instance_seconds, "instance-s", "instance-seconds", Lower, arithmetic,
        "Instances, starting and idle ones included, summed over time.";
    changes_per_hour, "changes/h", "1/hour", Lower, arithmetic,
        "Changes of running calls' grants and of instances, per hour of measured time.";
    slowdown_p999, "p99.9 slowdown", "1", Lower, geometric,
        "The slowdown that 999 of 1000 calls stay below: what a p99 does not show.";
    bounded_slowdown_p999, "bounded p99.9", "1", Lower, geometric,
        "p99.9 of the bounded slowdown.";
    core_seconds_held, "core-s held", "core-seconds", Lower, arithmetic,
        "CPU that new calls could not have, summed over time: core-seconds granted plus core-seconds held back. The headline of cost.";
    core_seconds_held_back, "core-s held back", "core-seconds", Neither, arithmetic,
        "CPU that nodes kept out of new calls' reach for running calls, beside what these were granted, summed over time. At most what is free counts: with 3 cores to keep and 2 free, 2 are held back.";
    completed, "completed", "calls", Higher, arithmetic,
        "Calls that ended with an answer.";
    failed, "failed", "calls", Lower, arithmetic,
        "Calls lost with their node or killed at the user's own size.";
    rejected, "rejected", "calls", Lower, arithmetic,
        "Calls turned away because the queue was full.";
    warm_up_calls, "warm-up calls", "calls", Neither, arithmetic,
        "Calls that arrived before the measurement began; they count nowhere else.";
    measured_hours, "measured time", "hours", Neither, arithmetic,
        "Time from the end of the warm-up to the last event.";
    rfet_p50, "p50 RFET", "1", Lower, arithmetic,
        "Median execution time relative to the user's allocation.";
    rfet_p95, "p95 RFET", "1", Lower, arithmetic,
        "The relative execution time that 95 of 100 calls stay below.";
    rfet_p99, "p99 RFET", "1", Lower, arithmetic,
        "The relative execution time that 99 of 100 calls stay below.";
    slowdown_mean, "mean slowdown", "1", Lower, geometric,
        "Mean slowdown; a few very late calls decide it.";
    slowdown_max, "worst slowdown", "1", Lower, geometric,
        "The slowdown of the one call that fared worst.";
    latency_p50_seconds, "p50 latency", "seconds", Lower, geometric,
        "Median time from arrival to end.";
    latency_p95_seconds, "p95 latency", "seconds", Lower, geometric,
        "The latency that 95 of 100 calls stay below.";
    latency_p99_seconds, "p99 latency", "seconds", Lower, geometric,
        "The latency that 99 of 100 calls stay below.";
    violation_depth_mean, "mean depth", "1", Lower, arithmetic,
        "How much longer violated calls ran, on average: 0.2 is 20 % over the run time at the user's size.";
    violation_depth_max, "worst depth", "1", Lower, arithmetic,
        "How much longer the worst violated call ran.";
    harvested_share, "harvested", "1", Neither, arithmetic,
        "Share of completed calls that held less than their reservation at some time.";
    accelerated_share, "accelerated", "1", Neither, arithmetic,
        "Share of completed calls that held more than their reservation at some time.";
    idle_mib_seconds, "idle MiB-s", "MiB-seconds", Lower, arithmetic,
        "Memory held by instances without a call, summed over time.";
    looks, "looks", "looks", Neither, arithmetic,
        "How often running calls were looked at.";
    fallbacks, "fallbacks", "decisions", Lower, arithmetic,
        "Decisions made by the fallback because the policy failed.";
    amendments, "amendments", "amendments", Neither, arithmetic,
        "How often a safeguard stepped in.";
    calls_without_baseline, "no baseline", "calls", Neither, arithmetic,
        "Completed calls of which nobody knows how long they would have run alone at the user's size: all of them on a real platform. RFET, slowdowns and violations leave them out.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_row_is_in_the_table_and_in_its_order() {
        let row = serde_json::to_value(RunSummary::default()).unwrap();
        let labels = ["policy", "load", "seed"];
        let keys: Vec<&String> =
            row.as_object().unwrap().keys().filter(|key| !labels.contains(&key.as_str())).collect();
        let mut table: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
        table.sort_unstable();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, table);
    }

    #[test]
    fn what_no_call_says_has_no_value() {
        let idle = RunSummary::default();
        assert!(METRICS.iter().all(|metric| metric.of(&idle).is_none()));
        let turned_away = RunSummary { calls: 9, rejected: 9, ..RunSummary::default() };
        assert_eq!(metric("violation_share").unwrap().of(&turned_away), None);
        assert_eq!(metric("latency_p99_seconds").unwrap().of(&turned_away), None);
        assert_eq!(metric("rejected").unwrap().of(&turned_away), Some(9.0));
        let plain = RunSummary { calls: 9, completed: 9, ..RunSummary::default() };
        assert_eq!(metric("violation_share").unwrap().of(&plain), Some(0.0));
        assert_eq!(metric("harvested_violation_share").unwrap().of(&plain), None);
    }

    #[test]
    fn a_metric_is_found_by_its_key() {
        assert_eq!(metric("oom_kills").unwrap().unit, "kills");
        assert!(metric("beauty").is_none());
        let row = RunSummary { rejected: 7, ..RunSummary::default() };
        assert_eq!((metric("rejected").unwrap().read)(&row), 7.0);
    }
}
