//! `windfall reproduce ece471`.

use std::process::ExitCode;

use clap::Args;
use windfall_studies::reproduce::ece471::{Settings, reproduce};

use super::Delivery;
use crate::arguments::threads;

/// Arguments of `reproduce ece471`.
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
    let settings = Settings { first_seed: arguments.first_seed, only: arguments.only.clone() };
    arguments.delivery.deliver("ece471", arguments.threads, |request, watcher| {
        reproduce(request, &settings, watcher)
    })
}
