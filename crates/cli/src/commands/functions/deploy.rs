//! `windfall fn deploy`: a source file becomes a function.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::client::{Client, FnError, encoded};
use super::connection::ConnectionArguments;
use super::invoke::parameter;
use super::with_client;
use crate::arguments::Format;
use crate::output::{print, print_json};

/// How often `--watch` looks at the file.
const LOOK: Duration = Duration::from_millis(200);

/// Arguments of `fn deploy`.
#[derive(Args)]
pub(super) struct Arguments {
    /// A source file (.py, .js), an archive (.zip, with --kind), or the name of a built-in function
    source: String,
    /// Name of the function, also PACKAGE/NAME; else that of the file
    #[arg(long)]
    name: Option<String>,
    /// Runtime, e.g. python:3; else by the ending of the file
    #[arg(long)]
    kind: Option<String>,
    /// Function to call in the source; else main
    #[arg(long, value_name = "NAME")]
    main: Option<String>,
    /// Deploy again whenever the file is saved
    #[arg(long)]
    watch: bool,
    /// Memory in MiB
    #[arg(long, value_name = "MIB", help_heading = "Limits")]
    memory: Option<u32>,
    /// Longest run in milliseconds
    #[arg(long, value_name = "MS", help_heading = "Limits")]
    timeout: Option<u64>,
    /// Calls in one instance at a time
    #[arg(long, value_name = "N", help_heading = "Limits")]
    concurrency: Option<u32>,
    /// Parameter that every call has, e.g. size=3; can be given again
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = parameter)]
    parameters: Vec<(String, Value)>,
    /// Annotation; can be given again
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = parameter)]
    annotations: Vec<(String, Value)>,
    /// Answer plain HTTP requests without a key
    #[arg(long)]
    web: bool,
    /// How to print what was deployed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    with_client(&arguments.connection, async |client| {
        let source = Source::find(arguments, client).await?;
        let mut deployed = source.read()?;
        deploy(arguments, client, &source, &deployed).await?;
        if !arguments.watch {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            tokio::time::sleep(LOOK).await;
            // An editor may replace the file in two steps: what cannot be read now can be a moment later.
            let Ok(now) = source.read() else { continue };
            if now != deployed {
                deployed = now;
                if let Err(error) = deploy(arguments, client, &source, &deployed).await {
                    eprintln!("error: {error:#}");
                }
            }
        }
    })
}

/// The runtime of files with this ending.
pub(super) fn kind_of(ending: &str) -> Option<&'static str> {
    match ending {
        "py" => Some("python:default"),
        "js" | "mjs" | "cjs" => Some("nodejs:default"),
        _ => None,
    }
}

/// What is deployed.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) kind: String,
    from: Origin,
}

enum Origin {
    /// Source text.
    Text(PathBuf),
    /// An archive, sent in base64.
    Archive(PathBuf),
    /// Code that the platform has.
    BuiltIn(String),
}

impl Source {
    async fn find(arguments: &Arguments, client: &Client) -> Result<Self, FnError> {
        let path = Path::new(&arguments.source);
        if !path.is_file() {
            return Self::built_in(arguments, client).await;
        }
        Self::of_file(path, arguments.name.clone(), arguments.kind.clone())
    }

    /// A source file or an archive; name and kind by the file where they are not given.
    pub(super) fn of_file(
        path: &Path,
        name: Option<String>,
        kind: Option<String>,
    ) -> Result<Self, FnError> {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.or(stem).unwrap_or_default();
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
        let ending = ending.unwrap_or_default();
        let kind = kind.or_else(|| kind_of(&ending).map(str::to_owned)).ok_or_else(|| {
            let shown = path.display();
            FnError::Source(format!(
                "{shown}: the runtime of `.{ending}` is not known; name it with --kind"
            ))
        })?;
        let from =
            if ending == "zip" { Origin::Archive(path.into()) } else { Origin::Text(path.into()) };
        Ok(Self { name, kind, from })
    }

