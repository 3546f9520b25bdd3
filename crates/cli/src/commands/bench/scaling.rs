//! `windfall bench scaling`.
//!
//! A simulated cluster of 10,000 functions with rates and rhythms like Azure's; only the time inside the
//! policy's own decision is counted, on the thread of the simulation. Functions that are never called count
//! too: they are most of a real population.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use windfall_core::statistics::lower_neighbour;
use windfall_core::{
    Allocation, Decision, Duration, Needs, Observation, Policy, PolicyError, Seed, TickRecord,
};
use windfall_policy::WindfallScaling;
use windfall_registry::entry;
use windfall_scenario::run::{NoJournal, Watching};
use windfall_scenario::{Run, Scenario};
use windfall_sim::{Cluster, ScaleOut};
use windfall_trace::{AzureLikeSettings, Source};

use crate::arguments::Format;
use crate::output::{print, print_json};
use crate::progress;

/// Functions of the benchmark.
const FUNCTIONS: u32 = 10_000;

/// Time and memory of deciding on instances at one tick.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A few minutes instead of half an hour of simulated time
    #[arg(long)]
    quick: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Results {
    functions: u32,
    calls: u64,
    ticks: usize,
    /// Half of the ticks took less.
    tick_10000_ms: f64,
    tick_10000_p99_ms: f64,
    bytes_per_function: f64,
    shared_bytes: usize,
}

#[derive(Default)]
struct Notes {
    millis: Vec<f64>,
    bytes: usize,
    shared_bytes: usize,
}

/// The policy with a clock around its decisions.
struct Timed {
    policy: WindfallScaling,
    notes: Arc<Mutex<Notes>>,
}

impl Policy for Timed {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let start = Instant::now();
        let decision = self.policy.decide(seen);
        let millis = start.elapsed().as_secs_f64() * 1e3;
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.millis.push(millis);
        notes.bytes = self.policy.bytes_of_functions(FUNCTIONS);
        notes.shared_bytes = self.policy.shared_bytes();
        decision
    }

    fn feedback(&mut self, tick: &TickRecord) {
        self.policy.feedback(tick);
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let minutes = if arguments.quick { 4 } else { 30 };
    let mut scenario = Scenario {
        trace: Source::AzureLike(AzureLikeSettings {
            functions: FUNCTIONS,
            duration: Duration::from_mins(minutes),
            calls_per_hour: 3_000_000.0,
            ..AzureLikeSettings::default()
        }),
        ..Scenario::default()
    };
    scenario.platform.scale_out = ScaleOut::OnMiss;
    let notes = Arc::new(Mutex::new(Notes::default()));
    let calls = simulate(&scenario, &notes)?;
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.millis.sort_by(f64::total_cmp);
    let at = |share: f64| lower_neighbour(&notes.millis, share).unwrap_or(0.0);
    let results = Results {
        functions: FUNCTIONS,
        calls,
        ticks: notes.millis.len(),
        tick_10000_ms: at(0.5),
        tick_10000_p99_ms: at(0.99),
        bytes_per_function: notes.bytes as f64 / f64::from(FUNCTIONS),
        shared_bytes: notes.shared_bytes,
    };
    match arguments.format {
        Format::Json => print_json(&results),
        Format::Text | Format::Csv | Format::Markdown => print(&table(&results)),
    }
}

fn simulate(scenario: &Scenario, notes: &Arc<Mutex<Notes>>) -> anyhow::Result<u64> {
    let seed = 1;
    let policy = entry("windfall-scaling").context("the policy `windfall-scaling`")?;
    let mut assembled = policy.assemble(&None, Seed::new(seed))?;
    let timed = Timed { policy: WindfallScaling::default(), notes: Arc::clone(notes) };
    assembled.tick = Some(Box::new(timed));
    let cluster = Cluster {
        nodes: 1,
        node: Allocation::new(u32::MAX, u32::MAX),
        over_commit_cpu: 1.0,
        over_commit_memory: 1.0,
    };
    let mut workload = scenario.trace.open(Seed::new(seed))?;
    let bar = progress::counter("10,000 functions");
    let run = Run { scenario, policy: "windfall-scaling", load: 1.0, seed, keep_steps: false };
    let mut progress = |ended| bar.set_position(ended);
    let watching: Watching<'_> = (&mut NoJournal, &mut progress);
    let output = run.play_on(cluster, assembled, workload.as_mut(), watching)?;
    bar.finish_and_clear();
    Ok(output.ledger.arrived)
}

fn table(results: &Results) -> String {
    format!(
        "functions               {:>12}   {} calls, {} ticks\n\
         one tick                {:>12.2}   ms p50, {:.2} ms p99\n\
         memory                  {:>12.0}   bytes per function, {} shared by all\n",
        results.functions,
        results.calls,
        results.ticks,
        results.tick_10000_ms,
        results.tick_10000_p99_ms,
        results.bytes_per_function,
        results.shared_bytes,
    )
}
