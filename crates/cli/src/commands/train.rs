//! `windfall train`: a learner in an environment, watched, kept and resumed.

mod settings;
mod signals;
mod studio;
mod windfall_sizing;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use windfall_core::Seed;
use windfall_rl::training::{CurvePoint, Training};
use windfall_rl::{AnySettings, Entry, Kind, Split, any_learner};

use crate::arguments::{Format, threads};
use crate::commands::policy;
use crate::output::{print, print_json};
use crate::progress;
use studio::{LAST, Studio};
use windfall_studies::environments;

/// Arguments of `train`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    search: Option<Search>,
    /// Id of the environment; `windfall env list` describes them
    #[arg(value_name = "ENV", required_unless_present = "resume")]
    id: Option<String>,
    /// How it learns
    #[arg(long, value_enum, default_value_t, help_heading = "Learning")]
    algorithm: Algorithm,
    /// Iterations of the whole training
    #[arg(long, value_name = "N", help_heading = "Learning")]
    iterations: Option<u64>,
    /// Settings of the algorithm (TOML); what it does not say stays as suggested
    #[arg(long, value_name = "FILE", help_heading = "Learning")]
    settings: Option<PathBuf>,
    /// One setting, e.g. entropy=0.02
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Learning")]
    set: Vec<String>,
    /// Environments played at once (ppo and reinforce)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Learning")]
    environments: Option<u32>,
    /// The seed
    #[arg(long, default_value_t = 1, help_heading = "Learning")]
    seed: u64,
    /// Threads; the result does not depend on it
    #[arg(long, default_value = "1", value_parser = threads, help_heading = "Run")]
    threads: usize,
    /// Go on from a checkpoint, or from the last one of a folder
    #[arg(long, value_name = "PATH", conflicts_with_all = ["id", "algorithm", "settings", "set", "environments", "seed", "quick"], help_heading = "Run")]
    resume: Option<PathBuf>,
    /// Stop after this iteration, to be resumed later
    #[arg(long, value_name = "N", help_heading = "Run")]
    until: Option<u64>,
    /// Iterations between two evaluations on the validation part
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Run")]
    evaluate_every: u64,
    /// Ten iterations unless --iterations says otherwise
    #[arg(long, help_heading = "Run")]
    quick: bool,
    /// Print the settings as a file for --settings, and do nothing
    #[arg(long, help_heading = "Output")]
    show_settings: bool,
    /// Folder for what is kept [default: runs/train-ALGORITHM-NAME-SEED]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

/// What is trained by a search of its own instead of in an environment.
#[derive(Subcommand)]
pub(crate) enum Search {
    WindfallSizing(windfall_sizing::Arguments),
}

/// How to learn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Proximal policy optimisation
    #[default]
    Ppo,
    /// Deep Q-learning
    Dqn,
    /// The policy gradient with a baseline
    Reinforce,
    /// A table of values
    QLearning,
}

impl From<Algorithm> for Kind {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Ppo => Self::Ppo,
            Algorithm::Dqn => Self::Dqn,
            Algorithm::Reinforce => Self::Reinforce,
            Algorithm::QLearning => Self::QLearning,
        }
    }
}

