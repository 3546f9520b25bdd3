//! How long `RunMetrics` takes to count a call.
//!
//! `cargo run --release -p windfall-telemetry --example sink_speed`
//!
//! Records are made beforehand and live in memory, as they do in a run: the simulator hands over one it
//! has just written. The best of several passes is given, because the others measure the machine.

use std::io::Write;
use std::time::Instant;

use windfall_core::{
    Allocation, CallEnd, CallId, CallRecord, CpuCeiling, DecidedBy, Duration, FunctionId, NodeId,
    PlainSize, TelemetrySink, Timestamp,
};
use windfall_telemetry::RunMetrics;

/// As many as stay in the second cache: the simulator's records are warm.
const RECORDS: u64 = 1024;
const ROUNDS: u64 = 2000;

fn micros(count: u64) -> Duration {
    Duration::from_nanos(count * 1000)
}

fn record(id: u64, functions: u64) -> CallRecord {
    let spread = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let baseline = micros(500 + spread % 900_000);
    let wait = micros(if id.is_multiple_of(3) { spread * 7 % 2_000_000 } else { 0 });
    let run = baseline + micros(spread % 60_000);
    let arrived_at = Timestamp::from_nanos(id * 1_000_000);
    let size = Allocation::new(1000, 512);
    CallRecord {
        id: CallId(id),
        function: FunctionId((spread % functions) as u32),
        node: NodeId(0),
        end: CallEnd::Completed,
        arrived_at,
        started_at: arrived_at + wait,
        ended_at: arrived_at + wait + run,
        cold_start: Duration::ZERO,
        run,
        baseline: Some(baseline),
        attempts: 1,
        oom_kills: 0,
        input: None,
        reservation: size,
        wanted: PlainSize { cores: 0.5, mib: 512.0 },
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: size,
        cpu_ceiling: CpuCeiling::AtGrant,
        lowest_grant: Allocation::new(400 + (spread % 600) as u32, 512),
        highest_grant: size,
        cpu_granted: run.as_nanos() * 1000,
        cpu_held_back: run.as_nanos() * 50,
        cpu_used: run.as_nanos() * 400,
        seen: None,
        memory_granted: run.as_nanos() * 512,
        memory_used: run.as_nanos() * 200,
        changes: 1,
        looks: 3,
        amendments: Vec::new(),
        steps: Vec::new(),
    }
}

#[expect(clippy::disallowed_methods, reason = "an example may look at the clock")]
fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for functions in [10, 500, 10_000] {
        let records: Vec<CallRecord> = (0..RECORDS).map(|id| record(id, functions)).collect();
        let mut best = f64::INFINITY;
        for _ in 0..7 {
            let mut metrics = RunMetrics::new(Timestamp::ZERO);
            records.iter().for_each(|call| metrics.call(call));
            let start = Instant::now();
            for _ in 0..ROUNDS {
                for call in &records {
                    metrics.call(std::hint::black_box(call));
                }
            }
            let nanos = start.elapsed().as_nanos() as f64 / (ROUNDS * RECORDS) as f64;
            best = best.min(nanos);
            std::hint::black_box(&metrics);
        }
        writeln!(out, "{functions:>6} functions: {best:.1} ns per call")?;
    }
    Ok(())
}
