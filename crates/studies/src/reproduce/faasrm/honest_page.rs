//! The honest benchmark as text, numbers and sections.

use std::path::Path;

use crate::faasrm_training::TrainingPoint;
use crate::honest_sizing::Reading;
use serde_json::{Value, json};
use windfall_telemetry::comparison::number::{percent, short};
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Section, Series, Table};
use windfall_telemetry::{Aggregate, Comparison, RunDetail};

use super::honest::{Agent, Honest};
use super::sizing_variants;

/// The columns of the tables: metric, heading, whether it is a share.
const COLUMNS: [(&str, &str, bool); 15] = [
    ("slowdown_p99", "p99 slowdown", false),
    ("slowdown_p999", "p99.9 slowdown", false),
    ("core_seconds_held", "core-s held", false),
    ("core_seconds_granted", "core-s granted", false),
    ("core_seconds_held_back", "core-s held back", false),
    ("core_seconds_used", "core-s used", false),
    ("harvested_violation_share", "harvested over 1.05x", true),
    ("violation_depth_max", "worst degradation", true),
    ("rfet_mean", "RFET", false),
    ("bounded_slowdown_p99", "bounded p99", false),
    ("slowdown_p95", "p95", false),
    ("slowdown_p50", "p50", false),
    ("harvested_share", "harvested", true),
    ("accelerated_share", "accelerated", true),
    ("amendments", "safeguard stepped in", false),
];

impl Honest {
    /// How `windfall` fares, in a sentence or two.
    pub(super) fn headline(&self) -> String {
        let calls = if self.result.is_generated { " on GENERATED calls" } else { "" };
        let saved = |reading: Reading| {
            let variants = self.result.variants.iter();
            span(
                variants
                    .filter(move |one| one.name == reading.name())
                    .map(|one| one.saving_percent / 100.0),
            )
        };
        let closed = self.result.gap_closed.iter().map(|gap| gap.share);
        let kept = self.result.bars.iter().filter(|bar| bar.holds).count();
        format!(
            "In the honest simulator{calls} windfall holds {} fewer core-seconds (granted plus held back) than the best of \
             histogram, libra and shabari; {} with functions capped, {} without functions that sleep. It closes {} of the \
             distance to what is used; {kept} of {} promises hold.",
            saved(Reading::Full),
            saved(Reading::Capped),
            saved(Reading::NoSleepers),
            span(closed),
            self.result.bars.len()
        )
    }

    /// How every agent fares beside a coin behind the same safeguard.
    pub(super) fn verdict(&self) -> String {
        if self.agents.is_empty() {
            return "The agent of the paper took no part.".to_owned();
        }
        let calls = if self.result.is_generated { " on GENERATED calls" } else { "" };
        let sentences = self
            .agents
            .iter()
            .map(|agent| format!("{}: {}", agent.what, self.beside_a_coin(&named(&agent.file))));
        format!(
            "In the honest simulator{calls}, beside a coin behind the same safeguard: {}.",
            sentences.collect::<Vec<_>>().join(". And ")
        )
    }

    /// Core-seconds and p99 of `agent` against a coin's, load by load.
    fn beside_a_coin(&self, agent: &str) -> String {
        let coin = "safeguard-random";
        let sentences = self.result.comparison.loads().into_iter().filter_map(|load| {
            let mean = |policy: &str, key: &str| {
                self.result.comparison.at(load).find(|row| row.policy == policy)?.mean(key)
            };
            let held = "core_seconds_held";
            let change = (mean(agent, held)? / mean(coin, held)? - 1.0) * 100.0;
            let slowdown = "slowdown_p99";
            let (ours, theirs) = (short(mean(agent, slowdown)?), short(mean(coin, slowdown)?));
            Some(format!("at load {load} {change:+.1} % core-seconds, p99 {ours} against {theirs}"))
        });
        sentences.collect::<Vec<_>>().join("; ")
    }
}

/// From the least to the greatest of some shares, or the one that all of them are.
fn span(shares: impl Iterator<Item = f64> + Clone) -> String {
    let least = format!("{:.0}", 100.0 * shares.clone().fold(f64::INFINITY, f64::min));
    let most = format!("{:.0}", 100.0 * shares.fold(f64::NEG_INFINITY, f64::max));
    if least == most { format!("{most} %") } else { format!("{least} to {most} %") }
}

