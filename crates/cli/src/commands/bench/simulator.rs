//! `windfall bench simulator`.
//!
//! Each part runs in a process of its own, so that its peak memory is its own. The bare loop is the
//! event queue alone: it holds as many events as the simulator held on average and pops and pushes as
//! many as the simulator handled, one thread, in the same process right after it. The simulator's time
//! includes drawing and ordering the arrivals, policy, safeguards and metrics.
//!
//! The ratio is one of processor time, so that a neighbour on the machine cannot shift it; calls and
//! events per second are by the clock on the wall.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use windfall_core::seed::mix;
use windfall_core::{Duration, Seed, Timestamp};
use windfall_registry::entry;
use windfall_scenario::run::{reserved, simulator_settings};
use windfall_scenario::{Scenario, size_cluster};
use windfall_sim::{CpuModel, Simulator};
use windfall_telemetry::RunMetrics;
use windfall_trace::{AzureLikeSettings, ReadOptions, Source};

use crate::arguments::{CpuModelName, Format};
use crate::output::{print, print_json};
use crate::progress;

/// Calls and events per second, memory, and the ratio to a bare event queue.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace; by default the 500-function Azure trace below $WINDFALL_DATA, else a generated one
    #[arg(long, value_name = "PATH")]
    trace: Option<PathBuf>,
    /// Calls of the long generated run
    #[arg(long, value_name = "N", default_value_t = 200_000_000)]
    generated_calls: u64,
    /// Repetitions; the shortest time of each counts, as noise only adds
    #[arg(long, value_name = "N", default_value_t = 15)]
    repeats: u32,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One part of the benchmark.
#[derive(Args)]
pub(crate) struct Part {
    #[arg(value_enum)]
    kind: Kind,
    #[arg(long)]
    trace: Option<PathBuf>,
    #[arg(long, default_value_t = 0)]
    calls: u64,
    #[arg(long, default_value_t = 1)]
    repeats: u32,
    #[arg(long, value_enum, default_value_t = CpuModelName::Fluid)]
    cpu_model: CpuModelName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// No over-commit, load 0.5.
    Uncontended,
    /// Over-commit 2, load 1.0.
    Contended,
    /// Generated calls, load 0.5.
    Generated,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Measured {
    calls: u64,
    events: u64,
    /// By the clock on the wall.
    seconds: f64,
    /// Of the processor.
    busy_seconds: f64,
    calls_per_s: f64,
    events_per_s: f64,
    heap_seconds: f64,
    ratio_to_heap: f64,
    peak_mb: f64,
}

#[derive(Serialize)]
struct Results {
    trace: String,
    uncontended: Measured,
    contended: Measured,
    /// The same two with the kernel's CPU.
    kernel_uncontended: Measured,
    kernel_contended: Measured,
    generated: Measured,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let trace = arguments.trace.clone().or_else(default_trace);
    let part = |kind: &str, model: &str, calls: u64, repeats: u32| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "simulator-part", kind, "--cpu-model", model]);
        command.args(["--calls", &calls.to_string(), "--repeats", &repeats.to_string()]);
        if let Some(trace) = &trace {
            command.arg("--trace").arg(trace);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("the part `{kind}` of the benchmark failed");
        }
        serde_json::from_slice::<Measured>(&output.stdout).context("the part's answer")
    };
    let results = Results {
        trace: trace.as_ref().map_or_else(
            || "generated, because the 500-function trace is not there".to_owned(),
            |path| path.display().to_string(),
        ),
        uncontended: part("uncontended", "fluid", 0, arguments.repeats)?,
        contended: part("contended", "fluid", 0, arguments.repeats)?,
        kernel_uncontended: part("uncontended", "kernel", 0, arguments.repeats)?,
        kernel_contended: part("contended", "kernel", 0, arguments.repeats)?,
        generated: part("generated", "fluid", arguments.generated_calls, 1)?,
    };
    match arguments.format {
        Format::Json => print_json(&results),
        Format::Text | Format::Csv | Format::Markdown => print(&table(&results)),
    }
}

fn table(results: &Results) -> String {
    let mut text = format!(
        "trace: {}\n{:19} {:>12} {:>12} {:>12} {:>10} {:>10}\n",
        results.trace, "part", "calls", "calls/s", "events/s", "x heap", "peak MB"
    );
    for (name, part) in [
        ("uncontended", &results.uncontended),
        ("contended", &results.contended),
        ("uncontended, kernel", &results.kernel_uncontended),
        ("contended, kernel", &results.kernel_contended),
        ("generated", &results.generated),
    ] {
        text += &format!(
            "{name:19} {:>12} {:>12.0} {:>12.0} {:>10.2} {:>10.1}\n",
            part.calls, part.calls_per_s, part.events_per_s, part.ratio_to_heap, part.peak_mb
        );
    }
    text
}