    /// A name that the platform has code for: a kind `builtin:NAME`, or `builtin` with the name as its code.
    async fn built_in(arguments: &Arguments, client: &Client) -> Result<Self, FnError> {
        let wanted = &arguments.source;
        let description = client.description().await?;
        let kinds = description["runtimes"]["builtin"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<&str> =
            kinds.iter().filter_map(|runtime| runtime["kind"].as_str()).collect();
        let own = format!("builtin:{wanted}");
        let kind = kinds
            .iter()
            .find(|kind| **kind == own)
            .or_else(|| kinds.iter().find(|kind| **kind == "builtin"));
        let looks_like_file = wanted.contains(['.', '/']);
        let Some(kind) = kind.filter(|_| !looks_like_file) else {
            let known: Vec<&str> =
                kinds.iter().filter_map(|kind| kind.strip_prefix("builtin:")).collect();
            let known = if known.is_empty() {
                String::new()
            } else {
                format!("; built in are {}", known.join(", "))
            };
            return Err(FnError::Source(format!(
                "`{wanted}` is neither a file nor a built-in function{known}"
            )));
        };
        let name = arguments.name.clone().unwrap_or_else(|| wanted.clone());
        Ok(Self { name, kind: (*kind).to_owned(), from: Origin::BuiltIn(wanted.clone()) })
    }

    /// The code as it is sent.
    pub(super) fn read(&self) -> Result<String, FnError> {
        let unreadable = |path: &Path, why: std::io::Error| {
            FnError::Source(format!("{}: {why}", path.display()))
        };
        match &self.from {
            Origin::Text(path) => fs::read_to_string(path).map_err(|why| unreadable(path, why)),
            Origin::Archive(path) => fs::read(path)
                .map(|bytes| STANDARD.encode(bytes))
                .map_err(|why| unreadable(path, why)),
            Origin::BuiltIn(name) => Ok(name.clone()),
        }
    }
}

fn pairs(list: &[(String, Value)]) -> Vec<Value> {
    list.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

/// The body of the request: only what was asked for, so that an update keeps the rest.
fn body(arguments: &Arguments, source: &Source, code: &str) -> Value {
    let mut exec = json!({ "kind": source.kind, "code": code });
    if matches!(source.from, Origin::Archive(_)) {
        exec["binary"] = true.into();
    }
    if let Some(main) = &arguments.main {
        exec["main"] = main.as_str().into();
    }
    let mut limits = Map::new();
    for (key, value) in [
        ("memory", arguments.memory.map(u64::from)),
        ("timeout", arguments.timeout),
        ("concurrency", arguments.concurrency.map(u64::from)),
    ] {
        if let Some(value) = value {
            limits.insert(key.to_owned(), value.into());
        }
    }
    let mut annotations = pairs(&arguments.annotations);
    if arguments.web {
        annotations.push(json!({ "key": "web-export", "value": true }));
    }
    let mut body = json!({ "exec": exec, "limits": limits });
    if !arguments.parameters.is_empty() {
        body["parameters"] = pairs(&arguments.parameters).into();
    }
    if !annotations.is_empty() {
        body["annotations"] = annotations.into();
    }
    body
}

async fn deploy(
    arguments: &Arguments,
    client: &Client,
    source: &Source,
    code: &str,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let path = format!("/actions/{}?overwrite=true", encoded(&source.name));
    let what = format!("function {}", source.name);
    let action =
        client.ask(Method::PUT, &path, Some(&body(arguments, source, code)), &what).await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    let url = arguments.web.then(|| web_address(client, &action));
    if arguments.format == Format::Json {
        return print_json(&json!({
            "name": source.name, "version": action["version"], "kind": action["exec"]["kind"],
            "limits": action["limits"], "elapsed_ms": took, "url": url,
        }));
    }
    let limits = &action["limits"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut line = format!(
        "deployed {} {} ({}, {} MiB, {} ms) in {took:.1} ms\n",
        source.name,
        text(&action["version"]),
        text(&action["exec"]["kind"]),
        limits["memory"],
        limits["timeout"],
    );
    if let Some(url) = url {
        line += &format!("  {url}\n");
    }
    print(&line)
}

fn web_address(client: &Client, action: &Value) -> String {
    let place = action["namespace"].as_str().unwrap_or_default();
    let place = if place.contains('/') { place.to_owned() } else { format!("{place}/default") };
    let name = action["name"].as_str().unwrap_or_default();
    format!("{}/api/v1/web/{}/{}", client.host(), encoded(&place), encoded(name))
}