const USUAL_ITERATIONS: u64 = 100;
const QUICK_ITERATIONS: u64 = 10;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(Search::WindfallSizing(arguments)) = &arguments.search {
        return windfall_sizing::run(arguments);
    }
    if arguments.show_settings {
        let Some(id) = &arguments.id else {
            bail!(
                "--show-settings needs an environment; `windfall policy inspect` shows a checkpoint's"
            );
        };
        print(&settings::as_file(&chosen(arguments, environments::find(id)?)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = signals::watch()?;
    let (mut training, mut studio, iterations) = match &arguments.resume {
        Some(path) => resume(arguments, path)?,
        None => begin(arguments)?,
    };
    let until = arguments.until.unwrap_or(iterations).min(iterations);
    let interrupted = follow(&mut training, &mut studio, iterations, until, &stop)?;
    studio.finish(&training)?;
    show(arguments, &training, &studio, interrupted)?;
    Ok(ExitCode::SUCCESS)
}

fn chosen(arguments: &Arguments, entry: &Entry) -> anyhow::Result<AnySettings> {
    let usual = if arguments.quick { QUICK_ITERATIONS } else { USUAL_ITERATIONS };
    let suggested =
        entry.settings(arguments.algorithm.into(), arguments.iterations.unwrap_or(usual));
    let changes = settings::changes(arguments.settings.as_deref(), &arguments.set)?;
    let settings = suggested.with(&changes)?;
    settings.check_for(&entry.spec())?;
    Ok(settings)
}

fn begin(arguments: &Arguments) -> anyhow::Result<(Training, Studio, u64)> {
    let entry = environments::find(arguments.id.as_deref().unwrap_or_default())?;
    let settings = chosen(arguments, entry)?;
    let kind = settings.kind();
    let wanted = arguments.environments.map_or(entry.environments, |count| count as usize);
    let make = || (entry.make)(Split::Training);
    let count = kind.environments(wanted);
    let learner = settings.start(&make, count, Seed::new(arguments.seed), arguments.threads);
    let name = entry.id.rsplit('/').next().unwrap_or(entry.id);
    let folder = format!("runs/train-{}-{name}-{}", kind.name(), arguments.seed);
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from(folder));
    let title = format!("{} in {}", kind.name(), entry.id);
    let studio = Studio::begin(&folder, title, &settings)?;
    let iterations = settings.iterations();
    Ok((
        Training::new(learner, entry, iterations, arguments.evaluate_every, &[]),
        studio,
        iterations,
    ))
}

fn resume(
    arguments: &Arguments,
    path: &std::path::Path,
) -> anyhow::Result<(Training, Studio, u64)> {
    let file = if path.is_dir() { path.join(LAST) } else { path.to_owned() };
    let checkpoint = policy::open(&file)?;
    let header = &checkpoint.header;
    let entry = environments::find(&header.environment.id)?;
    let settings = header.any_settings()?;
    let make = || (entry.make)(Split::Training);
    let learner = any_learner::resume(&checkpoint, &make, arguments.threads)?;
    let beside = file.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let folder = arguments.out.clone().unwrap_or_else(|| beside.clone());
    let title = format!("{} in {}", header.algorithm, entry.id);
    let studio = Studio::resume(&folder, &beside, title, &settings, header.iteration)?;
    let iterations = arguments.iterations.unwrap_or(settings.iterations());
    if header.iteration >= iterations {
        bail!(
            "{} has done all of its {iterations} iterations; --iterations asks for more",
            file.display()
        );
    }
    let every = arguments.evaluate_every;
    let training = Training::new(learner, entry, iterations, every, studio.curve());
    Ok((training, studio, iterations))
}

/// Iterates until the end, `until`, or a signal. Returns whether it was a signal.
fn follow(
    training: &mut Training,
    studio: &mut Studio,
    iterations: u64,
    until: u64,
    stop: &signals::Stop,
) -> anyhow::Result<bool> {
    let bar = progress::iterations(iterations);
    bar.set_position(training.iteration());
    bar.reset_eta();
    let started = Instant::now();
    let before = studio.curve().last().map_or(0, |point| point.report.steps);
    while training.iteration() < until {
        let (point, is_best) = training.iterate();
        #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
        let rate = (point.report.steps - before) as f64 / started.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(message(&point, rate));
        bar.set_position(point.report.iteration);
        studio.keep(training, point, is_best, rate)?;
        if stop.is_asked_for() {
            bar.finish_and_clear();
            eprintln!("stopped after iteration {}; everything is saved", training.iteration());
            return Ok(true);
        }
    }
    bar.finish_and_clear();
    Ok(false)
}

fn message(point: &CurvePoint, rate: f64) -> String {
    let mut words = Vec::new();
    if let Some(reward) = point.report.mean_return {
        words.push(format!("reward {reward:.2}"));
    }
    for name in ["entropy", "kl", "loss", "epsilon"] {
        if let Some(value) = point.report.metrics.get(name) {
            words.push(format!("{name} {value:.3}"));
        }
    }
    words.push(format!("{rate:.0} steps/s"));
    words.join("  ")
}

fn show(
    arguments: &Arguments,
    training: &Training,
    studio: &Studio,
    interrupted: bool,
) -> anyhow::Result<()> {
    let header = training.checkpoint().header;
    let last = studio
        .curve()
        .iter()
        .rev()
        .find_map(|point| Some((point.report.iteration, point.evaluation?)));
    match arguments.format {
        Format::Json => print_json(&json!({
            "environment": header.environment.id,
            "algorithm": header.algorithm,
            "seed": header.seed,
            "iteration": header.iteration,
            "steps": header.steps,
            "best": training.best(),
            "last_evaluation": last.map(|(iteration, evaluation)| json!({ "iteration": iteration, "mean": evaluation.mean })),
            "interrupted": interrupted,
            "directory": studio.folder().display().to_string(),
        })),
        Format::Text | Format::Csv | Format::Markdown => {
            let folder = studio.folder().display();
            let best = training.best().map_or_else(
                || "not evaluated yet".to_owned(),
                |best| format!("{:.2} after iteration {}", best.mean, best.iteration),
            );
            let last = last.map_or_else(
                || "not evaluated yet".to_owned(),
                |(iteration, last)| format!("{:.2} after iteration {iteration}", last.mean),
            );
            let next = if interrupted || arguments.until.is_some() {
                format!("windfall train --resume {folder}")
            } else {
                format!("windfall evaluate {folder}/best.safetensors")
            };
            print(&format!(
                "trained    {} in {} / seed {}\nstands at  iteration {}, {} steps\nbest       {best}\n\
                 last       {last}\ncurves     {folder}/curves.html\nnext       {next}",
                header.algorithm,
                header.environment.id,
                header.seed.get(),
                header.iteration,
                header.steps,
            ))
        }
    }
}
