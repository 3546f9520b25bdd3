//! `windfall reproduce`: published systems and our own experiments, one file each with its
//! arguments. What is run, printed and drawn is in `windfall_studies::reproduce`.

mod ece471;
mod faasrm;
mod knative_concurrency;
mod scaling;
mod simppo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use windfall_studies::reproduce::{Reproduced, Request, Watcher};

use crate::arguments::Format;
use crate::commands::compare::all_threads;
use crate::output::{command_line, directory, print, write_whole};
use crate::progress::StageBar;

/// Repeat a published experiment and set our numbers beside its own.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The course project's scaling environment, its algorithms and its rewards
    ///
    /// Task 1: golden scores and a random exploration. Task 2: every algorithm on ten seeds, with and
    /// without the one feature that the reward depends on and the course does not show. Task 3: four
    /// reward designs with the course's ranking checks. Task 4: training curves, a checkpoint
    /// continued, and the trained policy against random actions over 2,000 steps. Exits with 1 if a
    /// bar was measured and missed.
    Ece471(ece471::Arguments),
    /// FaaSRM's sizes by a learned score network, its simulator, and the honest benchmark
    ///
    /// With `--platform embedded` the paper's OpenWhisk experiment on this machine instead: 268 calls
    /// of ten applications as real processes under seven managers (fixed, greedy, ensure, histogram,
    /// libra, faasrm, windfall) in turn, and the simulator's prediction of the same runs. Leaves
    /// `calls.csv` and `alone.jsonl` beside the page. Takes about 45 minutes and needs root.
    Faasrm(faasrm::Arguments),
    /// Knative's concurrency limit, found by load tests
    ///
    /// With `--platform embedded` three of the workloads on this machine: HTTP load against real
    /// processes, an eighth of the pods and of every request. Takes about 20 minutes and needs root.
    KnativeConcurrency(knative_concurrency::Arguments),
    /// Our own scaling environment: PPO beside classic policies on functions and hours it has not seen
    Scaling(scaling::Arguments),
    /// Many agents on shared nodes: training, online performance, growth to 110 functions, faults, chains
    ///
    /// With `--platform embedded` teams that learned in simulation decide about real processes of this
    /// machine, beside rules and beside the simulation of the same calls. Takes 9 minutes and needs root.
    Simppo(simppo::Arguments),
}

/// Where an experiment takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Platform {
    /// In virtual time
    #[default]
    Simulation,
    /// On this machine: real processes under real limits, as root
    Embedded,
}

/// What every reproduction understands.
#[derive(Args)]
struct Delivery {
    /// Less of everything: shows the same page in a fraction of the time
    #[arg(long)]
    quick: bool,
    /// Seeds to repeat what is random with
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Folder for the page and the numbers [default: runs/reproduce-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Delivery {
    /// Refuses `--seeds` where something else says how often an experiment is repeated.
    fn refuse_seeds(&self, instead: &str) -> anyhow::Result<()> {
        match self.seeds {
            Some(seeds) => bail!(
                "--seeds is {seeds}, which --platform embedded does not use; {instead} says how often it is repeated"
            ),
            None => Ok(()),
        }
    }

    /// Plays a reproduction, writes `report.html` and `results.json`, then prints the table, or the numbers for
    /// scripts. The exit code is 1 if something that is asked was missed.
    fn deliver<E: Into<anyhow::Error>>(
        &self,
        name: &str,
        threads: Option<usize>,
        reproduce: impl FnOnce(&Request<'_>, &dyn Watcher) -> Result<Reproduced, E>,
    ) -> anyhow::Result<ExitCode> {
        let folder =
            self.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/reproduce-{name}")));
        let request = Request {
            command: &command_line(),
            quick: self.quick,
            seeds: self.seeds,
            threads: threads.unwrap_or_else(all_threads),
            folder: &folder,
        };
        let reproduced = reproduce(&request, &StageBar::default()).map_err(Into::into)?;
        let Reproduced { page, text, json, is_missed } = reproduced;
        directory(&folder)?;
        write_whole(&folder.join("results.json"), &json)?;
        let report = folder.join("report.html");
        write_whole(&report, &page.html())?;
        match self.format {
            Format::Json => print(&json)?,
            Format::Text | Format::Csv | Format::Markdown => {
                print(&format!("{text}\n\nreport: {}", report.display()))?;
            }
        }
        Ok(ExitCode::from(u8::from(is_missed)))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Ece471(arguments) => ece471::run(arguments),
        Command::Faasrm(arguments) => faasrm::run(arguments),
        Command::KnativeConcurrency(arguments) => knative_concurrency::run(arguments),
        Command::Scaling(arguments) => scaling::run(arguments),
        Command::Simppo(arguments) => simppo::run(arguments),
    }
}

/// A folder with published data, below `$WINDFALL_DATA`.
pub(crate) fn data_folder(name: &str) -> PathBuf {
    let data =
        std::env::var_os("WINDFALL_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from);
    Path::new(&data).join(name)
}
