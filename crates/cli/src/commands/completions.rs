//! `windfall completions`: a script for the shell.

use std::io;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a completion script, e.g. `windfall completions bash > ~/.windfall-completions`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "windfall", &mut io::stdout());
    Ok(ExitCode::SUCCESS)
}
