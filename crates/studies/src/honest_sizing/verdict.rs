//! How far `windfall` came: the gap it closes, and the promises it keeps or breaks.

use serde::Serialize;
use windfall_core::statistics;
use windfall_telemetry::statistics::Estimate;
use windfall_telemetry::{Comparison, RunSummary};

use super::HEURISTICS;

/// The share of the distance from the best heuristic to what is used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapClosed {
    /// The load.
    pub load: f64,
    /// (best - windfall) / (best - used), over the sums of all seeds.
    pub share: f64,
    /// The same seed by seed: mean and interval.
    pub by_seed: Estimate,
    /// The best heuristic.
    pub best: String,
    /// Mean core-seconds it held.
    pub best_held: f64,
    /// Mean core-seconds that `windfall` held.
    pub windfall_held: f64,
    /// Mean core-seconds used.
    pub used: f64,
}

/// One promise at one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The load.
    pub load: f64,
    /// What was promised.
    pub promise: String,
    /// What was measured, in one phrase.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Mean of a column over the rows of one policy at one load.
fn mean(
    rows: &[RunSummary],
    load: f64,
    policy: &str,
    column: fn(&RunSummary) -> f64,
) -> Option<f64> {
    let own = rows.iter().filter(|row| row.load == load && row.policy == policy);
    statistics::mean(own.map(column))
}

/// The gap closed at every load at which `windfall` and a heuristic were played.
pub(super) fn gap_closed(rows: &[RunSummary]) -> Vec<GapClosed> {
    let mut loads: Vec<f64> = rows.iter().map(|row| row.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads.into_iter().filter_map(|load| gap_at(rows, load)).collect()
}

fn gap_at(rows: &[RunSummary], load: f64) -> Option<GapClosed> {
    let held = |row: &RunSummary| row.core_seconds_held;
    let (best, best_held) = HEURISTICS
        .iter()
        .filter_map(|name| Some((*name, mean(rows, load, name, held)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let windfall_held = mean(rows, load, "windfall", held)?;
    let used = mean(rows, load, "windfall", |row| row.core_seconds_used)?;
    let at = |policy: &str, seed: u64| {
        rows.iter().find(|row| row.load == load && row.policy == policy && row.seed == seed)
    };
    let ours = rows.iter().filter(|row| row.load == load && row.policy == "windfall");
    let shares: Vec<f64> = ours
        .filter_map(|our| {
            let their = at(best, our.seed)?.core_seconds_held;
            Some((their - our.core_seconds_held) / (their - our.core_seconds_used))
        })
        .collect();
    Some(GapClosed {
        load,
        share: (best_held - windfall_held) / (best_held - used),
        by_seed: Estimate::of(&shares)?,
        best: best.to_owned(),
        best_held,
        windfall_held,
        used,
    })
}

/// Every promise at every load.
pub(super) fn bars(comparison: &Comparison, gaps: &[GapClosed]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for gap in gaps {
        bars.extend(against_the_simple(comparison, gap.load));
        bars.extend(against_the_heuristics(comparison, gap));
        let share = value(comparison, gap.load, "windfall", "harvested_violation_share");
        bars.push(Bar {
            load: gap.load,
            promise: "at most 0.05 % of harvested calls slower than 1.05 x".into(),
            measured: format!("{:.4} %", 100.0 * share.unwrap_or(f64::NAN)),
            holds: share.is_some_and(|share| share <= 0.0005),
        });
        bars.push(Bar {
            load: gap.load,
            promise: "at least 60 % of the gap to what is used closed".into(),
            measured: format!("{:.1} %", 100.0 * gap.share),
            holds: gap.share >= 0.6,
        });
    }
    bars
}

fn value(comparison: &Comparison, load: f64, policy: &str, key: &str) -> Option<f64> {
    comparison.at(load).find(|one| one.policy == policy)?.mean(key)
}

fn against_the_simple(comparison: &Comparison, load: f64) -> Vec<Bar> {
    let others = ["fixed", "greedy", "ensure", "safeguard-random"];
    let mut bars = Vec::new();
    for (key, what) in
        [("slowdown_p99", "p99 slowdown"), ("core_seconds_held", "core-seconds held")]
    {
        let Some(ours) = value(comparison, load, "windfall", key) else { continue };
        let least = others
            .iter()
            .filter_map(|other| value(comparison, load, other, key))
            .fold(f64::INFINITY, f64::min);
        bars.push(Bar {
            load,
            promise: format!("lower {what} than fixed, greedy, ensure and safeguard-random"),
            measured: format!("{ours:.4} against {least:.4}"),
            holds: ours < least,
        });
    }
    bars
}

fn against_the_heuristics(comparison: &Comparison, gap: &GapClosed) -> Vec<Bar> {
    let saved = 1.0 - gap.windfall_held / gap.best_held;
    let p99 = |policy: &str| value(comparison, gap.load, policy, "slowdown_p99");
    let ours = p99("windfall").unwrap_or(f64::NAN);
    let theirs = HEURISTICS.iter().filter_map(|name| p99(name)).fold(f64::INFINITY, f64::min);
    let (most, promise) = if gap.load >= 0.8 {
        (theirs, "lower p99 slowdown than every heuristic")
    } else {
        (1.01 * theirs, "p99 slowdown within 1 % of the best heuristic")
    };
    vec![
        Bar {
            load: gap.load,
            promise: "at least 25 % fewer core-seconds held than the best heuristic".into(),
            measured: format!("{:.1} % fewer than {}", 100.0 * saved, gap.best),
            holds: saved >= 0.25,
        },
        Bar {
            load: gap.load,
            promise: promise.into(),
            measured: format!("{ours:.4} against {theirs:.4}"),
            holds: if gap.load >= 0.8 { ours < most } else { ours <= most },
        },
    ]
}
