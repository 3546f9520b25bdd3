//! `windfall reproduce knative-concurrency`.

use std::process::ExitCode;

use clap::Args;
use windfall_studies::reproduce::knative_concurrency::reproduce;

use super::Delivery;

/// Knative's concurrency limit, found by load tests: sweep, the paper's Q-learner, and ours.
///
/// Every limit from 10 to 310 is tested ten times for nine workloads in a simulation of Knative's data path under its
/// own autoscaler; then two learners look for the best limit, ten runs each. `--seeds` is the number of runs.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.delivery.deliver("knative-concurrency", None, reproduce)
}
