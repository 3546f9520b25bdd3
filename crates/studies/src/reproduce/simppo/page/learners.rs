//! Sections about learners: ratios, training, every combination, what the auxiliary state is worth.

use windfall_papers::simppo::shared::arms::{Block as Settings, Networks};
use windfall_papers::simppo::shared::paired::Estimate;
use windfall_papers::simppo::{BlockRatios, Results};
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::{mean, times};

fn estimate(value: Estimate, digits: usize, is_met: bool) -> Cell {
    Cell {
        small: format!("{:.digits$} to {:.digits$}", value.low, value.high),
        worse: !is_met,
        ..Cell::from(format!("{:.digits$}", value.value))
    }
}

fn block_name(block: &BlockRatios) -> String {
    let settings = if block.settings == Settings::Published { "published PPO" } else { "our PPO" };
    let networks = if block.networks == Networks::Own { "own" } else { "shared" };
    format!("{settings}, {networks} networks")
}

/// The published ratios.
pub(super) fn ratios(results: &Results) -> Section {
    let mut table = Table::new([
        "settings",
        "SIMPPO's reward to isolated",
        "SIMPPO's p99 to isolated",
        "S-RL's p99 among others to isolated",
        "S-RL's p99 among others to SIMPPO's",
        "ENSURE's p99 to SIMPPO's",
    ]);
    table.rows.push(
        ["published", "above 0.908", "below 1.092", "up to 4.8", "2 to 4.4", ""]
            .map(Cell::from)
            .to_vec(),
    );
    for block in &results.block_ratios {
        let (reward, p99) = (block.simppo_to_isolated_reward, block.simppo_to_isolated_p99);
        let together = block.together_to_simppo_p99;
        table.rows.push(vec![
            block_name(block).into(),
            estimate(reward, 3, reward.value >= 0.908),
            estimate(p99, 3, p99.value <= 1.092),
            estimate(block.together_to_isolated_p99, 2, true),
            estimate(together, 2, together.value >= 2.0),
            estimate(block.ensure_to_simppo_p99, 2, true),
        ]);
    }
    let ensure = results.ratios.ensure_to_simppo_degradation;
    Section::new(
        "The published ratios",
        format!(
            "A number in red does not reach the published one. ENSURE's degradation against isolation is {} times SIMPPO's, as \
             published (the paper: 21.4). Intervals are over seeds and functions.",
            times(ensure)
        ),
    )
    .with(Block::Table(table))
}

/// Means over seeds, over a window of episodes.
pub(super) fn training(results: &Results) -> Section {
    let mut series = Vec::new();
    for policy in ["simppo", "s-rl", "mappo", "isolated"] {
        let curves: Vec<&[f64]> = results
            .curves
            .iter()
            .filter(|curve| curve.policy == policy)
            .map(|curve| curve.rewards.as_slice())
            .collect();
        let Some(length) = curves.iter().map(|curve| curve.len()).min() else { continue };
        let window = (length / 20).max(1);
        let points = (window..=length).step_by(window).map(|end| {
            let of: Vec<f64> =
                curves.iter().map(|curve| mean(curve[end - window..end].iter().copied())).collect();
            let (low, high) = of.iter().fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
            Point::new(end as f64, mean(of.iter().copied())).with_spread(low, high)
        });
        let name = if policy == "s-rl" { "s-rl (no auxiliary state)" } else { policy };
        series.push(Series { points: points.collect(), ..Series::line(name, []) });
    }
    let chart = Chart {
        title: "Reward of an episode while training".to_owned(),
        x: Axis::linear("episodes"),
        y: Axis::linear("sum of rewards, mean over agents"),
        series,
    };
    let mut table = Table::new([
        "combination",
        "reward on test hours",
        "less isolated",
        "p99 to isolated",
        "calls too late",
        "last fifth of training",
    ]);
    for row in &results.arms {
        let difference = Cell {
            small: format!("{:.1} to {:.1}", row.low, row.high),
            ..Cell::from(format!("{:+.1}", row.to_isolated))
        };
        table.rows.push(vec![
            row.name.clone().into(),
            format!("{:.1}", row.reward).into(),
            difference,
            format!("{:.3}", row.p99_to_isolated).into(),
            format!("{:.1} %", row.violation_percent).into(),
            format!("{:.1}", row.late_training).into(),
        ]);
    }
    Section::new(
        "Training, and every combination",
        "The curves are those as published (one network each, the published PPO); the band is from the lowest to the highest \
         seed. The table has every combination of settings, networks and learner on the same hours; isolated is the one \
         with the same settings and networks.",
    )
    .with(Block::Charts(vec![chart]))
    .with(Block::Table(table))
}

/// What the auxiliary states are worth.
pub(super) fn auxiliary(results: &Results) -> Section {
    let worth = &results.auxiliary_worth;
    let mut table =
        Table::new(["with auxiliary state", "without", "reward, with less without", "p99 ratio"]);
    for pair in &worth.pairs {
        table.rows.push(vec![
            pair.arm.clone().into(),
            pair.without.clone().into(),
            Cell {
                small: format!("{:.1} to {:.1}", pair.low, pair.high),
                worse: pair.high < 0.0,
                best: pair.low > 0.0,
                ..Cell::from(format!("{:+.1}", pair.reward_difference))
            },
            format!("{:.3}", pair.p99_ratio).into(),
        ]);
    }
    let lead = format!(
        "The same learner, settings, networks, functions and hours with the auxiliary state and without it. As published, the \
         mean field adds {:.1} to the reward of an episode ({:.1} to {:.1}).",
        worth.reward_difference, worth.low, worth.high
    );
    Section::new("What the auxiliary state is worth", lead).with(Block::Table(table))
}
