//! `windfall reproduce simppo`.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use windfall_experiments::simppo as kernel;
use windfall_studies::reproduce::simppo::reproduce;

use super::{Delivery, Platform};

/// SIMPPO: one agent per function, each seeing the others as one, on the simulator.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
    /// Where the experiment takes place
    #[arg(long, value_enum, default_value_t)]
    platform: Platform,
    #[command(flatten)]
    kernel: KernelArguments,
}

/// What `--platform embedded` understands.
#[derive(Args)]
#[command(next_help_heading = "With --platform embedded")]
struct KernelArguments {
    /// Episodes of training in simulation [default: 40, or 2 with --quick]
    #[arg(long, value_name = "N")]
    training: Option<u64>,
    /// Episodes on this machine [default: 2, or 1 with --quick]
    #[arg(long, value_name = "N")]
    live_episodes: Option<u64>,
    /// Ticks of an episode [default: 48, or 4 with --quick]
    #[arg(long, value_name = "N")]
    ticks: Option<u64>,
    /// Real seconds of a tick, which stands for five [default: 1, or 0.5 with --quick]
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    tick_seconds: Option<f64>,
}

impl KernelArguments {
    fn settings(&self, quick: bool) -> kernel::Settings {
        let usual = if quick { kernel::Settings::quick() } else { kernel::Settings::default() };
        kernel::Settings {
            training: self.training.unwrap_or(usual.training),
            episodes: self.live_episodes.unwrap_or(usual.episodes),
            ticks: self.ticks.unwrap_or(usual.ticks),
            tick_seconds: self.tick_seconds.unwrap_or(usual.tick_seconds),
            ..usual
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let delivery = &arguments.delivery;
    if arguments.platform == Platform::Embedded {
        delivery.refuse_seeds("--live-episodes")?;
        let settings = arguments.kernel.settings(delivery.quick);
        return delivery.deliver("simppo-embedded", None, |request, watcher| {
            kernel::reproduce(request, &settings, watcher)
        });
    }
    let start = Instant::now();
    let stopwatch = || start.elapsed().as_secs_f64();
    delivery.deliver("simppo", None, |request, watcher| reproduce(request, &stopwatch, watcher))
}
