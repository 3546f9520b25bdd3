//! The tail-latency curves of the twelve functions and their knees:
//! `cargo run --release -p windfall-gym --example knees`.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use windfall_core::Seed;
use windfall_gym::knee::{LOADS, knee, tail_curve};
use windfall_gym::profile::TWELVE;

fn main() {
    println!("{:18} {}    knee", "function", LOADS.map(|load| format!("{load:7}")).concat());
    for profile in &TWELVE {
        let curve = tail_curve(profile, 20_000.0, Seed::new(1));
        let text: String = curve.iter().map(|p99| format!("{p99:7.0}")).collect();
        println!("{:18} {text} {:7.0}", profile.name, knee(&curve));
    }
}
