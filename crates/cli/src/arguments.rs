//! What can be typed, and how it becomes a scenario.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use windfall_core::Duration;
use windfall_rl::Split;
use windfall_scenario::Scenario;
use windfall_sim::CpuModel;
use windfall_trace::{AzureLikeSettings, Caps, Placement, ReadOptions, Source};

use crate::commands::compare;
use crate::commands::{
    bench, calibrate, capacity, completions, conformance, db, doctor, env, evaluate, explain,
    frontier, functions, load, policies, policy, report, reproduce, serve, simulate, top, trace,
    train, up,
};

/// A learning resource manager for serverless platforms.
///
/// Windfall learns what each function really needs, harvests what lies idle, lends it to functions
/// that are short of it, and keeps latency behind safeguards that no policy can get around.
#[derive(Parser)]
#[command(name = "windfall", version, max_term_width = 79, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start a platform with a load, manage it, and show it in a browser
    ///
    /// Prints a checklist, the address of the dashboard and lines to copy, and runs until
    /// Ctrl-C, or for `--for` and then ends with a summary. Every function gets its own
    /// allocation back when it stops.
    ///
    ///   windfall up
    ///   windfall up --for 60s --report r.html --format json
    #[command(verbatim_doc_comment)]
    Up(up::Arguments),
    /// Watch a running manager in the terminal
    Top(top::Arguments),
    /// Check, shrink or export the manager's database
    Db(db::Arguments),
    /// Run several policies on the same calls and compare them
    Compare(compare::Arguments),
    /// Run one policy and keep a journal of everything that happens
    Simulate(simulate::Arguments),
    /// Write the HTML report of a finished run or comparison again
    Report(report::Arguments),
    /// Tell what was seen, wanted, allowed and done at a tick or for a call
    Explain(explain::Arguments),
    /// How much load do the same machines hold while an objective holds?
    Capacity(capacity::Arguments),
    /// Sweep one parameter of each policy and draw what it costs to wait less
    Frontier(frontier::Arguments),
    /// Write, deploy and call functions on a running platform
    Fn(functions::Arguments),
    /// Inspect, generate and convert traces
    Trace(trace::Arguments),
    /// Send HTTP calls on a schedule and report how they were answered
    ///
    /// Calls are sent when they are due, whatever became of those before, and
    /// latency counts from the due time: a server that stalls cannot hide it. What
    /// the generator itself is late is in the report.
    ///
    ///   windfall load --url http://127.0.0.1:8080/ --rate 100 --seconds 30
    ///   windfall load --action hello --body '{"name":"Ada"}' --shape bursty
    ///   windfall load --action f --body '{"sleep":{run_ms}}' --trace t.wft --speed 9
    ///
    /// A body may have {number}, {run_ms}, {memory_mib} and {input}, filled in per
    /// call; all but the first come from the trace. Functions of a trace call the
    /// target with their own name; those without one share the targets in turn.
    #[command(verbatim_doc_comment)]
    Load(load::Arguments),
    /// Measure Windfall itself
    Bench(bench::Arguments),
    /// Run functions on this machine behind OpenWhisk's API
    ///
    /// Prints where it listens and with which key; the first line with `--format json` is one
    /// object with `apihost` and `auth`. SIGTERM and Ctrl-C end it: calls that run may finish,
    /// every instance is ended and every record written.
    ///
    ///   windfall serve --policy windfall
    ///   curl -u $KEY -X POST -H 'Content-Type: application/json' -d '{"name":"Ada"}' \
    ///     'http://127.0.0.1:3233/api/v1/namespaces/_/actions/hello?blocking=true&result=true'
    #[command(verbatim_doc_comment)]
    Serve(serve::Arguments),
    /// Fit the simulator's model of functions to recorded calls of a real platform
    ///
    /// Work, parallelism, waiting and memory of each function of a journal, and how far the run
    /// times of calls are off that were not used for the fit. Calls at several sizes and with
    /// several inputs say most.
    ///
    ///   windfall serve --journal calls.jsonl
    ///   windfall calibrate calls.jsonl
    #[command(verbatim_doc_comment)]
    Calibrate(calibrate::Arguments),
    /// Repeat a published experiment and set our numbers beside its own
    Reproduce(reproduce::Arguments),
    /// Replay recorded decisions of a real autoscaler through ours
    Conformance(conformance::Arguments),
    /// Train a policy in an environment
    ///
    /// Leaves in its folder: `last.safetensors` and `best.safetensors`, `curves.html`
    /// (open it while training goes on; it loads itself anew), an event file for
    /// TensorBoard, and `curve.jsonl`. Ctrl-C saves and stops; `--resume` goes on from
    /// there, bit for bit as if nothing had happened.
    ///
    ///   windfall train windfall/Ece471Direction-v0 --iterations 200
    ///   windfall train --resume runs/train-ppo-Ece471Direction-v0-1
    #[command(verbatim_doc_comment)]
    Train(train::Arguments),
    /// Play episodes with a trained policy, without exploration
    ///
    /// One episode in every environment of its panel (such as one for each load) and for every
    /// seed, beside the classic policies of the environment, where it has some, and one that
    /// chooses among the allowed actions at random.
    Evaluate(evaluate::Arguments),
    /// Act in an environment from any language, one JSON line at a time
    ///
    /// Each line on standard input is answered by one line on standard output:
    ///
    ///   {"reset": {"seed": 7}}  observation and info
    ///   {"step": 1}             observation, reward, terminated, truncated, info
    ///   {"step": "out"}         the same, by the name of the action
    ///   {"describe": {}}        features with their ranges, actions
    ///
    /// `info` has the mask of allowed actions. A line that is not understood is
    /// answered by {"error": "..."}, and the conversation goes on. It ends with
    /// standard input.
    #[command(verbatim_doc_comment)]
    Env(env::Arguments),
    /// Look into trained policies
    Policy(policy::Arguments),
    /// List the policies
    Policies(policies::Arguments),
    /// Say what this machine permits, and how to get what it lacks
    ///
    /// Starts and ends a process at each level of isolation and tries every limit and sensor of
    /// the embedded platform. Each is exact (the kernel's own), emulated (approximated by
    /// Windfall) or absent.
    Doctor(doctor::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For scripts
    Json,
    /// For spreadsheets
    Csv,
    /// For documents
    Markdown,
}

