//! `windfall db`: the manager's database from outside.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use windfall_daemon::database::{ExportFormat, TABLES, check, export, file_in, vacuum};

use crate::output::{directory, print};

/// Check, shrink or export the manager's database.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check that the file is intact; exit code 1 if it is not
    Check(Place),
    /// Give the space of deleted rows back
    Vacuum(Place),
    /// Write tables as files for other programs
    Export(ExportArguments),
}

#[derive(Args)]
struct Place {
    /// Folder of the database
    #[arg(long, value_name = "DIR", default_value = "runs/up")]
    state: PathBuf,
}

impl Place {
    fn file(&self) -> anyhow::Result<PathBuf> {
        let file = file_in(&self.state);
        if !file.is_file() {
            bail!(
                "{} does not exist; --state names the folder that `windfall up` used",
                file.display()
            );
        }
        Ok(file)
    }
}

#[derive(Args)]
struct ExportArguments {
    #[command(flatten)]
    place: Place,
    /// Table to write; all of them if none is given
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value_t)]
    format: RowFormat,
    /// Folder for the files, or - for standard output
    #[arg(long, value_name = "DIR", default_value = "export")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RowFormat {
    /// Comma-separated values
    #[default]
    Csv,
    /// One JSON object per line
    Jsonl,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::Check(place) => {
            let problems = check(&place.file()?)?;
            if problems.is_empty() {
                print("intact")?;
                return Ok(ExitCode::SUCCESS);
            }
            print(&problems.join("\n"))?;
            Ok(ExitCode::from(1))
        }
        Action::Vacuum(place) => {
            let (before, after) = vacuum(&place.file()?)?;
            print(&format!("{before} bytes before, {after} after"))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Export(arguments) => {
            export_tables(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn export_tables(arguments: &ExportArguments) -> anyhow::Result<()> {
    let file = arguments.place.file()?;
    let (format, ending) = match arguments.format {
        RowFormat::Csv => (ExportFormat::Csv, "csv"),
        RowFormat::Jsonl => (ExportFormat::JsonLines, "jsonl"),
    };
    let tables = match &arguments.table {
        Some(table) => vec![table.as_str()],
        None => TABLES.to_vec(),
    };
    if arguments.out == Path::new("-") {
        let mut out = std::io::stdout().lock();
        for table in tables {
            export(&file, table, format, &mut out)?;
        }
        return Ok(out.flush()?);
    }
    directory(&arguments.out)?;
    for table in tables {
        let path = arguments.out.join(format!("{table}.{ending}"));
        let target = File::create(&path)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        let mut target = BufWriter::new(target);
        let rows = export(&file, table, format, &mut target)?;
        target.flush()?;
        print(&format!("{}: {rows} rows", path.display()))?;
    }
    Ok(())
}
