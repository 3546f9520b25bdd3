//! The `windfall` command. Standard output is data, standard error is conversation. Exit codes: 0 done,
//! 1 the answer is "no", 2 it could not be done.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is where printing belongs")]

mod arguments;
mod commands;
#[cfg(test)]
mod documented;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    // An instance of a built-in function is this program once more, and waits for everything that comes before.
    windfall_functions::serve_if_function();
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Up(arguments) => commands::up::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Db(arguments) => commands::db::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Simulate(arguments) => commands::simulate::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Capacity(arguments) => commands::capacity::run(&arguments),
        Command::Frontier(arguments) => commands::frontier::run(&arguments),
        Command::Fn(arguments) => commands::functions::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Load(arguments) => commands::load::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Command::Reproduce(arguments) => commands::reproduce::run(&arguments),
        Command::Conformance(arguments) => commands::conformance::run(&arguments),
        Command::Train(arguments) => commands::train::run(&arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(&arguments),
        Command::Env(arguments) => commands::env::run(&arguments),
        Command::Policy(arguments) => commands::policy::run(&arguments),
        Command::Policies(arguments) => commands::policies::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
    };
    match done {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(2)
        }
    }
}
