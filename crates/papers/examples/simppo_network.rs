//! Trains the network that decides for all functions of `windfall/MultiScaling-v1` and writes it for platforms that are no
//! environment: `cargo run --release -p windfall-papers --example simppo_network -- FILE [episodes]`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::Path;

use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_papers::simppo::shared::trial::Trial;
use windfall_papers::simppo::{Auxiliary, Method, TeamSettings};

/// Seeds that no table uses begin with 11.
const SEED: u64 = 11;
const FUNCTIONS: usize = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("name a file for the network")?;
    let episodes = words.next().map_or(Ok(120), |text| text.parse())?;
    let trial = Trial::new(SEED, FUNCTIONS, Workload::Azure);
    let settings = TeamSettings::new(Method::Simppo(Auxiliary::MeanField), episodes).shared();
    let (mut team, _) = trial.train("simppo", settings, episodes, &|_| {});
    let rows = trial.test("simppo", &mut team, Split::Validation, 4);
    let rule = trial.rule_with("queueing", trial.rule, (Split::Validation, 4));
    for rows in [rows, rule] {
        let reward = mean(rows.iter().map(|row| row.reward)).unwrap_or(0.0);
        println!("{:10} reward on validation hours {reward:.1}", rows[0].policy);
    }
    team.deciding().ok_or("there is no network for all")?.save(Path::new(&file))?;
    Ok(())
}
