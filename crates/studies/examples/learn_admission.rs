//! Learns what a call counts with when `windfall-admission` fills nodes, by the state of the call: how long its function
//! runs and how long it has waited.
//!
//! ```text
//! cargo run --release -p windfall-studies --example learn_admission -- [KEY=VALUE]...
//! cargo run --release -p windfall-studies --example learn_admission -- generations=5 population=12 minutes=20 seed=17
//! ```
//!
//! The cross-entropy method over twelve logarithms within a safe range (a fifth to twice the expected use): draw tables from
//! a Gaussian, play each on worlds for tuning near the load that is held, keep the quarter with the smallest margins, fit the
//! Gaussian to them, again. The margin of a run is that of its worst clause, its logarithm clipped to -1.5 and 1.6 and
//! averaged over worlds and the seeds 101 and 102.
#![allow(clippy::print_stdout, reason = "it prints what it learns")]

use std::path::PathBuf;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use windfall_policy::STATES;
use windfall_studies::capacity::contestants::{Contestant, Role};
use windfall_studies::capacity::objective::{Clause, Objective, Service};
use windfall_studies::capacity::search::Search;
use windfall_studies::capacity::worlds::CapacityWorld;
use windfall_studies::capacity::{Capacity, CapacityRow, Nobody};

type Failure = Box<dyn std::error::Error>;
type Table = [f64; STATES];

/// Worlds for tuning, each near the load that is held there.
const WORLDS: [(&str, f64); 3] =
    [("generated", 2.15), ("trace-train", 0.62), ("huawei-train", 0.8)];
const SEEDS: [u64; 2] = [101, 102];
/// Logarithms that a table may hold.
const RANGE: [f64; 2] = [-1.6, 0.7];
const FIRST_DEVIATION: f64 = 0.35;
const LEAST_DEVIATION: f64 = 0.05;
const STEP: f64 = 0.7;

fn main() -> Result<(), Failure> {
    let mut given = [("generations", 5u64), ("population", 12), ("minutes", 20), ("seed", 17)];
    for word in std::env::args().skip(1) {
        let (key, value) = word.split_once('=').ok_or("allowed is KEY=VALUE")?;
        let known = given.iter_mut().find(|(name, _)| *name == key);
        known.ok_or_else(|| format!("`{key}` is unknown"))?.1 = value.parse()?;
    }
    let [(_, generations), (_, population), (_, minutes), (_, seed)] = given;
    learn(generations, population.max(4) as usize, minutes as u32, seed)
}

fn learn(generations: u64, population: usize, minutes: u32, seed: u64) -> Result<(), Failure> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut mean, mut deviation) = ([0.0; STATES], [FIRST_DEVIATION; STATES]);
    println!("as it is: {:.3}", judge(&[mean], minutes)?[0]);
    for generation in 0..generations {
        let mut tables = vec![mean];
        while tables.len() < population {
            let draw = |place: usize| mean[place] + deviation[place] * normal(&mut rng);
            tables.push(std::array::from_fn(draw).map(|one: f64| one.clamp(RANGE[0], RANGE[1])));
        }
        let margins = judge(&tables, minutes)?;
        let mut order: Vec<usize> = (0..population).collect();
        order.sort_by(|&a, &b| margins[a].total_cmp(&margins[b]));
        let elite = &order[..(population / 4).max(2)];
        for place in 0..STATES {
            let count = elite.len() as f64;
            let middle = elite.iter().map(|&one| tables[one][place]).sum::<f64>() / count;
            let squares = elite.iter().map(|&one| (tables[one][place] - middle).powi(2));
            let spread = (squares.sum::<f64>() / count).sqrt();
            mean[place] += STEP * (middle - mean[place]);
            let next = deviation[place] + STEP * (spread - deviation[place]);
            deviation[place] = next.max(LEAST_DEVIATION);
        }
        let shares = mean.map(|one| (one.exp() * 100.0).round() / 100.0);
        let (own, best) = (margins[0], margins[order[0]]);
        println!("generation {generation}: mean {own:.3}, best {best:.3}; shares {shares:?}");
    }
    Ok(())
}

/// A draw from the normal distribution.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit()).cos()
}

/// Mean logarithm of the margin of each table.
fn judge(tables: &[Table], minutes: u32) -> Result<Vec<f64>, Failure> {
    let data =
        std::env::var_os("WINDFALL_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from);
    let mut sums = vec![0.0; tables.len()];
    for (name, load) in WORLDS {
        let world = CapacityWorld::named(name, &data, minutes).ok_or("no such world")?;
        let search = Search { lowest: load, highest: load, guess: load, ..Search::default() };
        let contestants = tables.iter().enumerate().map(|(place, table)| with(place, table));
        let capacity = Capacity {
            worlds: vec![world],
            contestants: contestants.collect(),
            objective: Objective::default(),
            seeds: SEEDS.to_vec(),
            search,
            races: false,
        };
        for row in &capacity.play_on(1, &Nobody)?.rows {
            sums[row.policy.parse::<usize>()?] += log_margin(row);
        }
    }
    let runs = (WORLDS.len() * SEEDS.len()) as f64;
    Ok(sums.into_iter().map(|sum| sum / runs).collect())
}

/// Ours with these shares, called by its place.
fn with(place: usize, table: &Table) -> Contestant {
    let shares = table.map(|one| toml::Value::Float(one.exp())).to_vec();
    let settings = toml::Table::from_iter([("shares".to_owned(), toml::Value::Array(shares))]);
    let ours = Contestant::new("windfall-admission", Role::Ours).ordered(Role::Ours);
    ours.with_settings(&place.to_string(), settings)
}

fn log_margin(row: &CapacityRow) -> f64 {
    let service = row.measured.first().map(|tried| Service::of(&tried.result, None));
    let margins = Objective::default().margins(&service.unwrap_or_default(), 0.0);
    let heard = margins.iter().filter(|(clause, _)| *clause != Clause::Kills);
    let worst = heard.map(|(_, margin)| *margin).fold(0.0, f64::max);
    worst.max(0.1).ln().clamp(-1.5, 1.6)
}
