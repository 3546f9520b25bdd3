//! Fits the pooled gap tables of windfall scaling on functions that are set aside for it, and prints them:
//!
//! ```text
//! cargo run --profile quick -p windfall-studies --example fit_gap_prior > crates/policy/params/gap_prior.txt
//! ```
//!
//! The functions are those of `--world sparse-train`, uniform and bursty inside the minute.
#![allow(clippy::print_stdout, reason = "it prints tables")]

use std::path::PathBuf;

use windfall_core::{Duration, Seed, Timestamp};
use windfall_policy::GapCounts;
use windfall_studies::frontier::Question;
use windfall_studies::frontier::worlds::World;
use windfall_trace::Source;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var_os("WINDFALL_DATA").map_or("../shared/data".into(), PathBuf::from);
    let mut scenario = World::SparseTrain.scenario(&data, Question::Scaling.needs());
    let mut counts = GapCounts::default();
    for bursty in [false, true] {
        if let (true, Source::File { options, .. }) = (bursty, &mut scenario.trace) {
            options.placement = World::SparseTrain.bursts();
        }
        for &seed in &scenario.seeds {
            let mut workload = scenario.trace.open(Seed::new(seed))?;
            let sizes: Vec<_> =
                workload.functions().iter().map(|profile| profile.reservation.cpu).collect();
            let mut calls: Vec<Vec<(Timestamp, Duration)>> = vec![Vec::new(); sizes.len()];
            while let Some(call) = workload.next_arrival() {
                let place = call.function.index();
                calls[place].push((call.at, call.demand.run_time(sizes[place])));
            }
            calls.iter().for_each(|calls| counts.count(calls, workload.horizon()));
        }
    }
    println!("# Gaps of functions set aside for fitting: class, then bin:count. See gap_prior.rs.");
    print!("{}", counts.to_text());
    Ok(())
}