fn named(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) fn text(honest: &Honest) -> String {
    let mut text = format!(
        "\nthe honest benchmark: {}{}\n",
        honest.result.workload,
        if honest.result.is_generated { " (GENERATED)" } else { "" }
    );
    text += &honest.result.comparison.to_text();
    for gap in &honest.result.gap_closed {
        text += &format!("\ngap closed at load {}: {} %", gap.load, percent(gap.share));
    }
    text += "\n";
    text += &sizing_variants::text(&honest.result);
    for bar in &honest.result.bars {
        let holds = if bar.holds { "holds " } else { "MISSED" };
        text += &format!("\n{holds} load {}: {} ({})", bar.load, bar.promise, bar.measured);
    }
    if !honest.result.ablation.is_empty() {
        text += "\n\nwhat each idea adds (windfall - without one, + with one that was dropped), on part of the hours\n";
        text += &Comparison::new(honest.result.ablation.clone(), "windfall").to_text();
    }
    let files: Vec<String> =
        honest.agents.iter().map(|agent| agent.file.display().to_string()).collect();
    text += &format!("\n\n{}", honest.headline());
    text += &format!("\n\n{}\n", honest.verdict());
    if files.is_empty() { text } else { format!("{text}checkpoints: {}\n", files.join(", ")) }
}

/// Adds the keys that scripts rely on.
pub(super) fn add_numbers(honest: &Honest, numbers: &mut Value) {
    numbers["honest"] = json!(honest.result.comparison.rows);
    numbers["honest_workload"] = json!(honest.result.workload);
    numbers["honest_is_generated"] = json!(honest.result.is_generated);
    numbers["gap_closed"] = json!(honest.result.gap_closed);
    numbers["bars"] = json!(honest.result.bars);
    numbers["variants"] = json!(honest.result.variants);
    numbers["over_commit"] = json!(honest.result.over_commit);
    numbers["ablation"] = json!(honest.result.ablation);
    let agent = |agent: &Agent| {
        json!({
            "policy": named(&agent.file), "what": agent.what,
            "file": agent.file.display().to_string(), "training": agent.curve,
        })
    };
    numbers["agents"] = honest.agents.iter().map(agent).collect();
}

pub(super) fn sections(honest: &Honest) -> Vec<Section> {
    let lead = format!(
        "{}{}. Continuous time, queues, cold starts, memory kills, live demand; functions and hours that nothing was \
         tuned on. Means over seeds with 95 % intervals; slowdowns are geometric means.",
        if honest.result.is_generated { "GENERATED calls: " } else { "" },
        honest.result.workload
    );
    let mut tables =
        Section::new("The honest benchmark", lead).with(Block::Paragraph(honest.verdict()));
    for load in honest.result.comparison.loads() {
        tables.blocks.push(Block::Paragraph(format!("Load {load}")));
        tables.blocks.push(Block::Table(table(honest, load)));
    }
    let mut sections = vec![tables, distributions(honest)];
    sections.extend(sizing_variants::sections(&honest.result));
    sections.extend(promises(honest));
    sections.extend(ablation(honest));
    if honest.agents.iter().any(|agent| !agent.curve.is_empty()) {
        sections.push(learning(&honest.agents));
    }
    sections
}

fn table(honest: &Honest, load: f64) -> Table {
    let heads = COLUMNS.map(|(_, head, _)| head);
    let mut table = Table::new(std::iter::once("policy").chain(heads));
    for row in honest.result.comparison.at(load) {
        let mut cells = vec![Cell::from(row.policy.as_str())];
        cells.extend(COLUMNS.iter().map(|(key, _, is_share)| cell(row, key, *is_share)));
        table.rows.push(cells);
    }
    table
}

fn cell(row: &Aggregate, key: &str, is_share: bool) -> Cell {
    let Some(estimate) = row.metrics.get(key) else { return Cell::from("-") };
    let shown = |value: f64| if is_share { format!("{} %", percent(value)) } else { short(value) };
    let has_spread = estimate.low < estimate.high;
    Cell {
        small: if has_spread {
            format!("{} to {}", shown(estimate.low), shown(estimate.high))
        } else {
            String::new()
        },
        ..Cell::from(shown(estimate.mean))
    }
}

