//! `windfall policy`: what is inside a checkpoint.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::Value;
use windfall_rl::Checkpoint;
use windfall_rl::checkpoint::Contents;

use crate::arguments::Format;
use crate::output::{print, print_json};
use windfall_studies::environments;

/// Look into trained policies.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tell what a checkpoint holds, and whether it is whole
    ///
    /// Refuses, with the reason, a file that is no checkpoint of Windfall, that is only a part of one,
    /// whose weights do not have the shape it names, or whose environment has changed since.
    Inspect(Inspect),
}

/// Arguments of `policy inspect`.
#[derive(Args)]
struct Inspect {
    /// The checkpoint
    file: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::Inspect(inspect) = &arguments.command;
    let checkpoint = open(&inspect.file)?;
    let contents = checkpoint.contents().with_context(|| inspect.file.display().to_string())?;
    match inspect.format {
        Format::Json => print_json(&contents)?,
        Format::Text | Format::Csv | Format::Markdown => print(&text(&contents))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a checkpoint. If its environment is known here, it must still be the same.
pub(crate) fn open(path: &Path) -> anyhow::Result<Checkpoint> {
    let read = || {
        let checkpoint = Checkpoint::open(path)?;
        if let Ok(entry) = environments::find(&checkpoint.header.environment.id) {
            checkpoint.header.check_environment(&entry.spec())?;
        }
        Ok::<_, windfall_rl::CheckpointError>(checkpoint)
    };
    read().with_context(|| path.display().to_string())
}

fn text(contents: &Contents) -> String {
    let header = &contents.header;
    let shape = header.network.as_ref().map_or_else(
        || "a table".to_owned(),
        |shape| {
            let mut widths = vec![shape.inputs];
            widths.extend(&shape.hidden);
            widths.push(shape.outputs);
            let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
            format!("{} {:?}", widths.join("-"), shape.activation).to_lowercase()
        },
    );
    let mut text = format!(
        "checkpoint  {} / {} / seed {}\nstands at   iteration {} of {}, {} steps, {} environments\n\
         decides by  {shape}, {} numbers\nactions     {}\n",
        header.algorithm,
        header.environment.id,
        header.seed.get(),
        header.iteration,
        header.settings.get("iterations").unwrap_or(&Value::Null),
        header.steps,
        contents.environments,
        contents.parameters,
        header.environment.actions.join(", "),
    );
    for feature in &header.environment.features {
        let seen = contents.normalisation.iter().find(|seen| seen.feature == feature.name);
        let seen = seen.map_or_else(String::new, |seen| {
            format!("   seen {:.4} +- {:.4}", seen.mean, seen.deviation)
        });
        text +=
            &format!("feature     {:28} {} to {}{seen}\n", feature.name, feature.low, feature.high);
    }
    for (name, value) in header.settings.as_object().into_iter().flatten() {
        text += &format!("setting     {name:28} {}\n", plain(value));
    }
    for stored in &contents.tensors {
        let shape: Vec<String> = stored.shape.iter().map(usize::to_string).collect();
        text +=
            &format!("holds       {:28} {} {}\n", stored.name, stored.numbers, shape.join(" x "));
    }
    text
}

/// A setting without the digits that a float does not have.
fn plain(value: &Value) -> String {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "settings are stored from f32")]
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |number| (number as f32).to_string())
        }
        Value::Object(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|(name, part)| format!("{name} {}", plain(part))).collect();
            parts.join(", ")
        }
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
