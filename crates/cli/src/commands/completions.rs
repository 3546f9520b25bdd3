//! `windfall completions`: a script for the shell.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::output::print;

/// Print a completion script, e.g. `windfall completions bash > ~/.windfall-completions`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut command = crate::arguments::Arguments::command();
    // Into memory first: the generator panics where a reader, such as `head`, has gone away.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "windfall", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
