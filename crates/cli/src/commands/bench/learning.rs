//! `windfall bench learning`.
//!
//! Everything on one thread, on the ECE 471 environment. The update phase is compared with its bare
//! matrix products, run in turn with it in the same process, by the processor time of both.

use std::time::Instant;

use clap::Args;
use windfall_papers::ece471::{Ece471, Settings};
use windfall_rl::bench::{Clocks, Measurements, measure};

use super::simulator::processor_seconds;
use crate::arguments::Format;
use crate::output::{print, print_json};
use crate::progress;

/// Steps, samples and decisions of the learning core, and the ratio to bare matrix products.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; the fastest counts, as other work on the machine only ever adds
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// A few rounds only
    #[arg(long)]
    quick: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let rounds = if arguments.quick { 3 } else { arguments.rounds };
    let bar = progress::rounds(u64::from(rounds));
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    // Where there is no such clock, that of the wall has to do.
    let processor = || processor_seconds().unwrap_or_else(|_| clock());
    let clocks = Clocks { wall: &clock, processor: &processor };
    let make = || Ece471::new(Settings::default());
    let measured = measure(make, rounds as usize, clocks, &mut || bar.inc(1));
    bar.finish_and_clear();
    match arguments.format {
        Format::Json => print_json(&measured),
        Format::Text | Format::Csv | Format::Markdown => print(&table(&measured)),
    }
}

fn table(measured: &Measurements) -> String {
    format!(
        "environment steps/s     {:>12.0}   one environment\n\
         environment steps/s     {:>12.0}   256 together\n\
         PPO samples/s           {:>12.0}   2,048 samples, 10 epochs, minibatches of 64, 64-64 tanh\n\
         update phase            {:>12.2}   ms\n\
         update over products    {:>12.3}   times\n\
         decision, 64-64         {:>12.2}   us p50, {:.2} us p99\n\
         choice among 64         {:>12.2}   us p50, {:.2} us p99; 11-32-16-1 score network\n",
        measured.env_steps_per_s,
        measured.env_steps_per_s_256,
        measured.ppo_samples_per_s,
        measured.update_ms,
        measured.update_ratio_to_products,
        measured.policy_p50_us,
        measured.policy_p99_us,
        measured.score64_p50_us,
        measured.score64_p99_us,
    )
}
