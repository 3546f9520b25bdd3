//! The program: the controller, what it needs installed, and the guests.

mod program;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    program::run(program::Arguments::parse())
}
