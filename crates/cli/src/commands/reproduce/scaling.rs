//! `windfall reproduce scaling`.

use std::process::ExitCode;

use clap::Args;
use windfall_studies::reproduce::scaling::{Settings, reproduce};

use super::Delivery;
use crate::arguments::threads;

/// Arguments of `reproduce scaling`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
    /// First seed; settings were tuned on seeds above 100
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// Iterations of each training [default: 60, or 10 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Threads, all cores by default; the numbers do not depend on it
    #[arg(long, value_parser = threads)]
    threads: Option<usize>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { first_seed, iterations, .. } = *arguments;
    arguments.delivery.deliver("scaling", arguments.threads, |request, watcher| {
        reproduce(request, Settings { first_seed, iterations }, watcher)
    })
}
