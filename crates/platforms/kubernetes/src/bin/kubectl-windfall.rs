//! `kubectl windfall`: what policies do and why, and a switch for each. kubectl finds the program by its name.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windfall_kubernetes::plugin;
use windfall_kubernetes::resource_policy::ResourcePolicy;

/// Shows and switches ResourcePolicies.
#[derive(Parser)]
#[command(name = "kubectl-windfall", bin_name = "kubectl windfall", version)]
struct Arguments {
    /// The namespace; the one of the current context if it is left out.
    #[arg(long, short, global = true)]
    namespace: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One line per policy.
    Status {
        /// Policies of all namespaces.
        #[arg(long, short = 'A')]
        all_namespaces: bool,
    },
    /// Everything about one policy: what was measured, decided, held back and done.
    Explain {
        /// The policy.
        name: String,
    },
    /// Stops all changes of one policy. Sizes that are in force stay.
    Pause {
        /// The policy.
        name: String,
    },
    /// Lets a policy act again.
    Resume {
        /// The policy.
        name: String,
    },
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime
        .map_err(|problem| problem.to_string())
        .and_then(|runtime| runtime.block_on(run(Arguments::parse())));
    match outcome {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: Arguments) -> Result<String, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_default()
        .await
        .map_err(|problem| format!("no cluster: {problem}; set KUBECONFIG as for kubectl"))?;
    let namespace = arguments.namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let own = Api::<ResourcePolicy>::namespaced(client.clone(), &namespace);
    let refused = |problem: kube::Error| format!("namespace {namespace}: {problem}");
    match arguments.command {
        Command::Status { all_namespaces } => {
            let api = if all_namespaces { Api::all(client) } else { own };
            let list = api.list(&ListParams::default()).await.map_err(refused)?;
            Ok(plugin::status(&list.items))
        }
        Command::Explain { name } => Ok(plugin::explain(&own.get(&name).await.map_err(refused)?)),
        Command::Pause { name } => set_paused(&own, &name, true).await.map_err(refused),
        Command::Resume { name } => set_paused(&own, &name, false).await.map_err(refused),
    }
}

async fn set_paused(
    api: &Api<ResourcePolicy>,
    name: &str,
    paused: bool,
) -> Result<String, kube::Error> {
    let patch = json!({"spec": {"paused": paused}});
    let policy = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let word = if paused { "paused; sizes that are in force stay" } else { "resumed" };
    Ok(format!("resourcepolicy.windfall.dev/{} {word}", policy.name_any()))
}
