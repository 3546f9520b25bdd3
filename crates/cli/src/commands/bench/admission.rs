//! `windfall bench admission`: how long it takes to decide whether a node can take a call.

use std::time::Instant;

use clap::Args;
use serde::Serialize;
use windfall_control::admission::StartedCall;
use windfall_control::{AdmissionBook, AdmissionSettings};
use windfall_core::{Allocation, CallId, CpuDemand, FunctionId, NodeId, NodeOffer, Timestamp};

use crate::arguments::Format;
use crate::output::{print, print_json};

/// Time one decision whether a node can take a call, beside so many running ones.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Calls that run on the node
    #[arg(long, value_name = "N", default_value_t = 1000)]
    running: u32,
    /// Decisions that are timed
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    decisions: u32,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Numbers {
    running: u32,
    decisions: u32,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
}

/// A function's demand, different for each.
fn demand(number: u32) -> CpuDemand {
    let mean_cores = 0.1 + f64::from(number % 17) * 0.05;
    CpuDemand { mean_cores, variance: mean_cores * 0.5 }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let reservation = Allocation::new(1000, 256);
    let mut book =
        AdmissionBook::new(AdmissionSettings { bound: 1e6, ..AdmissionSettings::default() });
    let node = NodeId(0);
    for number in 0..arguments.running {
        book.start(StartedCall {
            node,
            call: CallId(u64::from(number)),
            function: FunctionId(number % 500),
            reservation,
            demand: Some(demand(number)),
            now: Timestamp::ZERO,
        });
    }
    let offer = NodeOffer { node, cores: 1e6, over_commit: 1.0 };
    let mut nanos: Vec<u64> = Vec::with_capacity(arguments.decisions as usize);
    let mut admitted = 0u32;
    for number in 0..arguments.decisions {
        let started = Instant::now();
        let full = book.admit(&offer, FunctionId(number % 500), reservation, Some(demand(number)));
        nanos.push(started.elapsed().as_nanos() as u64);
        admitted += u32::from(full.is_some());
    }
    anyhow::ensure!(admitted == arguments.decisions, "a node with room turned a call away");
    nanos.sort_unstable();
    let at = |share: f64| nanos[((nanos.len().max(1) - 1) as f64 * share) as usize];
    let numbers = Numbers {
        running: arguments.running,
        decisions: arguments.decisions,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
    };
    match arguments.format {
        Format::Json => print_json(&numbers),
        _ => print(&format!(
            "one decision beside {} running calls: p50 {} ns, p99 {} ns, p99.9 {} ns",
            numbers.running, numbers.p50_ns, numbers.p99_ns, numbers.p999_ns
        )),
    }
}
