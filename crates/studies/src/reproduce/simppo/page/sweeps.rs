//! Sections about other loads and about growth.

use windfall_papers::simppo::Results;
use windfall_papers::simppo::growth::GrowthStep;
use windfall_papers::simppo::load_sweep::LoadRow;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Section, Series, Table};

use super::times;

/// Policies of the charts.
const SHOWN: [&str; 7] =
    ["isolated", "simppo", "s-rl", "mappo", "ensure", "queueing, calibrated", "oracle"];

fn ratios_by_load(results: &Results) -> Table {
    let mut table = Table::new([
        "load",
        "reward to isolated",
        "p99 to isolated",
        "oracle's p99 to isolated",
        "S-RL's p99 to SIMPPO's",
        "ENSURE's degradation to SIMPPO's",
        "calibrated queueing's reward",
        "SIMPPO's reward",
    ]);
    for at in &results.load_ratios {
        let row = |policy: &str| {
            results.load_sweep.iter().find(|row| row.load == at.load && row.policy == policy)
        };
        let reward = |policy: &str| row(policy).map_or(0.0, |row| row.reward);
        let judged = |value: f64, digits: usize, is_met: bool| Cell {
            worse: !is_met,
            ..Cell::from(format!("{value:.digits$}"))
        };
        let ratios = &at.ratios;
        let (p99, ensure) = (ratios.simppo_to_isolated_p99, ratios.ensure_to_simppo_degradation);
        let kept = ratios.simppo_to_isolated_reward;
        let together = ratios.together_to_simppo_p99;
        table.rows.push(vec![
            format!("{:.2}", at.load).into(),
            judged(kept, 3, kept >= 0.908),
            judged(p99, 3, p99 <= 1.092),
            format!("{:.3}", row("oracle").map_or(0.0, |row| row.p99_to_isolated)).into(),
            judged(together, 2, together >= 2.0),
            Cell { worse: ensure < 10.0, ..Cell::from(times(ensure)) },
            format!("{:.1}", reward("queueing, calibrated")).into(),
            format!("{:.1}", reward("simppo")).into(),
        ]);
    }
    table
}

/// The same policies where functions are called more or less often.
pub(super) fn loads(results: &Results) -> Section {
    let chart = |title: &str, y: Axis, of: &dyn Fn(&LoadRow) -> f64| {
        let line = |name: &&str| {
            let rows = results.load_sweep.iter().filter(|row| row.policy == *name);
            Series::line(*name, rows.map(|row| (row.load, of(row))))
        };
        let series = SHOWN.iter().map(line).collect();
        Chart { title: title.to_owned(), x: Axis::linear("mean load of the cores"), y, series }
    };
    Section::new(
        "Other loads",
        "What was trained at the load of the gate, where functions are called more or less often on the same nodes. Isolated \
         S-RL is called as often, alone.",
    )
    .with(Block::Charts(vec![
        chart("Reward", Axis::linear("reward of an episode"), &|row| row.reward),
        chart("p99 against isolation", Axis::log("ratio"), &|row| row.p99_to_isolated),
    ]))
    .with(Block::Table(ratios_by_load(results)))
}

/// From few functions to many on the same nodes.
pub(super) fn growth(results: &Results) -> Section {
    let last = results.growth.last().map_or(1.0, |step| step.functions as f64);
    let chart = |title: &str, label: &str, bar: f64, values: Vec<(f64, f64)>| Chart {
        title: title.to_owned(),
        x: Axis::from_zero("functions"),
        y: Axis::from_zero(label),
        series: vec![
            Series::line("simppo", values),
            Series::reference("published at 110", bar, 0.0, last),
        ],
    };
    let of = |value: &dyn Fn(&GrowthStep) -> f64| {
        results.growth.iter().map(|step| (step.functions as f64, value(step))).collect()
    };
    let mut table = Table::new([
        "functions",
        "drop",
        "drop of those that were there",
        "episodes",
        "reward at first",
        "once stable",
    ]);
    for step in &results.growth {
        table.rows.push(vec![
            step.functions.to_string().into(),
            Cell {
                worse: step.drop_percent > 3.0,
                ..Cell::from(format!("{:.2} %", step.drop_percent))
            },
            format!("{:.2} %", step.incumbents_drop_percent).into(),
            Cell { worse: !step.is_stable, ..Cell::from(step.episodes.to_string()) },
            format!("{:.1}", step.first).into(),
            format!("{:.1}", step.stable).into(),
        ]);
    }
    Section::new(
        "Growth on the same nodes",
        "Newcomers begin with the weights of an agent that is there; the work of all functions together stays the same. Drop: \
         what is lost at that moment of the reward that the larger team has once it is stable, on the same test episodes; \
         negative where newcomers do better before retraining than after. Episodes in red: not stable within those allowed.",
    )
    .with(Block::Charts(vec![
        chart("Reward drop", "percent", 3.0, of(&|step| step.drop_percent)),
        chart("Retraining", "episodes until stable", 47.2, of(&|step| step.episodes as f64)),
    ]))
    .with(Block::Table(table))
}