/// How results are printed that are one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectFormat {
    /// For people
    #[default]
    Text,
    /// For scripts
    Json,
}

/// Which part of an environment's world is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What learners learn from
    #[default]
    Training,
    /// What the best checkpoint is chosen by
    Validation,
    /// What is reported
    Test,
}

impl From<Part> for Split {
    fn from(part: Part) -> Self {
        match part {
            Part::Training => Self::Training,
            Part::Validation => Self::Validation,
            Part::Test => Self::Test,
        }
    }
}

/// A model of a node's CPU by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CpuModelName {
    /// Every share is a constant rate.
    Fluid,
    /// Weights, quotas by period and the idle class; where calls compete, their waits of milliseconds count by the mean.
    Kernel,
    /// The same with every wait of milliseconds followed one by one: slower, and nearest to a real machine.
    KernelRounds,
}

/// Which world is run. Flags change what the scenario file says.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorldArguments {
    /// Scenario file (TOML); flags below change what it says
    #[arg(long, value_name = "FILE", help_heading = "World")]
    pub(crate) scenario: Option<PathBuf>,
    /// Trace file or directory instead of generated calls
    #[arg(long, value_name = "PATH", help_heading = "World")]
    pub(crate) trace: Option<PathBuf>,
    /// Minutes of the trace, e.g. 0-120, or how many to generate
    #[arg(long, value_name = "MINUTES", help_heading = "World")]
    pub(crate) minutes: Option<String>,
    /// Number of functions at most
    #[arg(long, value_name = "N", help_heading = "World")]
    pub(crate) functions: Option<u32>,
    /// Calls per hour to generate
    #[arg(long, value_name = "N", help_heading = "World")]
    pub(crate) calls_per_hour: Option<f64>,
    /// Place calls in bursts inside their minute
    #[arg(long, help_heading = "World")]
    pub(crate) bursty: bool,
    /// Thin functions that would keep more than 4 calls busy on average
    #[arg(long, help_heading = "World")]
    pub(crate) capped: bool,
    /// Leave out the busiest function of the trace
    #[arg(long, help_heading = "World", hide_short_help = true)]
    pub(crate) without_busiest: bool,
    /// Leave out functions that sleep: all their calls take the same long time
    #[arg(long, help_heading = "World", hide_short_help = true)]
    pub(crate) no_sleepers: bool,
    /// CPU that may be granted for each core there is
    #[arg(long, value_name = "FACTOR", help_heading = "World")]
    pub(crate) over_commit: Option<f64>,
    /// How a node's CPU is shared: at constant rates, or as Linux does it
    #[arg(long, value_name = "MODEL", value_enum, help_heading = "World", hide_short_help = true)]
    pub(crate) cpu_model: Option<CpuModelName>,
    /// Minutes at the beginning whose calls do not count
    #[arg(long, value_name = "MINUTES", help_heading = "World")]
    pub(crate) warm_up: Option<f64>,
    /// Safeguards around every policy's calls: faasrm, floor, slack-budget
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "World")]
    pub(crate) safeguards: Vec<String>,
    /// A policy to ask beside the others and record, never obeyed
    #[arg(long, value_name = "POLICY", help_heading = "World")]
    pub(crate) shadow: Option<String>,
}

