//! `windfall capacity --platform embedded`: load held by real functions on this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use windfall_experiments::load_held::{Settings, measure, usual_objective, usual_setup};
use windfall_studies::capacity::CapacityRow;
use windfall_studies::capacity::contestants::{Contestant, everybody};
use windfall_studies::capacity::kernel::{KernelCapacity, RampSetup};
use windfall_studies::capacity::objective::Objective;
use windfall_studies::capacity::summary::CapacitySummary;
use windfall_studies::capacity::texts::{curves_to_csv, to_csv, to_markdown};
use windfall_telemetry::report::ReportContext;

use super::{Arguments, ObjectiveNumbers, parsed};
use crate::arguments::Format;
use crate::output::{command_line, directory, print, print_json, write_whole};
use crate::progress::StageBar;

/// Who takes part unless somebody is named, each at the over-commit that held most in trials.
const USUAL: [&str; 6] = [
    "fixed",
    "weights@2",
    "histogram@2",
    "weights+order@2",
    "windfall",
    "windfall-admission+order",
];

/// What `--platform embedded` understands.
#[derive(Args)]
#[command(next_help_heading = "With --platform embedded")]
pub(super) struct KernelArguments {
    /// How often every policy's ramp is repeated, in ABBA order
    #[arg(long, value_name = "N", default_value_t = 8)]
    repetitions: u32,
    /// Add to the runs of the same settings in --out; with --repetitions 0, judge them anew
    #[arg(long)]
    append: bool,
    /// Load of the first step
    #[arg(long, value_name = "LOAD", default_value_t = usual_setup().first_load, hide_short_help = true)]
    first_load: f64,
    /// Each step has so many times the load of the one before
    #[arg(long, value_name = "FACTOR", default_value_t = usual_setup().ratio, hide_short_help = true)]
    ratio: f64,
    /// Steps at most
    #[arg(long, value_name = "N", default_value_t = usual_setup().steps, hide_short_help = true)]
    steps: u32,
    /// Seconds of a step
    #[arg(long, value_name = "SECONDS", default_value_t = usual_setup().step_seconds, hide_short_help = true)]
    step_seconds: f64,
    /// Inputs over the functions' defaults
    #[arg(long, value_name = "FACTOR", default_value_t = usual_setup().scale, hide_short_help = true)]
    scale: f64,
    /// Milliseconds that a store takes to answer functions that use one
    #[arg(long, value_name = "MS", default_value_t = usual_setup().store_millis, hide_short_help = true)]
    store_ms: f64,
}

impl KernelArguments {
    fn setup(&self, seed: u64) -> RampSetup {
        let Self { first_load, ratio, steps, step_seconds, scale, store_ms, .. } = *self;
        RampSetup { first_load, ratio, steps, step_seconds, scale, store_millis: store_ms, seed }
    }
}

/// The keys of `--format json`.
#[derive(Serialize)]
struct Numbers<'a> {
    objective: ObjectiveNumbers,
    rows: &'a [CapacityRow],
    summary: &'a [CapacitySummary],
    #[serde(flatten)]
    kernel: &'a KernelCapacity,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let given = &arguments.given;
    if given.scenario.is_some() || given.trace.is_some() || !arguments.world.is_empty() {
        bail!(
            "--platform embedded has its own functions; leave out --world, --scenario and --trace"
        );
    }
    let objective = arguments.objective.objective(&usual_objective())?;
    let seed = arguments.seeds.first().copied().unwrap_or(1);
    let settings = Settings {
        contestants: contestants(&arguments.policies, &arguments.set)?
            .into_iter()
            .map(|one| one.with_objective(&objective))
            .collect(),
        objective,
        setup: arguments.kernel.setup(seed),
        repetitions: arguments.kernel.repetitions,
        appends: arguments.kernel.append,
    };
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs/capacity-embedded"));
    directory(&folder)?;
    let found = measure(&settings, &folder, &StageBar::default())?;
    deliver(arguments.format, &objective, &found, &folder)?;
    Ok(ExitCode::SUCCESS)
}

