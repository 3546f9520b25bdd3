//! `windfall reproduce simppo`.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use windfall_studies::reproduce::simppo::reproduce;

use super::Delivery;

/// SIMPPO: one agent per function, each seeing the others as one, on the simulator.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let stopwatch = || start.elapsed().as_secs_f64();
    arguments
        .delivery
        .deliver("simppo", None, |request, watcher| reproduce(request, &stopwatch, watcher))
}
