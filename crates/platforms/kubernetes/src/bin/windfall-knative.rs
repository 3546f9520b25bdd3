//! Load tests on Knative for `windfall reproduce`: reads one test per line of JSON, answers each with one line.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "lines are the interface")]

use std::io::BufRead as _;
use std::process::ExitCode;

use clap::Parser;
use windfall_kubernetes::knative_load_test::{Ground, LoadTest, run};

/// Runs load tests of a Knative Service on the cluster that KUBECONFIG names.
#[derive(Parser)]
#[command(name = "windfall-knative", version)]
struct Arguments {
    /// The namespace of the service.
    #[arg(long, env = "WINDFALL_KNATIVE_NAMESPACE", default_value = "default")]
    namespace: String,
    /// An image with the function, whose query has bloat, prime and sleep.
    #[arg(long, env = "WINDFALL_KNATIVE_IMAGE", default_value = "dev.local/function:1")]
    image: String,
    /// The address of Knative's ingress.
    #[arg(long, env = "WINDFALL_KNATIVE_INGRESS", default_value = "http://10.77.0.1")]
    ingress: String,
    /// The domain of Knative's routes.
    #[arg(long, env = "WINDFALL_KNATIVE_DOMAIN", default_value = "example.com")]
    domain: String,
}

fn main() -> ExitCode {
    match serve(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let Arguments { namespace, image, ingress, domain } = arguments;
    let ground = Ground { namespace, image, ingress, domain };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|problem| format!("starting the runtime: {problem}"))?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = runtime.block_on(kube::Client::try_default()).map_err(|problem| {
        format!("no cluster: {problem}; set KUBECONFIG or run inside a cluster")
    })?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|problem| format!("standard input: {problem}"))?;
        let test: LoadTest = serde_json::from_str(&line)
            .map_err(|problem| format!("`{line}` is not a load test: {problem}"))?;
        let report = runtime
            .block_on(run(&client, &ground, &test))
            .map_err(|problem| problem.to_string())?;
        println!("{}", serde_json::to_string(&report).map_err(|problem| problem.to_string())?);
    }
    Ok(())
}
