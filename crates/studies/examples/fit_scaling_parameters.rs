//! Tries settings of windfall scaling on the functions that are set aside for fitting, and prints how far each
//! lies from the incumbents' envelope:
//!
//! ```text
//! cargo run --profile quick -p windfall-studies --example fit_scaling_parameters -- SEEDS [bursty] [concurrency=N] KEY=V,V KEY=V,V
//! cargo run --profile quick -p windfall-studies --example fit_scaling_parameters -- 101,102 fairness=0,0.5,1 start_charge_seconds=10,30
//! ```
//!
//! One row for every combination. `ratio` is MiB-seconds at equal slow share at each price, `per fn` the slow share
//! per function over the hybrid histogram's at equal MiB-seconds (the worst price), `changes` the changes per hour
//! over its (the worst price).
#![allow(clippy::print_stdout, reason = "it prints tables")]

use std::path::PathBuf;

use windfall_core::statistics::geometric_mean;
use windfall_studies::frontier::parameters::{Family, scaling_families, windfall};
use windfall_studies::frontier::ratios::{Ratio, ratios};
use windfall_studies::frontier::worlds::World;
use windfall_studies::frontier::{Frontier, Question, Unwatched};
use windfall_trace::Source;

/// Settings that the policy has.
const KEYS: [&str; 3] = ["fairness", "start_charge_seconds", "prior_gaps"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var_os("WINDFALL_DATA").map_or("../shared/data".into(), PathBuf::from);
    let mut world = World::SparseTrain;
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "dense") {
        world = World::DenseTrain;
        words.remove(0);
    }
    let mut scenario = world.scenario(&data, Question::Scaling.needs());
    let seeds = words.first().ok_or("which seeds? e.g. 101,102")?;
    scenario.seeds = seeds.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let mut variants: Vec<Vec<(&'static str, f64)>> = vec![Vec::new()];
    for word in &words[1..] {
        if word == "bursty" {
            if let Source::File { options, .. } = &mut scenario.trace {
                options.placement = world.bursts();
            }
            continue;
        }
        let (key, values) = word.split_once('=').ok_or("a setting is KEY=VALUE,VALUE")?;
        if key == "concurrency" {
            scenario.platform.concurrency = values.parse()?;
            continue;
        }
        let key = KEYS.into_iter().find(|known| *known == key).ok_or("unknown setting")?;
        let values: Vec<f64> = values.split(',').map(str::parse).collect::<Result<_, _>>()?;
        variants = variants
            .iter()
            .flat_map(|variant| {
                values.iter().map(|&value| [&variant[..], &[(key, value)]].concat())
            })
            .collect();
    }
    let label = |variant: &[(&str, f64)]| {
        let words: Vec<String> =
            variant.iter().map(|(key, value)| format!("{key} {value}")).collect();
        words.join(", ")
    };
    let mut families: Vec<Family> =
        scaling_families().into_iter().filter(|family| family.is_incumbent).collect();
    families.extend(variants.iter().map(|variant| windfall(&label(variant), variant)));
    let question = Question::Scaling;
    let frontier = Frontier { question, scenario: &scenario, families, pool: None };
    let result = frontier.sweep(&Unwatched)?;
    let ratios = ratios(question, &result.points);
    println!(
        "{:44}  ratio by price                        mean   worst  per fn  changes",
        "settings"
    );
    for variant in &variants {
        let name = label(variant);
        let own: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.policy == name).collect();
        println!("{name:44} {}", row(&own));
    }
    Ok(())
}

fn row(ratios: &[&Ratio]) -> String {
    let worst = |of: fn(&Ratio) -> Option<f64>| {
        ratios.iter().filter_map(|ratio| of(ratio)).fold(0.0, f64::max)
    };
    let memory = |ratio: &Ratio| ratio.mib_seconds_at_equal_slow_share;
    let known = ratios.iter().filter_map(|ratio| memory(ratio));
    let mean = geometric_mean(known).unwrap_or(1.0);
    let by_price: Vec<String> = ratios
        .iter()
        .map(|ratio| memory(ratio).map_or("    -".to_owned(), |ratio| format!("{ratio:.3}")))
        .collect();
    format!(
        " {}  {mean:.3}  {:.3}  {:.3}  {:.2}",
        by_price.join("  "),
        worst(memory),
        worst(|ratio| ratio.slow_share_per_function_over_hybrid_histogram),
        worst(|ratio| ratio.changes_over_hybrid_histogram),
    )
}