impl WorldArguments {
    /// The scenario file, or the default one, with the flags on top.
    pub(crate) fn scenario(&self) -> anyhow::Result<Scenario> {
        let scenario = match &self.scenario {
            Some(path) => read_scenario(path)?,
            None => Scenario::default(),
        };
        self.on_top_of(scenario)
    }

    /// A scenario with the flags on top.
    pub(crate) fn on_top_of(&self, mut scenario: Scenario) -> anyhow::Result<Scenario> {
        if let Some(path) = &self.trace {
            let options = ReadOptions::default();
            scenario.trace = Source::File { path: path.clone(), options };
            scenario.name = path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            );
        }
        self.change_trace(&mut scenario.trace)?;
        if let Some(factor) = self.over_commit {
            if !(1.0..=1000.0).contains(&factor) {
                bail!("--over-commit is {factor}, allowed is 1 to 1000");
            }
            scenario.over_commit_cpu = factor;
        }
        // What a scenario file says of the kernel stays.
        match self.cpu_model {
            Some(CpuModelName::Kernel) if scenario.cpu.is_fluid() => {
                scenario.cpu = CpuModel::kernel();
            }
            Some(CpuModelName::KernelRounds) => scenario.cpu = scenario.cpu.following_rounds(),
            Some(CpuModelName::Fluid) => scenario.cpu = CpuModel::Fluid,
            Some(CpuModelName::Kernel) | None => {}
        }
        if let Some(minutes) = self.warm_up {
            if !(0.0..=525_600.0).contains(&minutes) {
                bail!("--warm-up is {minutes}, allowed is 0 to 525600 minutes");
            }
            scenario.warm_up = Duration::from_secs_f64(minutes * 60.0);
        }
        if !self.safeguards.is_empty() {
            scenario.call_safeguards.clone_from(&self.safeguards);
        }
        if self.shadow.is_some() {
            scenario.shadow.clone_from(&self.shadow);
        }
        Ok(scenario)
    }

    fn change_trace(&self, source: &mut Source) -> anyhow::Result<()> {
        match source {
            Source::AzureLike(settings) => self.change_generated(settings),
            Source::File { options, .. } => self.change_read(options),
        }
    }

    fn change_generated(&self, settings: &mut AzureLikeSettings) -> anyhow::Result<()> {
        for (given, flag) in
            [(self.without_busiest, "--without-busiest"), (self.capped, "--capped")]
        {
            if given {
                bail!("{flag} is for traces; generated functions are capped already");
            }
        }
        if let Some(minutes) = &self.minutes {
            let number = minutes.parse::<f64>().ok();
            let Some(number) = number.filter(|number| (1.0..=525_600.0).contains(number)) else {
                bail!("--minutes is `{minutes}`, allowed is 1 to 525600 to generate");
            };
            settings.duration = Duration::from_secs_f64(number * 60.0);
        }
        settings.functions = self.functions.unwrap_or(settings.functions);
        settings.calls_per_hour = self.calls_per_hour.unwrap_or(settings.calls_per_hour);
        if self.bursty {
            settings.placement = Placement::Bursty;
        }
        settings.without_sleepers |= self.no_sleepers;
        Ok(())
    }

    fn change_read(&self, options: &mut ReadOptions) -> anyhow::Result<()> {
        if self.calls_per_hour.is_some() {
            bail!("--calls-per-hour is for generated calls; a trace has its own");
        }
        if let Some(minutes) = &self.minutes {
            options.window_minutes = Some(window(minutes)?);
        }
        if let Some(functions) = self.functions {
            options.max_functions = Some(functions as usize);
        }
        if self.bursty {
            options.placement = Placement::Bursty;
        }
        if self.capped {
            options.caps = Some(Caps::default());
        }
        options.without_busiest |= self.without_busiest;
        options.without_sleepers |= self.no_sleepers;
        Ok(())
    }
}

