//! The program: the controller, its custom resource definitions, and the guests.

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use kube::CustomResourceExt;
use windfall_kubernetes::resource_policy::ResourcePolicy;
use windfall_kubernetes::yaml;

/// Manages the resources of Deployments and Knative Services on a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "windfall-kubernetes", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the controller until it is stopped.
    Controller,
    /// Prints the custom resource definitions as YAML.
    Crds,
    /// Runs inside another autoscaler.
    Guest {
        /// Which one.
        host: Host,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Host {
    /// A recommender of the Vertical Pod Autoscaler.
    Vpa,
    /// An external scaler of KEDA.
    Keda,
    /// An autoscaler class of Knative.
    Class,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Crds => print_crds(),
        Command::Controller | Command::Guest { .. } => ExitCode::from(2),
    }
}

#[expect(clippy::print_stdout, reason = "the definitions are what was asked for")]
fn print_crds() -> ExitCode {
    let crd = serde_json::to_value(ResourcePolicy::crd()).expect("a definition is plain data");
    print!("---\n{}", yaml::document(&crd));
    ExitCode::SUCCESS
}
