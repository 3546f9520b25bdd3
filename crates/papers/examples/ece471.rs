//! Reproduces the ECE 471 exercise and prints the result as JSON.
//!
//! `cargo run --release -p windfall-papers --example ece471 -- [seeds] [first seed] [filter]`
//!
//! `filter` keeps the learners whose name and iterations, as in `ppo/50`, contain it. Progress goes to
//! standard error.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use windfall_papers::ece471::reproduce::{Plan, reproduce};

fn main() -> Result<(), serde_json::Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok());
    let mut plan = Plan::full(2);
    plan.seeds = number(0).unwrap_or(plan.seeds);
    plan.first_seed = number(1).unwrap_or(plan.first_seed);
    if let Some(filter) = words.get(2) {
        plan.experiments.retain(|e| {
            format!("{}/{}/{:?}", e.algorithm.name(), e.iterations, e.features).contains(filter)
        });
    }
    let mut result = reproduce(&plan, &|progress| {
        if progress.point.iteration == progress.experiment.iterations {
            let name = progress.experiment.algorithm.name();
            let greedy = progress.point.greedy.unwrap_or(f64::NAN);
            eprintln!("{name} seed {} done: {greedy:.2}", progress.seed);
        }
    });
    for row in &mut result.algorithms {
        eprintln!(
            "{:16} {:?} {:4} iterations: {:.2} sd {:.2} min {:.2} max {:.2}, worst late {:.2}",
            row.name,
            row.features,
            row.iterations,
            row.mean,
            row.sd,
            row.min,
            row.max,
            row.worst_late
        );
        row.curves.clear();
    }
    result.exploration.truncate(3);
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}
