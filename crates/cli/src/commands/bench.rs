//! `windfall bench`: Windfall measured by itself. Speed is reported as a ratio to a baseline in the same
//! process, because machines are noisy; memory as the peak of a process of its own.

mod learning;
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
    /// One part of the simulator benchmark, in a process of its own
    #[command(hide = true)]
    SimulatorPart(simulator::Part),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Simulator(arguments) => simulator::run(arguments)?,
        Command::Learning(arguments) => learning::run(arguments)?,
        Command::Scaling(arguments) => scaling::run(arguments)?,
        Command::SimulatorPart(part) => simulator::run_part(part)?,
    }
    Ok(ExitCode::SUCCESS)
}
