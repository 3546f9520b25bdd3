//! Measures the platform without the rest of the command line: what `windfall bench platform` does, in a program that
//! is built in a fraction of the time. `cargo run --profile quick -p windfall-embedded --example platform_bench`
#![allow(clippy::print_stdout, reason = "this is a program")]

use windfall_control::CallLoop;
use windfall_core::CallSafeguardChain;
use windfall_embedded::bench::{BenchSettings, run, run_client};
use windfall_policy::Fixed;
use windfall_sandbox::Isolation;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    windfall_functions::serve_if_function();
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, part, description] = &arguments[..]
        && part == "client"
    {
        println!("{}", run_client(description)?);
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let settings = BenchSettings {
        client: (std::env::current_exe()?, vec!["client".to_owned()]),
        folder: folder.path().to_owned(),
        isolation: Isolation::Sandbox,
        cold_starts: 40,
        warm_calls: 2000,
        seconds: 5.0,
        connections: 64,
    };
    let control = CallLoop::new(Box::new(Fixed), CallSafeguardChain::default());
    let results = run(&settings, Box::new(control))?;
    println!("{}", serde_json::to_string_pretty(&results)?);
    Ok(())
}
