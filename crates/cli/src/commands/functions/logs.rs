//! `windfall fn logs`: what functions wrote, once or as it comes.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::client::{Client, encoded};
use super::connection::ConnectionArguments;
use super::time_split::TimeSplit;
use super::with_client;
use crate::arguments::Format;
use crate::output::print;

/// How often `-f` asks for more.
const LOOK: Duration = Duration::from_millis(300);
/// Records end in another order than they start: each look goes back so far.
const OVERLAP_MS: u64 = 10 * 60 * 1000;

/// Calls that are remembered as shown.
const REMEMBERED: usize = 10_000;

/// Arguments of `fn logs`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Only this function, also PACKAGE/NAME
    name: Option<String>,
    /// Wait for more until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Calls to begin with
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// How to print each call; json is one object per line
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    with_client(&arguments.connection, async |client| {
        let mut seen = BTreeSet::new();
        let mut newest = 0;
        let mut limit = arguments.limit;
        loop {
            let since = if newest == 0 { 0 } else { newest - OVERLAP_MS.min(newest) };
            for record in records(arguments, client, since, limit).await? {
                let id = record["activationId"].as_str().unwrap_or_default().to_owned();
                newest = newest.max(record["start"].as_u64().unwrap_or_default());
                if seen.insert(id) {
                    show(arguments.format, &record)?;
                }
            }
            // Identifiers grow with time, so the first ones are those that no later look returns.
            while seen.len() > REMEMBERED {
                seen.pop_first();
            }
            if !arguments.follow {
                return Ok(ExitCode::SUCCESS);
            }
            limit = 200;
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// Oldest first.
async fn records(
    arguments: &Arguments,
    client: &Client,
    since: u64,
    limit: u32,
) -> anyhow::Result<Vec<Value>> {
    let mut path = format!("/activations?docs=true&limit={limit}&since={since}");
    if let Some(name) = &arguments.name {
        path += &format!("&name={}", encoded(name).replace('/', "%2F"));
    }
    let records = client.ask(Method::GET, &path, None, "list of activations").await?;
    Ok(records.as_array().into_iter().flatten().rev().cloned().collect())
}

fn show(format: Format, record: &Value) -> anyhow::Result<()> {
    let split = TimeSplit::read(record);
    if format == Format::Json {
        let line = json!({
            "name": record["name"], "activation": record["activationId"], "start_ms_since_1970": record["start"],
            "status": record["response"]["status"], "logs": record["logs"], "times": split.json(),
        });
        return print(&line.to_string());
    }
    let plain = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = plain(&record["response"]["status"]);
    let mut text = format!(
        "{} {status}, {}  {}\n",
        plain(&record["name"]),
        split.line(),
        plain(&record["activationId"])
    );
    for line in record["logs"].as_array().into_iter().flatten() {
        text += &format!("  {}\n", plain(line));
    }
    if status != "success" && status != "application error" {
        text += &format!("  {}\n", record["response"]["result"]["error"]);
    }
    print(&text)
}
