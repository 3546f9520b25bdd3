//! `windfall evaluate`: how a trained policy does, beside classic ones and random choices.

mod live;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use windfall_core::Seed;
use windfall_rl::training::{Evaluation, Random, play};
use windfall_rl::{Decide, Split, Spread};

use crate::arguments::{Format, Part, seeds};
use crate::commands::policy;
use crate::output::{print, print_json};
use crate::progress;
use windfall_studies::environments;

/// Arguments of `evaluate`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The checkpoint
    file: PathBuf,
    /// Play in another environment with the same features and actions: windfall/LiveScaling-v0, real
    /// processes on this machine, as root
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    #[command(flatten)]
    live: live::LiveArguments,
    /// Which part of the environment's world is played
    #[arg(long, value_enum, default_value_t = Part::Test)]
    split: Part,
    /// How many seeds, a list like 7,9 or a range like 3-6
    #[arg(long, default_value = "5", value_parser = seeds)]
    seeds: Seeds,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

type Seeds = Vec<u64>;

#[derive(Serialize)]
struct Outcome {
    environment: String,
    algorithm: String,
    iteration: u64,
    split: Split,
    seeds: Vec<u64>,
    episodes: usize,
    #[serde(flatten)]
    policy: Row,
    random: Row,
    classic: BTreeMap<&'static str, Row>,
}

#[derive(Serialize)]
struct Row {
    /// Mean over seeds of the mean return.
    mean: f64,
    /// Standard deviation over seeds.
    sd: f64,
    /// The worst episode.
    low: f64,
    /// The best episode.
    high: f64,
    /// Mean return of each seed.
    means: Vec<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let checkpoint = policy::open(&arguments.file)?;
    if let Some(id) = &arguments.env {
        return live::run(&arguments.live, id, &checkpoint, arguments.format);
    }
    let header = &checkpoint.header;
    let entry = environments::find(&header.environment.id)?;
    let split = arguments.split.into();
    let bar = progress::rounds(2 * arguments.seeds.len() as u64);
    let mut episodes = 0;
    let mut row = |decide: &dyn Fn(Seed) -> anyhow::Result<Box<dyn Decide>>, masks| {
        let mut found = Vec::new();
        for seed in arguments.seeds.iter().copied().map(Seed::new) {
            let returns = play(entry, decide(seed)?, masks, split, seed);
            episodes = returns.len() * arguments.seeds.len();
            found.push(Evaluation::of(&returns));
            bar.inc(1);
        }
        anyhow::Ok(summary(&found))
    };
    let policy = row(&|_| Ok(checkpoint.decider()?), header.masks())?;
    let random = row(&|seed| Ok(Box::new(Random::new(seed))), true)?;
    let classic = classic(&header.environment.id, split, &arguments.seeds);
    bar.finish_and_clear();
    let outcome = Outcome {
        environment: header.environment.id.clone(),
        algorithm: header.algorithm.clone(),
        iteration: header.iteration,
        split,
        seeds: arguments.seeds.clone(),
        episodes,
        policy,
        random,
        classic,
    };
    match arguments.format {
        Format::Json => print_json(&outcome)?,
        Format::Text | Format::Csv | Format::Markdown => print(&text(&outcome))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The classic policies on the same panels.
fn classic(id: &str, split: Split, seeds: &[u64]) -> BTreeMap<&'static str, Row> {
    let mut found: BTreeMap<&'static str, Vec<Evaluation>> = BTreeMap::new();
    let Some(rivals) = environments::rivals(id) else { return BTreeMap::new() };
    for seed in seeds.iter().copied().map(Seed::new) {
        for (name, returns) in rivals(split, seed) {
            found.entry(name).or_default().push(Evaluation::of(&returns));
        }
    }
    found.into_iter().map(|(name, found)| (name, summary(&found))).collect()
}

fn summary(found: &[Evaluation]) -> Row {
    let means: Vec<f64> = found.iter().map(|one| one.mean).collect();
    let Spread { mean, sd, .. } = Spread::of(&means);
    Row {
        mean,
        sd,
        low: found.iter().map(|one| one.low).fold(f64::INFINITY, f64::min),
        high: found.iter().map(|one| one.high).fold(f64::NEG_INFINITY, f64::max),
        means,
    }
}

fn text(outcome: &Outcome) -> String {
    let line = |name: &str, row: &Row| {
        let Row { mean, sd, low, high, .. } = row;
        format!("{name:14} {mean:>10.2} {sd:>8.2} {low:>10.2} {high:>10.2}")
    };
    let mut text = format!(
        "{} in {}, {} episodes on {} seeds\n{:14} {:>10} {:>8} {:>10} {:>10}\n{}",
        outcome.algorithm,
        outcome.environment,
        outcome.episodes,
        outcome.seeds.len(),
        "policy",
        "mean",
        "sd",
        "worst",
        "best",
        line("trained", &outcome.policy),
    );
    let mut others: Vec<(&str, &Row)> =
        outcome.classic.iter().map(|(name, row)| (*name, row)).collect();
    others.push(("random", &outcome.random));
    others.sort_by(|(_, one), (_, other)| other.mean.total_cmp(&one.mean));
    for (name, row) in others {
        text += &format!("\n{}", line(name, row));
    }
    text
}