fn distributions(honest: &Honest) -> Section {
    let lead = "One seed at each load: the share of calls at most this slow, at most this long relative to the user's \
                size, and at most this long from arrival to end.";
    let mut charts = Vec::new();
    for load in honest.result.comparison.loads() {
        let first = honest
            .result
            .details
            .iter()
            .filter(|run| run.label.load == load && run.label.seed == 1);
        let runs: Vec<&RunDetail> = first.collect();
        let chart = |title: String, label: &str, of: fn(&RunDetail) -> &[(f64, f64)]| Chart {
            title,
            x: Axis::log(label),
            y: Axis::linear("share of calls"),
            series: runs
                .iter()
                .map(|run| Series::line(&run.label.policy, of(run).iter().copied()))
                .collect(),
        };
        charts.push(chart(format!("Slowdown at load {load}"), "slowdown", |run| &run.slowdown_cdf));
        charts.push(chart(format!("RFET at load {load}"), "RFET", |run| &run.rfet_cdf));
        let title = format!("Execution time with waiting at load {load}");
        charts.push(chart(title, "seconds", |run| &run.latency_cdf));
    }
    Section::new("Honest distributions", lead).with(Block::Charts(charts))
}

/// What was promised of `windfall`, where it took part.
fn promises(honest: &Honest) -> Option<Section> {
    if honest.result.bars.is_empty() {
        return None;
    }
    let mut table = Table::new(["load", "promise", "measured", "holds"]);
    for bar in &honest.result.bars {
        let holds = Cell { worse: !bar.holds, ..Cell::from(if bar.holds { "yes" } else { "no" }) };
        let (promise, measured) = (bar.promise.as_str(), bar.measured.as_str());
        table.rows.push(vec![bar.load.to_string().into(), promise.into(), measured.into(), holds]);
    }
    let gap = |load: f64, share: f64| {
        (format!("gap closed at load {load}"), format!("{} %", percent(share)))
    };
    let gaps =
        honest.result.gap_closed.iter().map(|closed| gap(closed.load, closed.share)).collect();
    let lead =
        "The gap is the distance in core-seconds held from the best heuristic to what is used.";
    Some(Section::new("windfall", lead).with(Block::Facts(gaps)).with(Block::Table(table)))
}

/// What each idea of `windfall` adds, where that was asked for.
fn ablation(honest: &Honest) -> Option<Section> {
    if honest.result.ablation.is_empty() {
        return None;
    }
    let comparison = Comparison::new(honest.result.ablation.clone(), "windfall");
    let columns = ["slowdown_p99", "rfet_mean", "harvested_violation_share", "core_seconds_held"];
    let mut table =
        Table::new(["load", "policy", "p99", "RFET", "harvested over 1.05x", "core-s held"]);
    for row in &comparison.aggregates {
        let mut cells = vec![Cell::from(row.load.to_string()), Cell::from(row.policy.as_str())];
        cells.extend(columns.map(|key| cell(row, key, key.ends_with("share"))));
        table.rows.push(cells);
    }
    let lead = "windfall without single ideas (-), and with ones that were dropped (+), on the same calls: the first \
                hour of the test hours, two seeds.";
    Some(Section::new("What each idea adds", lead).with(Block::Table(table)))
}

fn learning(agents: &[Agent]) -> Section {
    let chart = |title: &str, label: &str, of: fn(&TrainingPoint) -> f64| Chart {
        title: title.to_owned(),
        x: Axis::linear("calls played"),
        y: Axis::linear(label),
        series: agents
            .iter()
            .filter(|agent| !agent.curve.is_empty())
            .map(|agent| {
                let points = agent.curve.iter().map(|point| (point.calls as f64, of(point)));
                Series::line(named(&agent.file), points)
            })
            .collect(),
    };
    let lead = "Training in the simulator, on the training half. Each reward is given to the decision that caused it. \
                Each iteration plays all loads. Rewards of two agents cannot be compared where only one pays for cores.";
    Section::new("How the agent learned", lead).with(Block::Charts(vec![
        chart("Reward of a decision that had a choice", "mean reward", |point| point.reward),
        chart("Core-seconds granted over used", "ratio", |point| point.granted_over_used),
        chart("Entropy of the choices", "nats", |point| point.entropy),
        chart("RFET", "mean", |point| point.rfet),
    ]))
}
