//! `windfall explain`: the story of one tick or one call.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use windfall_core::CallId;
use windfall_telemetry::JournalReader;
use windfall_telemetry::explain::{Question, explain};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// Tell what was seen, wanted, allowed and done at a tick or for a call, and what came of it.
///
/// Example: windfall explain runs/simulate-1b2c call 812
#[derive(Args)]
pub(crate) struct Arguments {
    /// A directory written by `windfall simulate`, or a journal
    run: PathBuf,
    /// `call 812` or `tick 12`
    #[arg(required = true, num_args = 1..=2, value_names = ["WHAT", "NUMBER"])]
    what: Vec<String>,
    /// How to print the story
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let question = question(&arguments.what)?;
    let path = journal_of(&arguments.run);
    let file = File::open(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let reader =
        JournalReader::open(BufReader::new(file)).with_context(|| path.display().to_string())?;
    let answer = explain(reader, question).with_context(|| path.display().to_string())?;
    match arguments.format {
        Format::Json => print_json(&answer.to_json())?,
        Format::Text | Format::Csv | Format::Markdown => print(&answer.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The journal in a run's directory, or the file itself.
pub(crate) fn journal_of(run: &Path) -> PathBuf {
    if run.is_dir() { run.join("journal.jsonl") } else { run.to_owned() }
}

/// `call 812`, `call:812` or just `812`.
fn question(what: &[String]) -> anyhow::Result<Question> {
    let words: Vec<&str> = what
        .iter()
        .flat_map(|word| word.split([':', ' ']))
        .filter(|word| !word.is_empty())
        .collect();
    let (kind, number) = match words[..] {
        [number] => ("call", number),
        [kind, number] => (kind, number),
        _ => bail!("`{}` is not a question; ask e.g. call 812 or tick 12", what.join(" ")),
    };
    let Ok(number) = number.parse::<u64>() else {
        bail!("`{number}` is not a number; ask e.g. call 812 or tick 12");
    };
    match kind {
        "call" => Ok(Question::Call(CallId(number))),
        "tick" => Ok(Question::Tick(number)),
        other => bail!("`{other}` is neither call nor tick"),
    }
}
