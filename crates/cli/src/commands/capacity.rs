//! `windfall capacity`: how much load the same machines hold while an objective holds.

mod kernel;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use windfall_studies::capacity::contestants::{Choice, Contestant};
use windfall_studies::capacity::objective::{Objective, ObjectiveError, ObjectiveSettings};
use windfall_studies::capacity::page::document;
use windfall_studies::capacity::search::Search;
use windfall_studies::capacity::summary::{CapacitySummary, summarize};
use windfall_studies::capacity::texts::{curves_to_csv, to_csv, to_markdown, to_text};
use windfall_studies::capacity::worlds::{CapacityWorld, NAMES};
use windfall_studies::capacity::{Capacity, CapacityResult, CapacityRow, CapacityWatcher};
use windfall_telemetry::report::ReportContext;

use crate::arguments::{CpuModelName, Format, WorldArguments, seeds, threads};
use crate::commands::compare::all_threads;
use crate::commands::reproduce::Platform;
use crate::output::{command_line, directory, print, print_json, write_whole};
use crate::progress;

/// How much load do the same machines hold while an objective holds?
///
/// Raises the load until service breaks the objective: too many slow calls, overall or in a class of
/// duration, calls that run longer than at their own reservation, somebody who waits too long, calls
/// killed for memory. Every policy at its best over-commit, also with our queue order, relative to
/// fixed sizes. Without arguments: a generated half hour and the strongest policies of each kind.
///
/// With --platform embedded real functions on this machine instead: the same calls for every policy,
/// load raised step by step, and the simulator's prediction of the same ramps. Needs root.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where load is raised
    #[arg(long, value_enum, default_value_t)]
    platform: Platform,
    /// Worlds made for this question, or `all`; --scenario and --trace take their place
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "World")]
    world: Vec<String>,
    #[command(flatten)]
    given: WorldArguments,
    /// Nodes, unless one would be smaller than the largest reservation
    #[arg(hide_short_help = true, long, value_name = "N", help_heading = "World")]
    nodes: Option<u32>,
    /// MiB for each core of a node
    #[arg(hide_short_help = true, long, value_name = "MIB", help_heading = "World")]
    mib_per_core: Option<f64>,
    /// Only policies whose names begin like one of these; fixed always takes part
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Runs")]
    policies: Vec<String>,
    /// Every incumbent at every over-commit, not only a few
    #[arg(long, help_heading = "Runs")]
    all: bool,
    /// Over-commits to try instead of the usual ones
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FACTORS",
        value_delimiter = ',',
        help_heading = "Runs"
    )]
    over_commits: Vec<f64>,
    /// A setting of a policy, e.g. windfall-admission.z=0.25
    #[arg(
        hide_short_help = true,
        long = "set",
        value_name = "POLICY.KEY=VALUE",
        help_heading = "Runs"
    )]
    set: Vec<String>,
    /// 5 for seeds 1 to 5, or a list 7,9 or a range 3-6
    #[arg(long, value_name = "SEEDS", value_parser = seeds, default_value = "3", help_heading = "Runs")]
    seeds: std::vec::Vec<u64>,
    /// Leave incumbents that hold less than 85 % of the best of their kind on the first seed out of the others
    #[arg(hide_short_help = true, long, help_heading = "Runs")]
    race: bool,
    /// Threads; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Runs")]
    threads: Option<usize>,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    kernel: kernel::KernelArguments,
    /// How to print the results
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    /// Directory for report and results
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Take what an interrupted measurement has left there
    #[arg(long, help_heading = "Output")]
    resume: bool,
}

/// What service has to be like.
#[derive(Args)]
struct ObjectiveArguments {
    /// Share of calls that may be slow, overall and in every class of duration [default: 0.01, embedded: 0.05]
    #[arg(hide_short_help = true, long, value_name = "SHARE", help_heading = "Objective")]
    slow_share: Option<f64>,
    /// A call is slow if its bounded slowdown is above this
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FACTOR",
        default_value_t = 2.0,
        help_heading = "Objective"
    )]
    slow_above: f64,
    /// Share of calls that may run longer than at their reservation [default: 0.001, embedded: 0.1]
    #[arg(hide_short_help = true, long, value_name = "SHARE", help_heading = "Objective")]
    violation_share: Option<f64>,
    /// A call runs longer if it takes more than so many times as long [default: 1.05, embedded: 1.5]
    #[arg(hide_short_help = true, long, value_name = "FACTOR", help_heading = "Objective")]
    violation_above: Option<f64>,
    /// The longest that anybody may wait; ten run times where that is more
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SECONDS",
        default_value_t = 60.0,
        help_heading = "Objective"
    )]
    longest_wait: f64,
    /// Judge all calls together instead of every class of duration
    #[arg(hide_short_help = true, long, help_heading = "Objective")]
    no_classes: bool,
}

