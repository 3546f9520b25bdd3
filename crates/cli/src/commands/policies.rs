//! `windfall policies`: what can be run.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use windfall_registry::REGISTRY;

use crate::arguments::Format;
use crate::output::{print, print_json};

/// List the policies.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match arguments.format {
        Format::Json => {
            let list: Vec<_> = REGISTRY
                .iter()
                .map(|entry| json!({ "name": entry.name, "summary": entry.summary, "default": entry.by_default }))
                .collect();
            print_json(&list)?;
        }
        Format::Text | Format::Csv | Format::Markdown => {
            let lines: Vec<String> = REGISTRY
                .iter()
                .map(|entry| format!("{:18} {}", entry.name, entry.summary))
                .collect();
            print(&lines.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
