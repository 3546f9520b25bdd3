//! What came out of SIMPPO, as text and as a page.

use serde_json::json;
use windfall_core::statistics::{self, population_deviation};
use windfall_papers::simppo::load_sweep::LoadRow;
use windfall_papers::simppo::online::OnlineRow;
use windfall_papers::simppo::{ReproduceSettings, Results};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::{Cost, Request};

mod story;
mod terminal;

use story::story;
pub(super) use terminal::text;

/// The order of tables.
const POLICIES: [&str; 12] = [
    "isolated",
    "s-rl",
    "mappo",
    "simppo",
    "residual",
    "ensure",
    "hpa",
    "queueing",
    "windfall-scaling",
    "fixed",
    "oracle",
    "random",
];

/// One policy over all functions and seeds.
struct Summary {
    policy: &'static str,
    reward: f64,
    /// Standard deviation over seeds of the mean over functions; of one seed there is none.
    spread: Option<f64>,
    p99_to_slo: f64,
    preserved: f64,
    utilisation: f64,
    core_seconds: f64,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    statistics::mean(values).unwrap_or(0.0)
}

fn summaries(results: &Results) -> Vec<Summary> {
    let summary = |policy: &'static str| {
        let rows: Vec<&OnlineRow> =
            results.online.iter().filter(|row| row.policy == policy).collect();
        let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let of_seed =
            |seed: &u64| mean(rows.iter().filter(|row| row.seed == *seed).map(|row| row.reward));
        let per_seed: Vec<f64> = seeds.iter().map(of_seed).collect();
        let reward = mean(per_seed.iter().copied());
        let spread = population_deviation(&per_seed).filter(|_| per_seed.len() > 1);
        let ratio = |row: &&OnlineRow| (row.p99_ms / row.slo_ms).max(1e-9).ln();
        Summary {
            policy,
            reward,
            spread,
            p99_to_slo: mean(rows.iter().map(ratio)).exp(),
            preserved: mean(rows.iter().map(|row| row.slo_preserved)),
            utilisation: mean(rows.iter().map(|row| row.utilisation)),
            core_seconds: mean(rows.iter().map(|row| row.core_seconds_granted)),
        }
    };
    let was_run = |policy: &&str| results.online.iter().any(|row| row.policy == *policy);
    POLICIES.into_iter().filter(was_run).map(summary).collect()
}

/// Where SIMPPO degrades by next to nothing, the ratio says nothing but that.
fn times(ratio: f64) -> String {
    if ratio > 500.0 { "above 500".to_owned() } else { format!("{ratio:.1}") }
}

fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn page(
    request: &Request<'_>,
    results: &Results,
    cost: Cost,
    settings: &ReproduceSettings,
) -> Document {
    Document {
        context: request.context(
            "SIMPPO: many agents, one virtual neighbour",
            json!({
                "seeds": settings.seeds.len(),
                "functions": settings.sizes.functions,
                "training episodes": settings.sizes.episodes,
                "test episodes": settings.sizes.tests,
                "ticks per episode": 200,
                "mean load of the cores": 0.6,
            }),
        ),
        subtitle: format!(
            "{}, {}, {} of training",
            counted(settings.sizes.functions, "function"),
            counted(settings.seeds.len(), "seed"),
            counted(settings.sizes.episodes as usize, "episode")
        ),
        story: story(results),
        sections: vec![
            online(results),
            ratios(results),
            training(results),
            per_function(results),
            sweep(results),
            growth(results),
            chain(results),
            faults(results, cost),
        ],
        ..Document::default()
    }
}

fn online(results: &Results) -> Section {
    let mut table = Table::new([
        "policy",
        "reward",
        "p99 / objective",
        "SLO preserved",
        "CPU utilisation",
        "core-seconds held",
    ]);
    let all = summaries(results);
    let learned = |name: &str| !["oracle", "isolated"].contains(&name);
    let best = all.iter().filter(|one| learned(one.policy)).map(|one| one.reward);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    for one in &all {
        table.rows.push(vec![
            one.policy.into(),
            Cell {
                text: format!("{:.1}", one.reward),
                small: one.spread.map_or(String::new(), |spread| format!("sd {spread:.1}")),
                best: learned(one.policy) && one.reward == best,
                worse: false,
            },
            format!("{:.2}", one.p99_to_slo).into(),
            format!("{:.3}", one.preserved).into(),
            format!("{:.3}", one.utilisation).into(),
            format!("{:.0}", one.core_seconds).into(),
        ]);
    }
    Section::new(
        "Online performance",
        "Every policy on hours nobody trained on, means over functions and seeds; p99 over the objective is a \
         geometric mean. Isolated runs each function alone; the oracle knows the load to come.",
    )
    .with(Block::Table(table))
}

