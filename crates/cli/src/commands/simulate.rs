//! `windfall simulate`: one policy, with a journal of everything that happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use windfall_core::{Seed, TelemetrySink};
use windfall_scenario::Scenario;
use windfall_scenario::run::{NoJournal, Run, RunOutput, reserved};
use windfall_telemetry::comparison::number::{percent, short};
use windfall_telemetry::report::{ReportContext, run_report};
use windfall_telemetry::{Comparison, JournalKinds, JournalWriter};

use crate::arguments::{Format, WorldArguments, load};
use crate::commands::compare::{BASELINE, manifest};
use crate::output::{command_line, directory, print, print_json, write_whole};
use crate::progress;

/// Run one policy and keep a journal of everything that happens.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    world: WorldArguments,
    /// The policy, or the file of a checkpoint (.safetensors); `windfall policies` lists them
    #[arg(long, default_value = "windfall", help_heading = "Run")]
    policy: String,
    /// Settings of the policy from a manifest: config-autoscaler for kpa, or an HPA or VPA
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    from: Option<PathBuf>,
    /// What users reserve over what there is
    #[arg(long, default_value = "0.8", value_parser = load, help_heading = "Run")]
    load: f64,
    /// The seed
    #[arg(long, default_value_t = 1, help_heading = "Run")]
    seed: u64,
    /// What the journal keeps
    #[arg(long, value_enum, default_value_t = Keep::Calls, help_heading = "Output")]
    journal: Keep,
    /// How to print the results
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    /// Directory for journal, report and summary
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
}

/// What a journal keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// Calls, ticks and intervals
    Calls,
    /// Ticks and intervals
    Ticks,
    /// No journal at all
    None,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut scenario = arguments.world.scenario()?;
    scenario.policies = vec![arguments.policy.clone()];
    scenario.loads = vec![arguments.load];
    scenario.seeds = vec![arguments.seed];
    if let Some(file) = &arguments.from {
        let name = file.display().to_string();
        let text = fs::read_to_string(file).with_context(|| format!("{name}: cannot be read"))?;
        scenario.set_by_manifest(&arguments.policy, text, &name)?;
    }
    scenario.check()?;
    let name = format!("simulate-{}", scenario.digest());
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
    directory(&out)?;
    let output = play(arguments, &scenario, &out)?;

    let context = ReportContext {
        title: format!("{} on {}", arguments.policy, scenario.name),
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::to_value(&scenario)?,
    };
    let report = out.join("report.html");
    write_whole(&report, &run_report(&context, &output.summary, &output.detail))?;
    write_whole(&out.join("summary.json"), &serde_json::to_string_pretty(&output.summary)?)?;
    show(arguments, &output, &out)?;
    Ok(ExitCode::SUCCESS)
}

fn play(arguments: &Arguments, scenario: &Scenario, out: &Path) -> anyhow::Result<RunOutput> {
    let mut opened = scenario.trace.open_with_notices(Seed::new(arguments.seed))?;
    for notice in &opened.notices {
        eprintln!("{notice}");
    }
    let measuring = progress::counter("measuring what users reserve");
    let reserved = reserved(opened.workload.as_mut());
    measuring.finish_and_clear();

    let run = Run {
        scenario,
        policy: &arguments.policy,
        load: arguments.load,
        seed: arguments.seed,
        keep_steps: arguments.journal == Keep::Calls,
    };
    let kinds = JournalKinds { calls: arguments.journal == Keep::Calls, ..JournalKinds::ALL };
    let mut journal = match arguments.journal {
        Keep::None => None,
        Keep::Calls | Keep::Ticks => {
            let path = out.join("journal.jsonl");
            let file = File::create(&path)
                .with_context(|| format!("{}: cannot be written", path.display()))?;
            Some(JournalWriter::new(file, &manifest(scenario, &run)?, kinds))
        }
    };
    let bar = progress::calls(reserved.calls);
    bar.set_message(arguments.policy.clone());
    let mut nothing = NoJournal;
    let sink: &mut dyn TelemetrySink = match &mut journal {
        Some(journal) => journal,
        None => &mut nothing,
    };
    let workload = opened.workload.as_mut();
    let output = run.play(&reserved, workload, sink, &mut |ended| bar.set_position(ended))?;
    bar.finish_and_clear();
    if let Some(journal) = journal {
        journal.finish()?;
    }
    Ok(output)
}

fn show(arguments: &Arguments, output: &RunOutput, out: &Path) -> anyhow::Result<()> {
    let RunOutput { summary, cluster, .. } = output;
    match arguments.format {
        Format::Json => {
            let mut json = serde_json::to_value(summary)?;
            json["directory"] = out.display().to_string().into();
            json["nodes"] = cluster.nodes.into();
            json["node_cores"] = cluster.node.cpu.cores().into();
            json["node_mib"] = cluster.node.memory.mib().into();
            print_json(&json)
        }
        Format::Csv => print(&Comparison::new(vec![summary.clone()], BASELINE).to_csv()),
        Format::Markdown => print(&Comparison::new(vec![summary.clone()], BASELINE).to_markdown()),
        Format::Text => print(&format!(
            "run        {} / load {} / seed {}   on {} nodes of {} / {}\n\
             calls      {}   cold {} %   out of memory {}\n\
             slowdown   p50 {}   p95 {}   p99 {}   p99.9 {}   bounded p99 {}\n\
             harvested  {} % of calls, {} % of them over 1.05x; relative run time {}\n\
             core-s     {} held ({} granted, {} held back), {} used   MiB-s {} granted, {} used\n\
             safeguards {} amendments, {} fallbacks\n\
             files      {}\n\
             next       windfall explain {} call 0",
            summary.policy,
            summary.load,
            summary.seed,
            cluster.nodes,
            cluster.node.cpu,
            cluster.node.memory,
            summary.calls,
            percent(summary.cold_share),
            summary.oom_kills,
            short(summary.slowdown_p50),
            short(summary.slowdown_p95),
            short(summary.slowdown_p99),
            short(summary.slowdown_p999),
            short(summary.bounded_slowdown_p99),
            percent(summary.harvested_share),
            percent(summary.harvested_violation_share),
            short(summary.rfet_mean),
            short(summary.core_seconds_held),
            short(summary.core_seconds_granted),
            short(summary.core_seconds_held_back),
            short(summary.core_seconds_used),
            short(summary.mib_seconds_granted),
            short(summary.mib_seconds_used),
            summary.amendments,
            summary.fallbacks,
            out.display(),
            out.display(),
        )),
    }
}
