//! `windfall reproduce knative-concurrency`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use windfall_experiments::knative_concurrency as kernel;
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
    /// Where the experiment takes place
    #[arg(long, value_enum, default_value_t)]
    platform: Ground,
    /// Load tests per limit [default: 2, or 1 with --quick]
    #[arg(long, value_name = "N", help_heading = "With --platform embedded or kubernetes")]
    repetitions: Option<u32>,
    /// Seconds of a load test [default: 10, or 1.5 with --quick]
    #[arg(long, value_name = "SECONDS", help_heading = "With --platform embedded or kubernetes")]
    seconds: Option<f64>,
    /// Requests per second
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 200.0,
        help_heading = "With --platform kubernetes"
    )]
    rate: f64,
}

/// Where the load tests take place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Ground {
    /// In virtual time
    #[default]
    Simulation,
    /// On this machine: real processes under real limits, as root
    Embedded,
    /// On the Knative of the cluster that KUBECONFIG names, by the program `windfall-knative`
    Kubernetes,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let delivery = &arguments.delivery;
    if arguments.platform == Ground::Simulation {
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
    if arguments.platform == Ground::Kubernetes {
        return delivery.deliver("knative-concurrency-kubernetes", None, |request, watcher| {
            kernel::reproduce_on_knative(request, &settings, arguments.rate, watcher)
        });
    }
    delivery.deliver("knative-concurrency-embedded", None, |request, watcher| {
        kernel::reproduce(request, &settings, watcher)
    })
}
