//! `windfall explain`: the story of one tick or one call.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use windfall_core::CallId;
use windfall_telemetry::explain::{Question, explain, headline};
use windfall_telemetry::journal::Entry;
use windfall_telemetry::{JournalFollower, JournalReader};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// How long to wait before a journal that is being written is read on.
const PAUSE: Duration = Duration::from_millis(200);

/// Explain what was seen, wanted, allowed and done at a tick or for a call, and how it ended.
///
/// With --follow, print one line per tick and interval of a run that is going on, until it ends.
///
/// Examples: windfall explain runs/simulate-1b2c call 812;
/// windfall explain runs/simulate-1b2c --follow
#[derive(Args)]
pub(crate) struct Arguments {
    /// A directory written by `windfall simulate`, or a journal
    run: PathBuf,
    /// `call 812` or `tick 12`
    #[arg(
        required_unless_present = "follow",
        conflicts_with = "follow",
        num_args = 1..=2,
        value_names = ["WHAT", "NUMBER"]
    )]
    what: Vec<String>,
    /// Print ticks and intervals as they are written
    #[arg(long)]
    follow: bool,
    /// How to print the story
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let path = journal_of(&arguments.run);
    if arguments.follow {
        follow(&path, arguments.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let question = question(&arguments.what)?;
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

/// Prints a journal as it grows, until its last line.
fn follow(path: &Path, format: Format) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let mut journal = JournalFollower::new(BufReader::new(wait_for(path)?));
    let mut ticks = 0;
    while !journal.is_complete() {
        let Some(entry) = journal.poll().with_context(named)? else {
            sleep(PAUSE);
            continue;
        };
        match format {
            Format::Json => print_entry(&entry)?,
            Format::Text | Format::Csv | Format::Markdown => {
                headline(ticks, &entry).map_or(Ok(()), |line| print(&line))?;
            }
        }
        ticks += u64::from(matches!(entry, Entry::Tick(_)));
    }
    Ok(())
}

/// One line of JSON per tick and interval.
fn print_entry(entry: &Entry) -> anyhow::Result<()> {
    match entry {
        Entry::Call(_) => Ok(()),
        Entry::Functions(functions) => {
            print(&serde_json::json!({ "functions": functions }).to_string())
        }
        Entry::Tick(tick) => print(&serde_json::json!({ "tick": tick }).to_string()),
        Entry::Interval(interval) => {
            print(&serde_json::json!({ "interval": interval }).to_string())
        }
        Entry::End(counts) => print(&serde_json::json!({ "end": counts }).to_string()),
    }
}

/// The file, once the run has begun to write it.
fn wait_for(path: &Path) -> anyhow::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    loop {
        match File::open(path) {
            // A run that has just been started has its folder first.
            Err(error)
                if error.kind() == ErrorKind::NotFound && folder.is_some_and(Path::is_dir) =>
            {
                sleep(PAUSE);
            }
            opened => {
                return opened.with_context(|| format!("{}: cannot be read", path.display()));
            }
        }
    }
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