fn deliver(
    format: Format,
    objective: &Objective,
    found: &KernelCapacity,
    folder: &std::path::Path,
) -> anyhow::Result<()> {
    let summary = found.summaries(objective);
    let context = ReportContext {
        title: "Load held on this machine".to_owned(),
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::to_value(&found.setup)?,
    };
    let report = folder.join("report.html");
    write_whole(&report, &found.page(context, objective).html())?;
    let numbers = Numbers {
        objective: objective.into(),
        rows: &found.result.rows,
        summary: &summary,
        kernel: found,
    };
    write_whole(&folder.join("results.json"), &serde_json::to_string_pretty(&numbers)?)?;
    write_whole(&folder.join("results.csv"), &to_csv(&found.result))?;
    write_whole(&folder.join("curves.csv"), &curves_to_csv(objective, &found.result))?;
    match format {
        Format::Json => print_json(&numbers),
        Format::Csv => print(&to_csv(&found.result)),
        Format::Markdown => print(&to_markdown(&summary)),
        Format::Text => print(&format!("{}\nreport: {}", found.text(objective), report.display())),
    }
}

/// The policies by `NAME[+order][@OVER-COMMIT]`, and `fixed`.
fn contestants(asked: &[String], set: &[String]) -> anyhow::Result<Vec<Contestant>> {
    let mut asked: Vec<&str> = match asked.is_empty() {
        true => USUAL.to_vec(),
        false => asked.iter().map(String::as_str).collect(),
    };
    if !asked.contains(&"fixed") {
        asked.insert(0, "fixed");
    }
    let mut found: Vec<Contestant> = Vec::new();
    for name in asked {
        let mut one = contestant(name)?;
        for setting in set {
            let (policy, table) = parsed(setting)?;
            if policy == one.policy {
                one.settings.get_or_insert_default().extend(table);
            }
        }
        match found.iter_mut().find(|known| known.label == one.label) {
            Some(known) => known.over_commits.extend(one.over_commits),
            None => found.push(one),
        }
    }
    Ok(found)
}

fn contestant(text: &str) -> anyhow::Result<Contestant> {
    let (name, over_commit) = match text.split_once('@') {
        None => (text, 1.0),
        Some((name, factor)) => {
            let factor: Option<f64> = factor.parse().ok();
            let factor = factor.filter(|factor| (0.1..=100.0).contains(factor));
            (
                name,
                factor
                    .with_context(|| format!("--policies has `{text}`, allowed is @0.1 to @100"))?,
            )
        }
    };
    let label = name
        .strip_suffix("+order")
        .map_or_else(|| name.to_owned(), |one| format!("{one}, ordered"));
    let known = everybody(false);
    let Some(one) = known.iter().find(|one| one.label == label) else {
        let names: Vec<&str> = known.iter().map(|one| one.policy.as_str()).collect();
        let mut names: Vec<&str> = names;
        names.sort_unstable();
        names.dedup();
        bail!(
            "--policies has `{text}`, allowed is {}, each with +order and @OVER-COMMIT behind it if wanted",
            names.join(", ")
        );
    };
    Ok(one.clone().over_committed(&[over_commit]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_with_its_order_and_its_over_commits() {
        let asked =
            ["weights@2".to_owned(), "weights@3".to_owned(), "windfall-admission+order".to_owned()];
        let found = contestants(&asked, &["windfall-admission.z=0.5".to_owned()]).unwrap();
        let labels: Vec<&str> = found.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["fixed", "weights", "windfall-admission, ordered"]);
        assert_eq!(found[1].over_commits, [2.0, 3.0]);
        assert!(found[2].settings.is_some() && found[1].settings.is_none());
        let wrong = contestant("wieghts@2").unwrap_err().to_string();
        assert!(wrong.contains("`wieghts@2`, allowed is autothrottle, fixed"), "{wrong}");
        assert!(contestant("weights@0").is_err());
    }
}
