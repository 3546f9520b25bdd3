//! `windfall calibrate`: the simulator's model of functions, from recorded calls.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use windfall_core::CallRecord;
use windfall_studies::calibration::{Calibration, calibrate, csv, table};
use windfall_telemetry::JournalReader;
use windfall_telemetry::journal::{Entry, NamedFunction};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// Arguments of `calibrate`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A journal of `windfall serve --journal`, or of a reproduction on this machine
    journal: PathBuf,
    /// Cores of the machine that the calls ran on [default: those of this machine]
    #[arg(long, value_name = "N")]
    cores: Option<f64>,
    /// How to print the models
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cores = cores(arguments.cores)?;
    let (functions, records) = read(&arguments.journal)?;
    let calibration = calibrate(&functions, &records, cores);
    if calibration.functions.is_empty() {
        bail!(
            "{}: none of its {} calls can be used; a usable call was measured (its CPU time is in the journal), ran once \
             and kept its size, and a function needs four of them",
            arguments.journal.display(),
            calibration.read
        );
    }
    match arguments.format {
        Format::Json => print_json(&calibration)?,
        Format::Csv => print(&csv(&calibration))?,
        Format::Text => print(&table(&calibration))?,
        Format::Markdown => print(&markdown(&calibration))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn cores(given: Option<f64>) -> anyhow::Result<f64> {
    match given {
        Some(cores) if (0.1..=1024.0).contains(&cores) => Ok(cores),
        Some(cores) => bail!("--cores is {cores}, allowed is 0.1 to 1024"),
        None => {
            let here = std::thread::available_parallelism().context("the number of cores")?;
            Ok(usize::from(here) as f64)
        }
    }
}

/// Functions and calls of a journal, as far as it goes.
fn read(path: &Path) -> anyhow::Result<(Vec<NamedFunction>, Vec<CallRecord>)> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let reader = JournalReader::open(BufReader::new(file)).with_context(name)?;
    let (mut functions, mut calls) = (BTreeMap::new(), Vec::new());
    for entry in reader {
        match entry {
            Ok(Entry::Functions(more)) => {
                functions.extend(more.into_iter().map(|one| (one.id, one)))
            }
            Ok(Entry::Call(call)) => calls.push(*call),
            Ok(Entry::Tick(_) | Entry::Interval(_) | Entry::End(_)) => {}
            // What a running platform has not written yet is no reason to refuse the rest.
            Err(error) if error.is_cut_short() => break,
            Err(error) => return Err(error).with_context(name),
        }
    }
    Ok((functions.into_values().collect(), calls))
}

fn markdown(calibration: &Calibration) -> String {
    let mut lines = csv(calibration)
        .lines()
        .map(|line| format!("| {} |", line.replace(',', " | ")))
        .collect::<Vec<_>>();
    let columns = lines.first().map_or(0, |head| head.matches('|').count().saturating_sub(1));
    lines.insert(1.min(lines.len()), format!("|{}", "---|".repeat(columns)));
    lines.join("\n")
}
