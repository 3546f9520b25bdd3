//! The classic policies in both environments, and how fast these step:
//! `cargo run --release -p windfall-gym --example classic_table [functions]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example measures time and prints the result"
)]

use std::time::Instant;

use windfall_core::Seed;
use windfall_core::statistics;
use windfall_gym::classic::{NAMES, Outcome, Stepwise, drive, driver};
use windfall_gym::multi::MultiSettings;
use windfall_gym::scaling::ScalingSettings;
use windfall_gym::{Moves, MultiScaling, Scaling, Split};
use windfall_rl::Environment;

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(12);
    single_speed();
    println!("\n{count} functions, test hours, mean over functions and 3 episodes");
    println!("policy           reward  slo    util   p99/slo  core-s  lost  ms/tick");
    for is_stepwise in [false, true] {
        for name in NAMES {
            row(name, count, is_stepwise);
        }
    }
}

fn single_speed() {
    let mut env = Scaling::new(ScalingSettings::default());
    let mut row = [0.0; 7];
    let start = Instant::now();
    let mut ticks = 0;
    for seed in 0..20 {
        env.reset(Seed::new(seed), &mut row);
        for _ in 0..200 {
            env.step(0, &mut row);
            ticks += 1;
        }
    }
    let per_second = f64::from(ticks) / start.elapsed().as_secs_f64();
    println!("windfall/Scaling-v0: {per_second:.0} ticks/s");
}

fn row(name: &str, count: usize, is_stepwise: bool) {
    let mut settings =
        MultiSettings { split: Split::Test, ..MultiSettings::new(count, Seed::new(1)) };
    settings.tells_presence = name == "windfall-scaling";
    let mut all: Vec<(Outcome, f64)> = Vec::new();
    let start = Instant::now();
    for episode in 0..3 {
        let mut env = MultiScaling::new(settings.clone(), Seed::new(100 + episode));
        let moves = Moves::paper();
        let Some(mut chosen) = driver(name, &moves, settings.reward, Seed::new(episode)) else {
            continue;
        };
        if is_stepwise {
            chosen = Box::new(Stepwise::new(chosen, moves));
        }
        let outcomes = drive(env.world_mut(), &mut *chosen, &settings.reward, settings.ticks);
        let slos = (0..count).map(|index| env.world().setup(index).profile.slo_ms);
        all.extend(outcomes.into_iter().zip(slos));
    }
    let millis = start.elapsed().as_secs_f64() * 1000.0 / 600.0;
    let mean =
        |of: &dyn Fn(&(Outcome, f64)) -> f64| statistics::mean(all.iter().map(of)).unwrap_or(0.0);
    println!(
        "{:15} {:7.3} {:6.3} {:6.3} {:8.2} {:7.0} {:5.1} {millis:8.3}",
        if is_stepwise { format!("{name}-stepwise") } else { name.to_owned() },
        mean(&|(o, _)| o.reward),
        mean(&|(o, _)| o.preserved),
        mean(&|(o, _)| o.utilisation),
        mean(&|(o, slo)| o.p99_ms / slo),
        mean(&|(o, _)| o.core_seconds),
        mean(&|(o, _)| o.lost as f64),
    );
}
