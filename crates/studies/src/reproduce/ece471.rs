//! The course project ECE 471: the four tasks of its exercise in one go.

mod bars;
mod page;

use windfall_papers::ece471::reproduce::{Experiment, Plan, Reproduction, reproduce as play};

use super::{ReproduceError, Reproduced, Request, Stage, Watcher};

/// What this reproduction is asked beyond the usual.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first seed; learners were tuned on seeds above 100.
    pub first_seed: u64,
    /// Only learners whose `name/iterations` contains this.
    pub only: Option<String>,
}

/// Runs all four tasks. [`Reproduced::is_missed`] says whether a bar was measured and missed.
pub fn reproduce(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ReproduceError> {
    let plan = plan(request, settings)?;
    watcher.begin(Stage::Iterations(plan.iterations()));
    let result = play(&plan, &|progress| {
        watcher.advance(1);
        watcher.describe(&format!("{} seed {}", progress.experiment.name(), progress.seed));
    });
    watcher.end();
    let is_missed = bars::judge(&result).iter().any(|bar| !bar.is_met());
    let page = page::page(request, &plan, &result);
    Ok(Reproduced { is_missed, ..Reproduced::new(page, text(&result), &result)? })
}

fn plan(request: &Request<'_>, settings: &Settings) -> Result<Plan, ReproduceError> {
    let threads = request.threads;
    let mut plan = if request.quick { Plan::quick(threads) } else { Plan::full(threads) };
    plan.first_seed = settings.first_seed;
    if let Some(seeds) = request.seeds {
        plan.seeds = u64::from(seeds.max(1));
    }
    if let Some(only) = &settings.only {
        let name =
            |experiment: &Experiment| format!("{}/{}", experiment.name(), experiment.iterations);
        let all: Vec<String> = plan.experiments.iter().map(name).collect();
        plan.experiments.retain(|experiment| name(experiment).contains(only.as_str()));
        if plan.experiments.is_empty() {
            let (only, known) = (only.clone(), all.join(", "));
            return Err(ReproduceError::NoLearner { only, known });
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
