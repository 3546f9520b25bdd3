//! Sets the dials of `windfall` on the training half and writes them as a checkpoint.
//!
//! `cargo run --release -p windfall-scenario --example train_sizing -- FOLDER FILE.safetensors [SEED] [THREADS]`

use std::io::Write;
use std::path::{Path, PathBuf};

use windfall_scenario::honest_sizing::HonestSizing;
use windfall_scenario::windfall_training::WindfallTraining;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(trace), Some(out)) = (arguments.first(), arguments.get(1)) else {
        return Err("the folder of the trace and the file to write are needed".into());
    };
    let seed = arguments.get(2).map_or(Ok(101), |seed| seed.parse())?;
    let threads = arguments.get(3).map_or(Ok(1), |threads| threads.parse())?;
    let benchmark = HonestSizing {
        trace: Some(PathBuf::from(trace)),
        minutes: Some(40),
        ..HonestSizing::default()
    };
    let training = WindfallTraining::on(benchmark.training_source(), seed);
    let mut told = std::io::stdout().lock();
    let trained = WindfallTraining { threads, ..training }.run(&mut |turn| {
        // A line that cannot be printed changes nothing about the training.
        let _ = writeln!(
            told,
            "{:28} {:9.4} -> {:9.4}  cost {:.5} -> {:.5} {}",
            turn.dial,
            turn.from,
            turn.to,
            turn.cost_before,
            turn.cost_after,
            if turn.kept { "kept" } else { "" },
        );
    })?;
    trained.checkpoint.save(Path::new(out))?;
    Ok(())
}
