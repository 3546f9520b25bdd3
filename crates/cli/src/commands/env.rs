//! `windfall env`: an environment as a conversation of JSON lines on standard input and output.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use windfall_experiments::live_scaling::{self, LiveScaling};
use windfall_rl::conversation::Conversation;
use windfall_rl::{Entry, Environment};

use crate::arguments::{Format, Part};
use crate::output::{print, print_json};
use windfall_studies::environments;

/// Arguments of `env`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Id of the environment, or `list` to describe all of them; windfall/LiveScaling-v0 is not
    /// simulated: it runs processes on this machine, as root
    #[arg(value_name = "ENV")]
    id: String,
    /// Which part of its world is shown
    #[arg(long, value_enum, default_value_t)]
    split: Part,
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Longer lines are no sentence of this conversation.
const LONGEST_LINE: u64 = 1 << 20;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.id == "list" {
        list(arguments.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment: Box<dyn Environment> = match arguments.id.as_str() {
        live_scaling::ID => Box::new(LiveScaling::start(live_scaling::Settings::default())?),
        id => (environments::find(id)?.make)(arguments.split.into()),
    };
    let mut conversation = Conversation::new(environment);
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    while let Some(line) = next_line(&mut input).context("standard input cannot be read")? {
        let answer = match line {
            Line::Whole(line) if line.trim().is_empty() => continue,
            Line::Whole(line) => conversation.answer(&line),
            Line::TooLong => json!({
                "error": format!("a line has more than {LONGEST_LINE} bytes"),
            })
            .to_string(),
        };
        // The other side waits for every answer, so nothing may linger in a buffer.
        writeln!(output, "{answer}").and_then(|()| output.flush())?;
    }
    Ok(ExitCode::SUCCESS)
}

enum Line {
    Whole(String),
    TooLong,
}

/// The next line, or nothing at the end. One that is too long is read to its end and forgotten.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    io::Read::take(&mut *input, LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') || (bytes.len() as u64) < LONGEST_LINE {
        return Ok(Some(Line::Whole(String::from_utf8_lossy(&bytes).into_owned())));
    }
    while bytes.last() != Some(&b'\n') {
        bytes.clear();
        if io::Read::take(&mut *input, LONGEST_LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
    }
    Ok(Some(Line::TooLong))
}

fn list(format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            let described = |entry: &Entry| {
                let mut json = json!(entry.spec());
                json["summary"] = entry.summary.into();
                json
            };
            print_json(&environments::all().map(described).collect::<Vec<_>>())
        }
        Format::Text | Format::Csv | Format::Markdown => {
            let texts: Vec<String> = environments::all().map(text).collect();
            print(&texts.join("\n"))
        }
    }
}

fn text(entry: &Entry) -> String {
    let spec = entry.spec();
    let mut text = format!("{}\n  {}\n", entry.id, entry.summary);
    for feature in &spec.features {
        text += &format!("  sees   {:28} {} to {}\n", feature.name, feature.low, feature.high);
    }
    let numbered: Vec<String> =
        spec.actions.iter().enumerate().map(|(place, name)| format!("{place} {name}")).collect();
    text + &format!("  does   {}\n", numbered.join(", "))
}