fn ratios(results: &Results) -> Section {
    let ratios = &results.ratios;
    let mut table = Table::new(["ratio", "here", "published"]);
    let mut push = |name: &str, value: String, published: &str, is_met: bool| {
        let cell = Cell { worse: !is_met, ..Cell::from(value) };
        table.rows.push(vec![name.into(), cell, published.into()]);
    };
    let reward = ratios.simppo_to_isolated_reward;
    push(
        "SIMPPO's reward to isolated S-RL's",
        format!("{reward:.3}"),
        "above 0.908",
        reward >= 0.908,
    );
    let p99 = ratios.simppo_to_isolated_p99;
    push("SIMPPO's p99 to isolated S-RL's", format!("{p99:.3}"), "below 1.092", p99 <= 1.092);
    let together = ratios.together_to_simppo_p99;
    push(
        "S-RL's p99 among others to SIMPPO's",
        format!("{together:.2}"),
        "2 to 4.4",
        together >= 2.0,
    );
    let ensure = ratios.ensure_to_simppo_degradation;
    push("ENSURE's degradation to SIMPPO's", times(ensure), "21.4", ensure >= 10.0);
    Section::new(
        "The published ratios",
        "A number in red does not reach the published one; the sweep over load below shows what it depends on.",
    )
    .with(Block::Table(table))
}

/// Means over seeds, over a window of episodes.
fn training(results: &Results) -> Section {
    let mut series = Vec::new();
    for policy in ["simppo", "s-rl", "mappo", "residual", "isolated"] {
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
        "variant",
        "reward on test hours",
        "p99 to isolated",
        "reward of the first fifth",
    ]);
    for row in &results.variants {
        table.rows.push(vec![
            row.variant.clone().into(),
            format!("{:.1}", row.reward).into(),
            format!("{:.3}", row.p99_to_isolated).into(),
            format!("{:.1}", row.early_reward).into(),
        ]);
    }
    Section::new(
        "Training",
        "SIMPPO against its ablation without auxiliary state, which is S-RL among others; the band is from the \
         lowest to the highest seed. The table compares auxiliary states and one network for all on the same seeds.",
    )
    .with(Block::Charts(vec![chart]))
    .with(Block::Table(table))
}

/// Means over seeds of one number by function and policy; everyone but the random one.
fn by_function(
    results: &Results,
    of: &dyn Fn(&OnlineRow) -> f64,
) -> Vec<(String, Vec<(&'static str, f64)>)> {
    let mut names: Vec<&str> = Vec::new();
    for row in &results.online {
        if !names.contains(&row.function.as_str()) {
            names.push(&row.function);
        }
    }
    let number = |name: &str, policy: &'static str| {
        let rows = results.online.iter();
        let own = rows.filter(|row| row.policy == policy && row.function == name);
        (policy, mean(own.map(of)))
    };
    let shown = &POLICIES[..11];
    let numbers = |name: &&str| shown.iter().map(|policy| number(name, policy)).collect();
    names.iter().map(|name| ((*name).to_owned(), numbers(name))).collect()
}

fn per_function(results: &Results) -> Section {
    let table = |of: &dyn Fn(&OnlineRow) -> f64, digits: usize| {
        let shown = POLICIES[..11].iter().copied();
        let mut table = Table::new(["function"].into_iter().chain(shown));
        for (name, numbers) in by_function(results, of) {
            let mut row: Vec<Cell> = vec![name.into()];
            row.extend(numbers.iter().map(|(_, value)| Cell::from(format!("{value:.digits$}"))));
            table.rows.push(row);
        }
        Block::Table(table)
    };
    Section::new("Function by function", "First p99 over the objective, then reward of an episode.")
        .with(table(&p99_to_objective, 2))
        .with(table(&|row| row.reward, 1))
}

fn p99_to_objective(row: &OnlineRow) -> f64 {
    row.p99_ms / row.slo_ms
}