impl ObjectiveArguments {
    /// What was asked for, the rest as `usual`.
    fn objective(&self, usual: &Objective) -> anyhow::Result<Objective> {
        let settings = ObjectiveSettings {
            slow_share: self.slow_share.unwrap_or(usual.slow_share),
            slow_above: self.slow_above,
            in_every_class: !self.no_classes,
            violation_share: self.violation_share.unwrap_or(usual.violation_share),
            violation_above: self.violation_above.unwrap_or(usual.violation_above),
            longest_wait_seconds: self.longest_wait,
        };
        Objective::try_from(settings).map_err(|ObjectiveError { setting, value, allowed }| {
            let flag = setting.replace('_', "-");
            anyhow::anyhow!("--{flag} is {value}, allowed is {allowed}")
        })
    }
}

/// The keys of `--format json`.
#[derive(Serialize)]
struct Numbers<'a> {
    objective: ObjectiveNumbers,
    rows: &'a [CapacityRow],
    summary: &'a [CapacitySummary],
}

#[derive(Serialize)]
struct ObjectiveNumbers {
    slow_share: f64,
    violation_share: f64,
    violation_above: f64,
    longest_wait_seconds: f64,
}

impl From<&Objective> for ObjectiveNumbers {
    fn from(objective: &Objective) -> Self {
        Self {
            slow_share: objective.slow_share,
            violation_share: objective.violation_share,
            violation_above: objective.violation_above,
            longest_wait_seconds: objective.longest_wait.as_secs_f64(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.platform == Platform::Embedded {
        return kernel::run(arguments);
    }
    let objective = arguments.objective.objective(&Objective::default())?;
    let worlds = arguments.worlds()?;
    let contestants = arguments.contestants(&worlds)?;
    let seeds = arguments.seeds.clone();
    let settings =
        serde_json::to_value(worlds.iter().map(|one| &one.scenario).collect::<Vec<_>>())?;
    let title = format!(
        "Load held: {}",
        worlds.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let digest = worlds.first().map(|one| one.scenario.digest()).unwrap_or_default();
    let (search, races) = (Search::default(), arguments.race);
    let capacity = Capacity { worlds, contestants, objective, seeds, search, races };
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("runs").join(format!("capacity-{digest}")));
    let searches = folder.join("searches");
    directory(&searches)?;
    let watcher = Progress { bar: progress::runs(0), searches, resumes: arguments.resume };
    let threads = arguments.threads.unwrap_or_else(all_threads);
    let result = capacity.play_on(threads, &watcher)?;
    watcher.bar.finish_and_clear();
    let context = ReportContext {
        title,
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings,
    };
    deliver(arguments.format, context, &objective, &result, folder)?;
    Ok(ExitCode::SUCCESS)
}

fn deliver(
    format: Format,
    context: ReportContext,
    objective: &Objective,
    result: &CapacityResult,
    folder: PathBuf,
) -> anyhow::Result<()> {
    let summaries = summarize(objective, result);
    directory(&folder)?;
    let report = folder.join("report.html");
    write_whole(&report, &document(context, objective, result, &summaries).html())?;
    let numbers = Numbers { objective: objective.into(), rows: &result.rows, summary: &summaries };
    write_whole(&folder.join("results.json"), &serde_json::to_string_pretty(&numbers)?)?;
    write_whole(&folder.join("results.csv"), &to_csv(result))?;
    write_whole(&folder.join("curves.csv"), &curves_to_csv(objective, result))?;
    match format {
        Format::Json => print_json(&numbers),
        Format::Csv => print(&to_csv(result)),
        Format::Markdown => print(&to_markdown(&summaries)),
        Format::Text => print(&format!("{}report: {}", to_text(&summaries), report.display())),
    }
}

impl Arguments {
    fn worlds(&self) -> anyhow::Result<Vec<CapacityWorld>> {
        let is_given = self.given.scenario.is_some() || self.given.trace.is_some();
        let mut worlds = match (is_given, self.world.as_slice()) {
            (true, []) => {
                let scenario = self.given.scenario()?;
                vec![CapacityWorld::new(&scenario.name.clone(), scenario)]
            }
            (true, _) => bail!("--world is a world of its own; leave out the others"),
            (false, []) => vec![self.named("generated")?],
            (false, [all]) if all == "all" => {
                NAMES.iter().map(|(name, _)| self.named(name)).collect::<anyhow::Result<_>>()?
            }
            (false, names) => {
                names.iter().map(|name| self.named(name)).collect::<anyhow::Result<_>>()?
            }
        };
        for world in &mut worlds {
            if self.given.cpu_model == Some(CpuModelName::Fluid) {
                world.use_fluid_cpu();
            }
            world.nodes = self.nodes.unwrap_or(world.nodes);
            world.mib_per_core = self.mib_per_core.unwrap_or(world.mib_per_core);
            if !(1..=10_000).contains(&world.nodes) {
                bail!("--nodes is {}, allowed is 1 to 10000", world.nodes);
            }
            if !(1.0..=1e7).contains(&world.mib_per_core) {
                bail!("--mib-per-core is {}, allowed is 1 to 10000000", world.mib_per_core);
            }
        }
        Ok(worlds)
    }

    /// A world made for this question, with the flags on top but for the minutes, which it needs itself.
    fn named(&self, name: &str) -> anyhow::Result<CapacityWorld> {
        let minutes = match &self.given.minutes {
            None => 30,
            Some(text) => match text.parse::<u32>() {
                Ok(minutes) if (10..=240).contains(&minutes) => minutes,
                _ => bail!("--minutes is `{text}`, allowed is 10 to 240 in these worlds"),
            },
        };
        let data = std::env::var_os("WINDFALL_DATA")
            .map_or_else(|| "../shared/data".into(), PathBuf::from);
        let Some(mut world) = CapacityWorld::named(name, &data, minutes) else {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            bail!("--world is `{name}`, allowed is {} or all", known.join(", "));
        };
        let flags = WorldArguments { minutes: None, ..self.given.clone() };
        world.scenario = flags.on_top_of(world.scenario)?;
        Ok(world)
    }

    fn contestants(&self, worlds: &[CapacityWorld]) -> anyhow::Result<Vec<Contestant>> {
        let is_scarce = worlds.iter().any(CapacityWorld::memory_is_scarce);
        let mut choice = Choice {
            policies: self.policies.clone(),
            all: self.all,
            over_commits: self.over_commits.clone(),
            ..Choice::default()
        };
        for setting in &self.set {
            let (policy, table) = parsed(setting)?;
            choice.settings.entry(policy.to_owned()).or_default().extend(table);
        }
        choice.contestants(is_scarce).map_err(|problem| anyhow::anyhow!("--{problem}"))
    }
}

/// The policy and the table of `policy.key=value`.
fn parsed(setting: &str) -> anyhow::Result<(&str, toml::Table)> {
    let parts =
        setting.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
    let parsed = parts.and_then(|((policy, key), value)| {
        let table: toml::Table = format!("{key} = {value}").parse().ok()?;
        Some((policy, table))
    });
    match parsed {
        Some(parsed) => Ok(parsed),
        None => bail!("--set is `{setting}`, allowed is e.g. windfall-admission.z=0.25"),
    }
}

/// Shows how far the searches have come, and keeps what each of them found.
struct Progress {
    bar: ProgressBar,
    /// The folder of what was found.
    searches: PathBuf,
    /// Whether searches that are there already are not made again.
    resumes: bool,
}

impl CapacityWatcher for Progress {
    fn begins(&self, contests: usize) {
        self.bar.inc_length(contests as u64);
    }

    fn contest_ends(&self, rows: &[CapacityRow]) {
        if let Some(row) = rows.first() {
            self.bar.set_message(format!("{} {}", row.policy, row.world));
        }
        self.bar.inc(1);
    }

    fn recalls(&self, search: &str) -> Option<String> {
        let path = self.searches.join(format!("{search}.json"));
        std::fs::read_to_string(path).ok().filter(|_| self.resumes)
    }

    fn keeps(&self, search: &str, found: &str) {
        // A search that cannot be kept is made again; the results are written with care at the end.
        let _ = write_whole(&self.searches.join(format!("{search}.json")), found);
    }
}
