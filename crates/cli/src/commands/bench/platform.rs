//! `windfall bench platform`: what the embedded platform costs on this machine.

use clap::Args;
use windfall_embedded::bench::{BenchResults, BenchSettings, run as measure, run_client};
use windfall_sandbox::Isolation;

use crate::arguments::Format;
use crate::commands::serve::deciders;
use crate::output::{print, print_json};

/// Cold starts, what a warm call costs beside a direct one, and calls per second.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Cold starts
    #[arg(long, value_name = "N", default_value_t = 40)]
    cold_starts: u32,
    /// Warm calls on each side
    #[arg(long, value_name = "N", default_value_t = 4000)]
    calls: u32,
    /// Seconds for which calls per second are counted
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Connections for that
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: u32,
    /// How strictly functions are isolated: process, sandbox or sandbox+userns
    #[arg(long, value_name = "LEVEL", default_value = "sandbox")]
    isolation: Isolation,
    /// The policy that sizes calls
    #[arg(long, value_name = "POLICY", default_value = "fixed")]
    policy: String,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One part of the benchmark, as the platform's process describes it.
#[derive(Args)]
pub(crate) struct ClientArguments {
    description: String,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("windfall-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let settings = BenchSettings {
        client: (std::env::current_exe()?, vec!["bench".to_owned(), "platform-client".to_owned()]),
        folder: folder.clone(),
        isolation: arguments.isolation,
        cold_starts: arguments.cold_starts,
        warm_calls: arguments.calls,
        seconds: arguments.seconds,
        connections: arguments.connections,
    };
    let (deciders, _) = deciders(&arguments.policy)?;
    let results = measure(&settings, deciders.control);
    // Whatever was measured, nothing of it is needed any more.
    let _ = std::fs::remove_dir_all(&folder);
    let results = results?;
    match arguments.format {
        Format::Json => print_json(&results),
        Format::Text | Format::Csv | Format::Markdown => print(&table(&results)),
    }
}

pub(super) fn run_part(arguments: &ClientArguments) -> anyhow::Result<()> {
    print(&run_client(&arguments.description).map_err(anyhow::Error::msg)?)
}

fn table(results: &BenchResults) -> String {
    let row =
        |what: &str, value: f64, allowed: &str| format!("{what:34} {value:>10.3}  {allowed}\n");
    let mut text = String::new();
    text += &row("cold start to first answer, p50 ms", results.cold_p50_ms, "at most 10");
    text += &row("cold start to first answer, p95 ms", results.cold_p95_ms, "");
    text += &row("warm call, p50 ms", results.warm_p50_ms, "");
    text += &row("straight to the instance, p50 ms", results.direct_p50_ms, "");
    text += &row("what the platform adds, p50 ms", results.warm_overhead_p50_ms, "at most 0.3");
    text += &row("what the platform adds, p99 ms", results.warm_overhead_p99_ms, "at most 1");
    text += &row("calls per second", results.calls_per_s, "at least 15000");
    text += &row("straight to the instance", results.direct_calls_per_s, "");
    text += &format!(
        "{} connections, isolation {}, limits by {}, {} errors, load average {:.1}",
        results.connections,
        results.isolation,
        results.driver,
        results.errors,
        results.load_average
    );
    text
}
