//! Measures the learning core on the ECE 471 environment and prints the numbers as JSON.
//!
//! `cargo run --release -p windfall-papers --example learning_speed`
//!
//! Bars: `score64_p99_us` at most 5 on an idle core, `update_ratio_to_products` at most 1.5.
#![expect(clippy::print_stdout, reason = "an example talks to its user")]
#![expect(clippy::disallowed_methods, reason = "the clock that the pure crate is handed")]

use std::time::Instant;

use windfall_papers::ece471::{Ece471, Settings};
use windfall_rl::bench::{Clocks, measure};

fn main() -> Result<(), serde_json::Error> {
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    // Without a clock of the processor the ratio needs a quiet machine.
    let clocks = Clocks { wall: &clock, processor: &clock };
    let measurements = measure(|| Ece471::new(Settings::default()), 21, clocks, &mut || ());
    println!("{}", serde_json::to_string_pretty(&measurements)?);
    Ok(())
}