fn read_scenario(path: &Path) -> anyhow::Result<Scenario> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    Ok(Scenario::parse(&text, &name)?)
}

/// `60` is the first hour, `60-120` the second.
pub(crate) fn window(text: &str) -> anyhow::Result<(u32, u32)> {
    let parsed = match text.split_once('-') {
        Some((from, to)) => from.trim().parse().ok().zip(to.trim().parse().ok()),
        None => text.parse().ok().map(|to| (0, to)),
    };
    match parsed {
        Some((from, to)) if from < to => Ok((from, to)),
        _ => bail!("--minutes is `{text}`, allowed is e.g. 120 or 60-120"),
    }
}

/// No comparison needs more.
const MOST_SEEDS: u64 = 10_000;

/// `5` are the seeds 1 to 5, `7,9` those two, `3-6` the range.
pub(crate) fn seeds(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("`{text}` is not a number, a list like 7,9 or a range like 3-6");
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| wrong());
    if text.contains(',') {
        return text.split(',').map(number).collect();
    }
    let (from, to) = match text.split_once('-') {
        Some((from, to)) => (number(from)?, number(to)?),
        None => (1, number(text)?),
    };
    // Counted before they are listed: a slip of the finger must not fill the memory.
    match to.checked_sub(from) {
        Some(more) if more < MOST_SEEDS => Ok((from..=to).collect()),
        Some(_) => Err(format!("`{text}` names more than {MOST_SEEDS} seeds")),
        None => Err(format!("`{text}` names no seed")),
    }
}

/// A load as typed.
pub(crate) fn load(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|load| (0.01..=10.0).contains(load))
        .ok_or_else(|| format!("`{text}` is not a load, allowed is 0.01 to 10"))
}

/// A number of threads as typed.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|threads| (1..=1024).contains(threads))
        .ok_or_else(|| format!("`{text}` is not a number of threads, allowed is 1 to 1024"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seeds_are_counted_listed_or_ranged() {
        assert_eq!(seeds("3"), Ok(vec![1, 2, 3]));
        assert_eq!(seeds("7,9"), Ok(vec![7, 9]));
        assert_eq!(seeds("3-5"), Ok(vec![3, 4, 5]));
        assert!(seeds("1-18446744073709551615").is_err());
        assert!(seeds("0").is_err() && seeds("x").is_err() && seeds("5-3").is_err());
    }

    #[test]
    fn minutes_are_a_length_or_a_window() {
        assert_eq!(window("120").unwrap(), (0, 120));
        assert_eq!(window("60-120").unwrap(), (60, 120));
        assert!(window("9-3").is_err());
    }
}
