//! `windfall fn list`, `get` and `rm`.

use std::process::ExitCode;

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::client::encoded;
use super::connection::ConnectionArguments;
use super::time_split::annotation;
use super::with_client;
use crate::arguments::Format;
use crate::output::{print, print_json};

/// The most that one page of a list has.
const PAGE: usize = 200;

/// Arguments of `fn list`.
#[derive(Args)]
pub(super) struct ListArguments {
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// Arguments of `fn get`.
#[derive(Args)]
pub(super) struct GetArguments {
    /// Name of the function, also PACKAGE/NAME
    name: String,
    /// Print its code alone
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// Arguments of `fn rm`.
#[derive(Args)]
pub(super) struct RmArguments {
    /// Names of functions, also PACKAGE/NAME
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let functions = with_client(&arguments.connection, async |client| {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let path = format!("/actions?limit={PAGE}&skip={}", all.len());
            let page = client.ask(Method::GET, &path, None, "list of functions").await?;
            let page = page.as_array().cloned().unwrap_or_default();
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    })?;
    match arguments.format {
        Format::Json => print_json(&functions.iter().map(row).collect::<Vec<_>>())?,
        Format::Text | Format::Csv | Format::Markdown => print(&table(&functions))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `package/name`, or the name alone.
fn name(action: &Value) -> String {
    let name = action["name"].as_str().unwrap_or_default();
    match action["namespace"].as_str().unwrap_or_default().split_once('/') {
        Some((_, package)) => format!("{package}/{name}"),
        None => name.to_owned(),
    }
}

fn row(action: &Value) -> Value {
    json!({
        "name": name(action), "kind": annotation(action, "exec"), "version": action["version"],
        "memory_mib": action["limits"]["memory"], "timeout_ms": action["limits"]["timeout"],
        "concurrency": action["limits"]["concurrency"], "updated_ms": action["updated"],
    })
}

fn table(functions: &[Value]) -> String {
    if functions.is_empty() {
        return "no functions; `windfall fn new hello` writes a first one\n".to_owned();
    }
    let widest = functions
        .iter()
        .map(|action| name(action).chars().count())
        .max()
        .unwrap_or_default()
        .max(8);
    let mut text = format!(
        "{:<widest$}  {:<16} {:>8} {:>8} {:>11}\n",
        "function", "kind", "version", "MiB", "timeout ms"
    );
    for action in functions {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!(
            "{:<widest$}  {:<16} {:>8} {:>8} {:>11}\n",
            name(action),
            plain(annotation(action, "exec")),
            plain(&action["version"]),
            plain(&action["limits"]["memory"]),
            plain(&action["limits"]["timeout"]),
        );
    }
    text
}

pub(super) fn get(arguments: &GetArguments) -> anyhow::Result<ExitCode> {
    let action = with_client(&arguments.connection, async |client| {
        let path = format!("/actions/{}?code={}", encoded(&arguments.name), arguments.code);
        Ok(client.ask(Method::GET, &path, None, &format!("function {}", arguments.name)).await?)
    })?;
    match action["exec"]["code"].as_str() {
        Some(code) if arguments.code => print(code)?,
        _ => print_json(&action)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn rm(arguments: &RmArguments) -> anyhow::Result<ExitCode> {
    with_client(&arguments.connection, async |client| {
        for name in &arguments.names {
            let path = format!("/actions/{}", encoded(name));
            client.ask(Method::DELETE, &path, None, &format!("function {name}")).await?;
            print(&format!("removed {name}"))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}
