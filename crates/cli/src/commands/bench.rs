//! `windfall bench`: Windfall measured by itself. Speed is reported as a ratio to a baseline in the same
//! process, because machines are noisy; memory as the peak of a process of its own.

mod admission;
mod daemon;
mod learning;
mod platform;
mod scaling;
mod simulator;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Measure Windfall itself.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Calls and events per second, memory, and the ratio to a bare event queue
    Simulator(simulator::Arguments),
    /// Steps, samples and decisions of the learning core, and the ratio to bare matrix products
    Learning(learning::Arguments),
    /// Time and memory of deciding on instances at one tick
    Scaling(scaling::Arguments),
    /// Cold starts, overhead and calls per second of the embedded platform
    Platform(platform::Arguments),
    /// One part of the platform benchmark, in a process of its own
    #[command(hide = true)]
    PlatformClient(platform::ClientArguments),
    /// Time of deciding whether a node can take one more call
    Admission(admission::Arguments),
    /// Ticks, pages and rows of the manager with many functions, and what it costs
    Daemon(daemon::Arguments),
    /// One part of the simulator benchmark, in a process of its own
    #[command(hide = true)]
    SimulatorPart(simulator::Part),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Simulator(arguments) => simulator::run(arguments)?,
        Command::Learning(arguments) => learning::run(arguments)?,
        Command::Scaling(arguments) => scaling::run(arguments)?,
        Command::Platform(arguments) => platform::run(arguments)?,
        Command::PlatformClient(arguments) => platform::run_part(arguments)?,
        Command::Admission(arguments) => admission::run(arguments)?,
        Command::Daemon(arguments) => daemon::run(arguments)?,
        Command::SimulatorPart(part) => simulator::run_part(part)?,
    }
    Ok(ExitCode::SUCCESS)
}