/// The 500-function trace, where it can be found.
fn default_trace() -> Option<PathBuf> {
    let data =
        std::env::var_os("WINDFALL_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from);
    Some(data.join("azure2019-joint-500fn-8h")).filter(|path| path.is_dir())
}

pub(super) fn run_part(part: &Part) -> anyhow::Result<()> {
    let mut best = measure(part)?;
    for _ in 1..part.repeats {
        let measured = measure(part)?;
        // Each for itself: the best ratio would be that of the heap's worst moment.
        best.heap_seconds = best.heap_seconds.min(measured.heap_seconds);
        best.busy_seconds = best.busy_seconds.min(measured.busy_seconds);
        best.seconds = best.seconds.min(measured.seconds);
    }
    print_json(&Measured {
        calls_per_s: best.calls as f64 / best.seconds,
        events_per_s: best.events as f64 / best.seconds,
        ratio_to_heap: best.busy_seconds / best.heap_seconds,
        peak_mb: peak_mb().context("the peak memory")?,
        ..best
    })
}

fn measure(part: &Part) -> anyhow::Result<Measured> {
    let (scenario, load) = scenario_of(part);
    let seed = Seed::new(1);
    let reserved = reserved(beginning(&scenario.trace).open(seed)?.as_mut());
    let mut workload = scenario.trace.open(seed)?;
    let cluster = size_cluster(&reserved, load, scenario.node);
    let settings = simulator_settings(&scenario, cluster);

    let bar = progress::calls(part.calls.max(reserved.calls));
    bar.set_message(format!("{:?}", part.kind).to_lowercase());
    let mut metrics = RunMetrics::new(Timestamp::ZERO);
    let fixed = entry("fixed").context("the policy `fixed`")?;
    let control = fixed.assemble(&None, seed)?.call_loop();
    let mut simulator = Simulator::new(settings, workload.as_mut(), control, &mut metrics, seed);
    let (started, busy) = (Instant::now(), processor_seconds()?);
    let mut pending = 0.0;
    let mut looks = 0u64;
    while simulator.run_some(1 << 16) {
        pending += simulator.pending_events() as f64;
        looks += 1;
        bar.set_position(simulator.ledger().arrived);
    }
    let seconds = started.elapsed().as_secs_f64();
    let busy = processor_seconds()? - busy;
    let (calls, events) = (simulator.ledger().arrived, simulator.events());
    drop(simulator);
    bar.finish_and_clear();
    let heap_seconds = bare_heap(events, (pending / looks.max(1) as f64) as u64)?;
    Ok(Measured { calls, events, seconds, busy_seconds: busy, heap_seconds, ..Measured::default() })
}

fn scenario_of(part: &Part) -> (Scenario, f64) {
    let cpu = match part.cpu_model {
        CpuModelName::Fluid => CpuModel::Fluid,
        CpuModelName::Kernel => CpuModel::kernel(),
        CpuModelName::KernelRounds => CpuModel::kernel().following_rounds(),
    };
    let mut scenario = Scenario { cpu, ..Scenario::default() };
    let load = match part.kind {
        Kind::Uncontended => 0.5,
        Kind::Contended => {
            scenario.over_commit_cpu = 2.0;
            1.0
        }
        Kind::Generated => 0.5,
    };
    if part.kind == Kind::Generated {
        const CALLS_PER_HOUR: f64 = 1e7;
        scenario.trace = Source::AzureLike(AzureLikeSettings {
            functions: 500,
            duration: Duration::from_secs_f64(part.calls as f64 / CALLS_PER_HOUR * 3600.0),
            calls_per_hour: CALLS_PER_HOUR,
            ..AzureLikeSettings::default()
        });
    } else if let Some(path) = &part.trace {
        scenario.trace = Source::File { path: path.clone(), options: ReadOptions::default() };
    } else {
        scenario.trace = Source::AzureLike(AzureLikeSettings {
            functions: 500,
            duration: Duration::from_mins(480),
            calls_per_hour: 380_000.0,
            ..AzureLikeSettings::default()
        });
    }
    (scenario, load)
}

/// Enough of a workload to know what its users reserve per second: half an hour of a generated one.
fn beginning(source: &Source) -> Source {
    match source {
        Source::AzureLike(settings) => Source::AzureLike(AzureLikeSettings {
            duration: settings.duration.min(Duration::from_mins(30)),
            ..settings.clone()
        }),
        Source::File { .. } => source.clone(),
    }
}

/// Processor seconds that a bare binary heap takes to pop and push `events` events while it holds `pending`.
fn bare_heap(events: u64, pending: u64) -> anyhow::Result<f64> {
    let mut heap = BinaryHeap::with_capacity(pending as usize + 1);
    let mut draw = 1u64;
    let mut next = || {
        draw = mix(draw.wrapping_add(0x9e37_79b9_7f4a_7c15));
        draw >> 30
    };
    for order in 0..pending.max(1) {
        heap.push(Reverse((next(), order, 0u64)));
    }
    let started = processor_seconds()?;
    for order in 0..events {
        if let Some(Reverse((at, ..))) = heap.pop() {
            heap.push(Reverse((at + next(), pending + order, 0)));
        }
    }
    black_box(&heap);
    Ok(processor_seconds()? - started)
}

/// Seconds for which this thread has had a processor.
pub(super) fn processor_seconds() -> anyhow::Result<f64> {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat")
        .context("processor time is read from /proc, which Linux has")?;
    let nanos = schedule.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    Ok(nanos.context("no time in /proc/thread-self/schedstat")? * 1e-9)
}

/// The highest resident memory of this process so far, in MB of a million bytes.
fn peak_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .context("peak memory is read from /proc, which Linux has")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line
        .and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok())
        .context("no VmHWM in /proc/self/status")?;
    Ok(kib * 1024.0 / 1e6)
}
