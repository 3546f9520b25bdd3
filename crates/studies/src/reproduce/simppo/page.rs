//! What came out of SIMPPO, as text and as a page.

use serde_json::json;
use windfall_core::statistics::{self, population_deviation};
use windfall_papers::simppo::online::OnlineRow;
use windfall_papers::simppo::{ReproduceSettings, Results};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::{Cost, Request};

mod contest;
mod learners;
mod story;
mod sweeps;
mod terminal;

use story::story;
pub(super) use terminal::text;

/// The order of tables.
const POLICIES: [&str; 19] = [
    "isolated",
    "simppo",
    "mappo",
    "s-rl",
    "ensure",
    "ensure, calibrated",
    "hpa",
    "hpa, calibrated",
    "queueing",
    "queueing, calibrated",
    "windfall-scaling",
    "windfall-scaling, calibrated",
    "autothrottle",
    "autothrottle, calibrated",
    "autothrottle-tower",
    "autothrottle-tower, calibrated",
    "fixed",
    "oracle",
    "random",
];

/// Those of the table by function.
const BY_FUNCTION: [&str; 8] = [
    "isolated",
    "simppo",
    "mappo",
    "s-rl",
    "ensure",
    "hpa, calibrated",
    "queueing, calibrated",
    "oracle",
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
    late_percent: f64,
    cost: f64,
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
            late_percent: 100.0 * rows.iter().map(|row| row.violations).sum::<f64>()
                / rows.iter().map(|row| row.judged_calls).sum::<f64>().max(1.0),
            cost: mean(rows.iter().map(|row| row.cost())),
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
                "mean load of the cores": results.gate.load,
                "world": windfall_gym::shared_nodes::ID,
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
            contest::gate(results),
            contest::margins(results),
            online(results),
            learners::ratios(results),
            learners::training(results),
            learners::auxiliary(results),
            per_function(results),
            contest::rules(results),
            sweeps::loads(results),
            sweeps::growth(results),
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
        "calls too late",
        "CPU utilisation",
        "cost",
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
            format!("{:.1} %", one.late_percent).into(),
            format!("{:.3}", one.utilisation).into(),
            format!("{:.0}", one.cost).into(),
        ]);
    }
    Section::new(
        "Online performance",
        "Every policy on hours nobody trained on, means over functions and seeds; p99 over the objective is a \
         geometric mean. Isolated has the nodes to itself; the oracle knows the load to come. Learners are as \
         published: one network each, the published PPO. Cost is in core-seconds per function, a GiB as a tenth of a core.",
    )
    .with(Block::Table(table))
}

/// Means over seeds of one number by function and policy.
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
    let numbers = |name: &&str| BY_FUNCTION.iter().map(|policy| number(name, policy)).collect();
    names.iter().map(|name| ((*name).to_owned(), numbers(name))).collect()
}

fn per_function(results: &Results) -> Section {
    let table = |of: &dyn Fn(&OnlineRow) -> f64, digits: usize| {
        let mut table = Table::new(["function"].into_iter().chain(BY_FUNCTION));
        for (name, numbers) in by_function(results, of) {
            let mut row: Vec<Cell> = vec![name.into()];
            row.extend(numbers.iter().map(|(_, value)| Cell::from(format!("{value:.digits$}"))));
            table.rows.push(row);
        }
        Block::Table(table)
    };
    let numbers = by_function(results, &|row| row.reward);
    let points = |place: usize| {
        let rewards = numbers.iter().map(|(_, values)| values[place].1);
        let point = |(number, reward)| Point::new(number as f64 + 1.0, reward);
        rewards.enumerate().map(point).collect()
    };
    let shown = [0, 1, 3, 4, 6];
    let series =
        shown.map(|place| Series { points: points(place), ..Series::line(BY_FUNCTION[place], []) });
    let chart = Chart {
        title: "Reward of an episode by function".to_owned(),
        x: Axis::linear("function, in the order of the table"),
        y: Axis::linear("sum of rewards"),
        series: series.to_vec(),
    };
    Section::new("Function by function", "First p99 over the objective, then reward of an episode.")
        .with(Block::Charts(vec![chart]))
        .with(table(&p99_to_objective, 2))
        .with(table(&|row| row.reward, 1))
}

fn p99_to_objective(row: &OnlineRow) -> f64 {
    row.p99_ms / row.slo_ms
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
        "A fifth of the transitions lost and one agent in five cut off for a third of every episode, in MultiScaling-v0.",
    )
    .with(Block::Facts(facts))
}
