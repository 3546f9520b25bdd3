//! `windfall doctor`: what this machine permits.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use windfall_sandbox::{Capability, Host, HostCapabilities, HostOptions};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// Say what this machine permits.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Nothing is kept ready, since nothing is started but the trials.
    let host = Host::start(&HostOptions { parked: 0, ..HostOptions::default() })?;
    let found = host.capabilities();
    match arguments.format {
        Format::Json => {
            let rows: Vec<_> = found.capabilities.iter().map(row).collect();
            let leftovers = host.leftovers();
            print_json(
                &json!({ "driver": found.driver, "leftovers": leftovers, "capabilities": rows }),
            )?;
        }
        Format::Csv => print(&csv(found))?,
        Format::Markdown => print(&markdown(found))?,
        Format::Text => print(&text(found, host.leftovers()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn row(capability: &Capability) -> serde_json::Value {
    let Capability { name, state, how, fix } = capability;
    json!({ "name": name, "state": state, "how": how, "fix": fix })
}

fn text(found: &HostCapabilities, leftovers: &[String]) -> String {
    let mut lines = vec![format!("cgroup driver: {}", found.driver)];
    for Capability { name, state, how, fix } in &found.capabilities {
        lines.push(format!("{:18} {:9} {how}", name.to_string(), state.to_string()));
        lines.extend(fix.iter().map(|fix| format!("{:28} to fix: {fix}", "")));
    }
    lines.extend(leftovers.iter().map(|run| format!("removed what a crashed run left: {run}")));
    lines.join("\n")
}

fn csv(found: &HostCapabilities) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let line = |Capability { name, state, how, fix }: &Capability| {
        format!("{name},{state},{},{}", quoted(how), quoted(fix.as_deref().unwrap_or_default()))
    };
    let lines = found.capabilities.iter().map(line);
    ["name,state,how,fix".to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn markdown(found: &HostCapabilities) -> String {
    let line = |Capability { name, state, how, fix }: &Capability| {
        format!("| {name} | {state} | {how} | {} |", fix.as_deref().unwrap_or_default())
    };
    let head = ["| Capability | State | How | Fix |", "|---|---|---|---|"].map(str::to_owned);
    let lines = found.capabilities.iter().map(line);
    head.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}