/// The published ratios at every load, and who earns what.
fn ratios_by_load(results: &Results) -> Table {
    let mut table = Table::new([
        "load",
        "reward to isolated",
        "p99 to isolated",
        "oracle's p99 to isolated",
        "S-RL's p99 to SIMPPO's",
        "ENSURE's degradation to SIMPPO's",
        "queueing's reward",
        "HPA's reward",
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
            format!("{:.1}", at.load).into(),
            judged(kept, 3, kept >= 0.908),
            judged(p99, 3, p99 <= 1.092),
            format!("{:.3}", row("oracle").map_or(0.0, |row| row.p99_to_isolated)).into(),
            judged(together, 2, together >= 2.0),
            Cell { worse: ensure < 10.0, ..Cell::from(times(ensure)) },
            format!("{:.1}", reward("queueing")).into(),
            format!("{:.1}", reward("hpa")).into(),
            format!("{:.1}", reward("simppo")).into(),
        ]);
    }
    table
}

fn sweep(results: &Results) -> Section {
    let mut names: Vec<&str> = Vec::new();
    for row in &results.load_sweep {
        if !names.contains(&row.policy.as_str()) {
            names.push(&row.policy);
        }
    }
    let chart = |title: &str, y: Axis, of: &dyn Fn(&LoadRow) -> f64| {
        let line = |name: &&str| {
            let rows = results.load_sweep.iter().filter(|row| row.policy == *name);
            Series::line(*name, rows.map(|row| (row.load, of(row))))
        };
        let series = names.iter().filter(|name| **name != "random").map(line).collect();
        Chart { title: title.to_owned(), x: Axis::linear("mean load of the cores"), y, series }
    };
    Section::new(
        "Other loads",
        "The same policies, trained at loads of 0.6 to 0.9, on clusters with more or fewer cores. Isolated S-RL has a node of \
         its own at every load. What even the oracle's p99 loses against isolation is contention that no agent can \
         decide away.",
    )
    .with(Block::Charts(vec![
        chart("Reward", Axis::linear("reward of an episode"), &|row| row.reward),
        chart("p99 against isolation", Axis::log("ratio"), &|row| row.p99_to_isolated),
    ]))
    .with(Block::Table(ratios_by_load(results)))
}

fn growth(results: &Results) -> Section {
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
    let of = |value: &dyn Fn(&windfall_papers::simppo::growth::GrowthStep) -> f64| {
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
        "Growth",
        "Newcomers begin with the weights of an agent that is there. Drop: what is lost at that moment of the \
         reward that the larger team has once it is stable, on the same test episodes.",
    )
    .with(Block::Charts(vec![
        chart("Reward drop", "percent", 3.0, of(&|step| step.drop_percent)),
        chart("Retraining", "episodes until stable", 47.2, of(&|step| step.episodes as f64)),
    ]))
    .with(Block::Table(table))
}

fn chain(results: &Results) -> Section {
    let chain = &results.chain;
    let mut table = Table::new([
        "split of the objective",
        "p99 end to end",
        "worst seed",
        "core-seconds",
        "against the oracle split",
    ]);
    for row in &chain.splits {
        let held = |p99: f64| Cell {
            worse: p99 > chain.objective_ms,
            ..Cell::from(format!("{p99:.0} ms"))
        };
        table.rows.push(vec![
            row.split.clone().into(),
            held(row.p99_ms),
            held(row.worst_p99_ms),
            format!("{:.0}", row.core_seconds).into(),
            format!("{:+.1} %", row.over_oracle_percent).into(),
        ]);
    }
    Section::new(
        "A chain of three",
        format!(
            "image-rotate, face-detector, face-blur with one objective of {:.0} ms end to end. The oracle split knows the true \
             service laws and the rate of the next 15 s; ours has estimates, and steers by the measured latency of callers.",
            chain.objective_ms
        ),
    )
    .with(Block::Table(table))
}

fn faults(results: &Results, cost: Cost) -> Section {
    let faults = &results.faults;
    let worst = faults.seeds.iter().map(|row| row.reward_loss_percent).fold(f64::MIN, f64::max);
    let facts = [
        ("reward lost under faults", format!("{:.2} %", faults.reward_loss_percent)),
        ("the most that a seed lost", format!("{worst:.2} %")),
        ("longest time without a decision-maker", format!("{} ticks", faults.longest_gap_ticks)),
        ("illegal actions", faults.illegal_actions.to_string()),
        (
            "a training tick of 110 agents",
            format!(
                "{:.1} ms beside {:.1} ms of simulation",
                cost.learner_ms_per_tick, cost.simulator_ms_per_tick
            ),
        ),
        ("weights and optimiser of an agent", format!("{} KiB", cost.bytes_per_agent / 1024)),
    ];
    let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Section::new(
        "Faults and cost",
        "A fifth of the transitions lost and one agent in five cut off for a third of every episode.",
    )
    .with(Block::Facts(facts))
}
