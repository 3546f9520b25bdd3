//! Fits the pooled gap tables of windfall scaling on functions that are set aside for it, and prints them:
//!
//! ```text
//! cargo run --profile quick -p windfall-scenario --example fit_gap_prior -- SCENARIO... > crates/policy/params/gap_prior.txt
//! ```
//!
//! Each scenario names a trace with `fold = "train"` and `fold_by = "application"`. Gaps are those of calls that nobody lets wait long, so
//! the run that shows them keeps instances alive for an hour.
#![allow(clippy::print_stdout, reason = "it prints tables")]

use windfall_core::{Allocation, Seed};
use windfall_policy::GapCounts;
use windfall_scenario::{Run, Scenario, entry};
use windfall_sim::{Cluster, ScaleOut};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut counts = GapCounts::default();
    for file in std::env::args().skip(1) {
        let mut scenario = Scenario::parse(&std::fs::read_to_string(&file)?, &file)?;
        scenario.platform.scale_out = ScaleOut::OnMiss;
        for seed in [101, 102, 103] {
            counts.next_run();
            let mut workload = scenario.trace.open(Seed::new(seed))?;
            let table = "keep_alive_seconds = 3600.0".parse::<toml::Table>()?;
            let policy = entry("keep-alive").ok_or("keep-alive is registered")?;
            let mut assembled = policy.assemble(&Some(table), Seed::new(seed))?;
            assembled.sees_presence = true;
            let run = Run {
                scenario: &scenario,
                policy: "keep-alive",
                load: 1.0,
                seed,
                keep_steps: false,
            };
            let cluster = Cluster {
                nodes: 1,
                node: Allocation::new(u32::MAX, u32::MAX),
                over_commit_cpu: 1.0,
                over_commit_memory: 1.0,
            };
            let built = (assembled, false);
            run.play_on(cluster, built, workload.as_mut(), (&mut counts, &mut |_| {}))?;
        }
    }
    println!("# Gaps of functions set aside for fitting: class, then bin:count. See gap_prior.rs.");
    print!("{}", counts.to_text());
    Ok(())
}
