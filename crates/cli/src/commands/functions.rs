//! `windfall fn`: write, deploy and call functions on any platform that speaks OpenWhisk's API.

mod client;
mod connection;
mod deploy;
pub(crate) mod folder;
mod invoke;
mod logs;
mod new;
mod show;
mod time_split;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use client::Client;
pub(crate) use client::FnError;
use connection::ConnectionArguments;

/// Arguments of `fn`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a first function to start from
    New(new::Arguments),
    /// Deploy a function from a source file, or a built-in one by its name
    ///
    ///   windfall fn deploy hello.py
    ///   windfall fn deploy hello.js --memory 128 --param greeting=hi --watch
    ///   windfall fn deploy primes
    #[command(verbatim_doc_comment)]
    Deploy(Box<deploy::Arguments>),
    /// Call a function and print its result and where the time went
    ///
    ///   windfall fn invoke hello --param name=you
    ///   windfall fn invoke hello --data @event.json --no-wait
    #[command(verbatim_doc_comment)]
    Invoke(invoke::Arguments),
    /// List functions
    List(show::ListArguments),
    /// Print everything about a function
    Get(show::GetArguments),
    /// Print what functions wrote, newest calls last
    Logs(logs::Arguments),
    /// Remove a function
    Rm(show::RmArguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::New(arguments) => new::run(arguments),
        Command::Deploy(arguments) => deploy::run(arguments),
        Command::Invoke(arguments) => invoke::run(arguments),
        Command::List(arguments) => show::list(arguments),
        Command::Get(arguments) => show::get(arguments),
        Command::Logs(arguments) => logs::run(arguments),
        Command::Rm(arguments) => show::rm(arguments),
    }
}

/// Runs `work` with a client for the platform that flags, environment and files name.
fn with_client<T>(
    connection: &ConnectionArguments,
    work: impl AsyncFnOnce(&Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let client = Client::new(connection.resolve()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { work(&client).await })
}
