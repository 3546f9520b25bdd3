//! `windfall fn invoke`: one call, its result, and where the time went.

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::client::{Client, Reply, encoded};
use super::connection::ConnectionArguments;
use super::time_split::TimeSplit;
use super::with_client;
use crate::arguments::Format;
use crate::output::{print, print_json};

/// Arguments of `fn invoke`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Name of the function, also PACKAGE/NAME
    name: String,
    /// Parameter, e.g. size=3; JSON where it is JSON, else text; can be given again
    #[arg(long = "param", short, value_name = "KEY=VALUE", value_parser = parameter)]
    parameters: Vec<(String, Value)>,
    /// All parameters as a JSON object, or @FILE
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// Do not wait for the result
    #[arg(long)]
    no_wait: bool,
    /// How to print the call
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// `key=value`, with a value in JSON or any text.
pub(super) fn parameter(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| format!("`{text}` is not of the form KEY=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let parameters = arguments.parameters()?;
    with_client(&arguments.connection, async |client| {
        let began = Instant::now();
        let blocking = if arguments.no_wait { "false" } else { "true" };
        let path = format!("/actions/{}?blocking={blocking}", encoded(&arguments.name));
        let reply = client.send(Method::POST, &path, Some(&parameters)).await?;
        let elapsed = began.elapsed().as_secs_f64() * 1e3;
        show(arguments, client, reply, elapsed)
    })
}

impl Arguments {
    fn parameters(&self) -> anyhow::Result<Value> {
        let text = match self.data.as_deref() {
            None => "{}".to_owned(),
            Some(data) => match data.strip_prefix('@') {
                Some(file) => {
                    fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?
                }
                None => data.to_owned(),
            },
        };
        let mut all: Map<String, Value> =
            serde_json::from_str(&text).context("--data is not a JSON object")?;
        all.extend(self.parameters.iter().cloned());
        Ok(all.into())
    }
}

fn show(
    arguments: &Arguments,
    client: &Client,
    reply: Reply,
    elapsed: f64,
) -> anyhow::Result<ExitCode> {
    if reply.status == StatusCode::ACCEPTED {
        return accepted(arguments, &reply.body, elapsed);
    }
    // A function that failed has a record too, with its status in the body.
    let is_record = reply.body["activationId"].is_string();
    let record = if is_record {
        reply.body
    } else {
        reply.success(&format!("function {}", arguments.name))?
    };
    let split = TimeSplit::read(&record);
    let response = &record["response"];
    let is_success = response["success"] == true;
    if arguments.format == Format::Json {
        let mut all = json!({
            "name": arguments.name, "activation": record["activationId"], "success": is_success,
            "status": response["status"], "result": response["result"], "elapsed_ms": elapsed,
            "logs": record["logs"], "host": client.host(),
        });
        if let (Some(all), Value::Object(parts)) = (all.as_object_mut(), split.json()) {
            all.extend(parts);
        }
        print_json(&all)?;
    } else {
        print_json(&response["result"])?;
        let status =
            if is_success { String::new() } else { format!(", {}", plain(&response["status"])) };
        eprintln!(
            "{}{status}: {elapsed:.1} ms\n  {}\n  activation {}",
            arguments.name,
            split.line(),
            plain(&record["activationId"])
        );
    }
    Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn accepted(arguments: &Arguments, body: &Value, elapsed: f64) -> anyhow::Result<ExitCode> {
    let activation = plain(&body["activationId"]);
    if arguments.format == Format::Json {
        print_json(
            &json!({ "name": arguments.name, "activation": activation, "elapsed_ms": elapsed }),
        )?;
    } else {
        print(&activation)?;
        eprintln!(
            "{}: accepted in {elapsed:.1} ms; `windfall fn logs {}` shows it",
            arguments.name, arguments.name
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_where_they_can_be() {
        assert_eq!(parameter("a=1"), Ok(("a".into(), json!(1))));
        assert_eq!(parameter("a=b=c"), Ok(("a".into(), json!("b=c"))));
        assert_eq!(parameter("a={\"b\":2}"), Ok(("a".into(), json!({"b": 2}))));
        assert!(parameter("a").is_err() && parameter("=1").is_err());
    }
}
