//! The command line.

mod bench;
mod controller;
mod print;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use windfall_kubernetes::guests;

/// Manages the resources of Deployments and Knative Services on a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "windfall-kubernetes", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the controller until it is stopped.
    Controller(controller::ControllerArguments),
    /// Gives every workload back what its user had, then ends. Run it before the controller is removed.
    Restore(controller::RestoreArguments),
    /// Prints the custom resource definitions as YAML.
    Crds,
    /// Prints the roles that the controller needs as YAML.
    Rbac {
        /// The namespace that the controller runs in.
        #[arg(long, default_value = "windfall")]
        namespace: String,
    },
    /// Creates many objects on a cluster and measures passes over them.
    Bench(bench::BenchArguments),
    /// Runs inside another autoscaler.
    Guest {
        /// Which one.
        host: Host,
        /// Where KEDA's questions are answered.
        #[arg(long, default_value = "0.0.0.0:9292")]
        listen: std::net::SocketAddr,
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

/// Why the program ends without having done what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no cluster to talk to.
    #[error("no cluster: {0}; set KUBECONFIG or run inside a cluster")]
    NoCluster(String),
    /// An argument does not fit.
    #[error("{0}")]
    Argument(String),
    /// The cluster refused.
    #[error("{0}")]
    Cluster(#[from] kube::Error),
    /// The runtime could not be started.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Not everything could be given back.
    #[error("{0}")]
    Unfinished(String),
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let outcome = match arguments.command {
        Command::Crds => {
            print::crds();
            Ok(())
        }
        Command::Rbac { namespace } => {
            print::rbac(&namespace);
            Ok(())
        }
        Command::Controller(arguments) => controller::run(arguments),
        Command::Restore(arguments) => controller::restore(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Guest { host, listen } => guest(host, listen),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print::problem(&failure.to_string());
            ExitCode::from(2)
        }
    }
}

fn guest(host: Host, listen: std::net::SocketAddr) -> Result<(), Failure> {
    controller::log(false);
    with_client(async |client| {
        match host {
            Host::Vpa => guests::serve_vpa(client).await,
            Host::Class => guests::serve_class(client).await,
            Host::Keda => {
                let served = guests::serve_keda(client, listen).await;
                served.map_err(|error| Failure::Unfinished(error.to_string()))?;
            }
        }
        Ok(())
    })
}

/// A runtime with a client of the cluster that the environment names.
pub(crate) fn with_client<T>(
    work: impl AsyncFnOnce(kube::Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        // Several libraries bring a provider along; TLS needs to know which one is meant.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = kube::Client::try_default();
        let client = client.await.map_err(|error| Failure::NoCluster(error.to_string()))?;
        work(client).await
    })
}
