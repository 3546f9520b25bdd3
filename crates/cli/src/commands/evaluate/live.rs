//! `windfall evaluate --env windfall/LiveScaling-v0`: a trained policy on real processes.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use windfall_experiments::live_scaling::{ID, SIMULATED_ID, Settings, judge};
use windfall_papers::ece471::RATES;
use windfall_rl::{Checkpoint, Decide};
use windfall_studies::environments;

use crate::arguments::Format;
use crate::output::{print, print_json};
use crate::progress::StageBar;

/// What the environment on real processes understands.
#[derive(Args)]
#[command(next_help_heading = "With --env windfall/LiveScaling-v0")]
pub(super) struct LiveArguments {
    /// Steps of an episode
    #[arg(long, value_name = "N", default_value_t = Settings::default().steps)]
    steps: u32,
    /// Seconds of a step
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().step_seconds)]
    step_seconds: f64,
    /// Arrival rates to play, e.g. 2,4,8 [default: all from 1 to 8]
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    rates: Vec<u32>,
    /// Episodes at each rate
    #[arg(long, value_name = "N", default_value_t = Settings::default().episodes)]
    live_episodes: u32,
}

pub(super) fn run(
    arguments: &LiveArguments,
    id: &str,
    checkpoint: &Checkpoint,
    format: Format,
) -> anyhow::Result<ExitCode> {
    if id != ID {
        bail!(
            "--env is {id}, allowed is {ID}; without --env the checkpoint's own environment is played"
        );
    }
    let (own, asked) = (&checkpoint.header.environment, environments::find(SIMULATED_ID)?.spec());
    let features = |spec: &windfall_rl::Spec| -> Vec<String> {
        spec.features.iter().map(|feature| feature.name.clone()).collect()
    };
    if features(own) != features(&asked) || own.actions != asked.actions {
        bail!(
            "the checkpoint was trained in {}, which shows and accepts something else than {ID}; \
             train one with `windfall train {SIMULATED_ID}`",
            own.id
        );
    }
    let settings = Settings {
        steps: arguments.steps,
        step_seconds: arguments.step_seconds,
        rate: None,
        episodes: arguments.live_episodes,
    };
    let rates: Vec<u32> = match arguments.rates.is_empty() {
        true => RATES.collect(),
        false => arguments.rates.clone(),
    };
    // Refused here if it cannot decide, and not in the middle of an episode.
    drop(checkpoint.decider()?);
    let trained = || -> Box<dyn Decide> {
        checkpoint.decider().expect("it was made a moment ago from the same checkpoint")
    };
    let judgement = judge(Some(&trained), settings, &rates, &StageBar::default())?;
    match format {
        Format::Json => print_json(&judgement)?,
        Format::Text | Format::Csv | Format::Markdown => print(&judgement.text())?,
    }
    Ok(ExitCode::SUCCESS)
}
