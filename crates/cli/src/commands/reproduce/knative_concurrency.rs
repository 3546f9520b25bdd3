//! `windfall reproduce knative-concurrency`.

use std::process::ExitCode;

use clap::Args;
use windfall_experiments::knative_concurrency as kernel;
use windfall_studies::reproduce::knative_concurrency::reproduce;

use super::{Delivery, Platform};

/// Knative's concurrency limit, found by load tests: sweep, the paper's Q-learner, and ours.
///
/// Every limit from 10 to 310 is tested ten times for nine workloads in a simulation of Knative's data path under its
/// own autoscaler; then two learners look for the best limit, ten runs each. `--seeds` is the number of runs.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
    /// Where the experiment takes place
    #[arg(long, value_enum, default_value_t)]
    platform: Platform,
    /// Load tests per limit [default: 2, or 1 with --quick]
    #[arg(long, value_name = "N", help_heading = "With --platform embedded")]
    repetitions: Option<u32>,
    /// Seconds of a load test [default: 10, or 1.5 with --quick]
    #[arg(long, value_name = "SECONDS", help_heading = "With --platform embedded")]
    seconds: Option<f64>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let delivery = &arguments.delivery;
    if arguments.platform == Platform::Simulation {
        return delivery.deliver("knative-concurrency", None, reproduce);
    }
    let usual =
        if delivery.quick { kernel::Settings::quick() } else { kernel::Settings::default() };
    let settings = kernel::Settings {
        repetitions: arguments.repetitions.unwrap_or(usual.repetitions),
        seconds: arguments.seconds.unwrap_or(usual.seconds),
        runs: delivery.seeds.unwrap_or(usual.runs).max(1),
        ..usual
    };
    delivery.deliver("knative-concurrency-embedded", None, |request, watcher| {
        kernel::reproduce(request, &settings, watcher)
    })
}
