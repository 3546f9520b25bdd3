//! `windfall reproduce ece471`: the four tasks of the course's exercise in one command.

mod bars;
mod page;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use windfall_papers::ece471::reproduce::{Plan, Reproduction, reproduce};

use super::Delivery;
use crate::arguments::threads;
use crate::commands::compare::all_threads;
use crate::progress;

/// What `reproduce ece471` is told.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
    /// First seed; settings were tuned on seeds above 100
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// Only learners whose name/iterations contain this, e.g. ppo/500
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Threads, all cores by default; the numbers do not depend on it
    #[arg(long, value_parser = threads)]
    threads: Option<usize>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = plan(arguments)?;
    let bar = progress::iterations(plan.iterations());
    let result = reproduce(&plan, &|progress| {
        bar.inc(1);
        let name = progress.experiment.name();
        bar.set_message(format!("{name} seed {}", progress.seed));
    });
    bar.finish_and_clear();
    let page = page::page(&plan, &result);
    arguments.delivery.deliver("ece471", &page, &text(&result), &result)?;
    let missed = bars::judge(&result).iter().any(|bar| !bar.is_met());
    Ok(if missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn plan(arguments: &Arguments) -> anyhow::Result<Plan> {
    let threads = arguments.threads.unwrap_or_else(all_threads);
    let mut plan =
        if arguments.delivery.quick { Plan::quick(threads) } else { Plan::full(threads) };
    plan.first_seed = arguments.first_seed;
    if let Some(seeds) = arguments.delivery.seeds {
        plan.seeds = u64::from(seeds.max(1));
    }
    if let Some(only) = &arguments.only {
        let name = |experiment: &windfall_papers::ece471::reproduce::Experiment| {
            format!("{}/{}", experiment.name(), experiment.iterations)
        };
        let all: Vec<String> = plan.experiments.iter().map(name).collect();
        plan.experiments.retain(|experiment| name(experiment).contains(only.as_str()));
        if plan.experiments.is_empty() {
            bail!("--only is `{only}`, which no learner contains; there are {}", all.join(", "));
        }
    }
    Ok(plan)
}

fn text(result: &Reproduction) -> String {
    let mut lines: Vec<String> = page::golden_rows(&result.golden)
        .iter()
        .map(|(name, score)| format!("{name:28} {score:>7.2}"))
        .collect();
    lines.push(format!(
        "\n{:24} {:>10} {:>8} {:>7} {:>8} {:>12}",
        "learner", "iterations", "mean", "sd", "worst", "after 189.5"
    ));
    for row in &result.algorithms {
        let after = row.reached.iter().filter_map(|reached| reached.worst_after).reduce(f64::min);
        lines.push(format!(
            "{:24} {:>10} {:>8.2} {:>7.2} {:>8.2} {:>12}",
            row.name,
            row.iterations,
            row.mean,
            row.sd,
            row.min,
            after.map_or_else(|| "-".to_owned(), |after| format!("{after:.2}")),
        ));
    }
    lines.push(format!(
        "\n{:24} {:>8} {:>8} {:>8}  {}",
        "reward design", "util", "SLO", "return", "ranks"
    ));
    for row in &result.designs {
        lines.push(format!(
            "{:24} {:>8.3} {:>8.3} {:>8.2}  {}",
            row.design.name(),
            row.util.mean,
            row.slo.mean,
            row.total.mean,
            page::ranks(row.ranks),
        ));
    }
    let (duel, continued) = (&result.duel, &result.continued);
    lines.push(format!(
        "\nover {} steps at {} requests/s: trained {:.1}, random {:.1}\n\
         interrupted at {} of {} and continued: {}",
        duel.steps,
        duel.rate,
        duel.trained,
        duel.random,
        continued.interrupted_at,
        continued.iterations,
        if continued.identical { "the same bytes" } else { "DIFFERENT bytes" },
    ));
    for bar in bars::judge(result) {
        lines.push(bar.to_string());
    }
    lines.join("\n")
}
