//! Measures how fast arrivals are drawn: `cargo run --release -p windfall-trace --example arrivals_per_second [path]`.
//! Without a path the default generated workload is drawn at ten million calls an hour.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "an example measures time and prints the result"
)]

use windfall_core::Seed;
use windfall_trace::{AzureLikeSettings, ReadOptions, Source};

fn main() {
    let source = match std::env::args().nth(1) {
        Some(path) => Source::File { path: path.into(), options: ReadOptions::default() },
        None => Source::AzureLike(AzureLikeSettings {
            calls_per_hour: 1e7,
            ..AzureLikeSettings::default()
        }),
    };
    let mut workload = match source.open(Seed::new(1)) {
        Ok(workload) => workload,
        Err(error) => return eprintln!("error: {error}"),
    };
    for _ in 0..3 {
        workload.restart(Seed::new(1));
        let start = std::time::Instant::now();
        let (mut calls, mut work) = (0u64, 0u64);
        while let Some(arrival) = workload.next_arrival() {
            calls += 1;
            work = work.wrapping_add(arrival.demand.work);
        }
        let each = start.elapsed().as_nanos() as f64 / calls.max(1) as f64;
        println!("{calls} calls, {each:.0} ns each (checksum {work:x})");
    }
}
