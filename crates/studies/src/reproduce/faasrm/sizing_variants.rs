//! What sizing saves on other readings of the trace, and incumbents at their best over-commit.

use crate::honest_sizing::{HonestResult, OverCommitted, Variant};
use windfall_telemetry::comparison::number::{percent, short};
use windfall_telemetry::document::{Block, Cell, Section, Table};

const SAVING: &str = "Core-seconds held (granted plus held back) by windfall against the incumbent that holds fewest, \
                      without over-commit, of histogram, libra and shabari, among those that slow at most 1 % of their \
                      calls. Intervals draw seeds and functions again.";
const OVER_COMMIT: &str = "Every policy at the over-commit with the lowest bounded p99 at which at most 0.1 % of its \
                           calls run more than 5 % longer, on the first test hour. At 1 nothing is over-committed.";

const SAVING_HEADS: [&str; 8] = [
    "reading",
    "load",
    "saved",
    "95 % interval",
    "best incumbent",
    "p99 (ours / theirs)",
    "p99.9 (ours / theirs)",
    "violations (ours / theirs)",
];
const OVER_COMMIT_HEADS: [&str; 8] =
    ["load", "policy", "over-commit", "bounded p99", "p99", "p99.9", "violations", "core-s held"];

fn saving(one: &Variant) -> [String; 8] {
    let both = |ours: f64, theirs: f64| format!("{} / {}", short(ours), short(theirs));
    let (ours, theirs) = (&one.windfall, &one.incumbent);
    [
        one.name.to_owned(),
        one.load.to_string(),
        format!("{:.1} %", one.saving_percent),
        format!("{:.1} to {:.1}", one.saving_low, one.saving_high),
        one.best.clone(),
        both(ours.slowdown_p99, theirs.slowdown_p99),
        both(ours.slowdown_p999, theirs.slowdown_p999),
        format!("{} / {} %", percent(ours.violation_share), percent(theirs.violation_share)),
    ]
}

fn over_committed(one: &OverCommitted) -> [String; 8] {
    let service = &one.service;
    [
        one.load.to_string(),
        one.policy.to_owned(),
        one.factor.to_string(),
        short(service.bounded_slowdown_p99),
        short(service.slowdown_p99),
        short(service.slowdown_p999),
        format!("{} %", percent(service.violation_share)),
        short(service.core_seconds_held),
    ]
}

/// The rows to show: each policy at its best, by load.
fn best(result: &HonestResult) -> Vec<&OverCommitted> {
    let mut best: Vec<&OverCommitted> =
        result.over_commit.iter().filter(|one| one.is_best).collect();
    best.sort_by(|a, b| a.load.total_cmp(&b.load));
    best
}

/// Both tables for a terminal.
pub(super) fn text(result: &HonestResult) -> String {
    let mut text = String::from(
        "\ncore-seconds held (granted plus held back), windfall against the best incumbent\n",
    );
    for one in &result.variants {
        let [name, load, saved, interval, best, p99, p999, violations] = saving(one);
        text += &format!(
            "  {name:<12} load {load:<4} {saved:>7} fewer [{interval}] than {best:<10} p99 {p99}  p99.9 {p999}  \
             violations {violations}\n"
        );
    }
    for (place, one) in best(result).into_iter().enumerate() {
        if place == 0 {
            text += "\nat the best over-commit of each policy, first test hour\n";
        }
        let [load, policy, factor, bounded, p99, p999, violations, held] = over_committed(one);
        text += &format!(
            "  load {load:<4} {policy:<10} x{factor:<4} bounded p99 {bounded:<6} p99 {p99:<6} p99.9 {p999:<6} \
             violations {violations:<8} core-s {held}\n"
        );
    }
    text + "\n"
}

/// Both tables for a page, where there are any.
pub(super) fn sections(result: &HonestResult) -> Vec<Section> {
    let row = |cells: [String; 8]| cells.iter().map(|cell| Cell::from(cell.as_str())).collect();
    let mut sections = Vec::new();
    if !result.variants.is_empty() {
        let mut table = Table::new(SAVING_HEADS);
        table.rows = result.variants.iter().map(|one| row(saving(one))).collect();
        sections.push(
            Section::new("What is saved, and what it hangs on", SAVING).with(Block::Table(table)),
        );
    }
    if !result.over_commit.is_empty() {
        let mut table = Table::new(OVER_COMMIT_HEADS);
        table.rows = best(result).into_iter().map(|one| row(over_committed(one))).collect();
        sections
            .push(Section::new("At the best over-commit", OVER_COMMIT).with(Block::Table(table)));
    }
    sections
}
