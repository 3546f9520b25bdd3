//! Learns how the price of memory follows the state of a full pool, by the cross-entropy method on the functions
//! that are set aside for fitting, and prints every law that was tried:
//!
//! ```text
//! cargo run --profile quick -p windfall-scenario --example fit_shadow_price -- ROUNDS LAWS
//! ```
//!
//! A law is scored by the slow calls it leaves at pools of 3 and 4.5 times the oracle's mean, uniform and bursty:
//! the mean of their logarithms, so that halving a small share counts as much as halving a large one. The first law
//! of the first round is the one written by hand.
#![allow(clippy::print_stdout, reason = "it prints tables")]

use std::path::PathBuf;

use rand_xoshiro::rand_core::Rng;
use windfall_core::Seed;
use windfall_policy::ShadowLaw;
use windfall_scenario::frontier::dials::{Family, windfall};
use windfall_scenario::frontier::worlds::World;
use windfall_scenario::frontier::{Frontier, Question, Unwatched};
use windfall_trace::Source;

/// Pools with their placements: memory over the oracle's mean, and whether calls come in clusters.
const POOLS: [(f64, bool); 4] = [(3.0, false), (4.5, false), (4.5, true), (7.0, true)];
/// The share of laws from which the next round is drawn.
const ELITE: f64 = 0.25;

/// `full`, and the logarithms of `rise` and `fall`, then `gain` and `trend`.
type Point = [f64; 5];

fn law(point: Point) -> ShadowLaw {
    let [full, rise, fall, gain, trend] = point;
    ShadowLaw {
        full: full.clamp(0.5, 0.999),
        rise: rise.exp(),
        fall: fall.exp(),
        gain: gain.max(0.0),
        trend: trend.max(0.0),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[rounds, laws] = &words[..] else { return Err("ROUNDS LAWS, e.g. 3 12".into()) };
    let ShadowLaw { full, rise, fall, gain, trend } = ShadowLaw::default();
    let mut mean: Point = [full, rise.ln(), fall.ln(), gain, trend];
    let mut spread: Point = [0.04, 0.8, 0.8, 0.3, 1.0];
    let mut rng = Seed::new(101).stream("shadow-price").generator();
    // The sum of twelve uniform draws less six is normal enough.
    let mut normal =
        || (0..12).map(|_| (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
    for round in 0..rounds {
        let points: Vec<Point> = (0..laws)
            .map(|place| {
                std::array::from_fn(|i| {
                    if place == 0 { mean[i] } else { mean[i] + spread[i] * normal() }
                })
            })
            .collect();
        let mut scored: Vec<(f64, Point)> = scores(&points)?.into_iter().zip(points).collect();
        scored.iter().for_each(|(score, point)| {
            println!("round {round} score {score:.4} {:?}", law(*point))
        });
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        let elite = &scored[..((laws as f64 * ELITE).ceil() as usize).max(2)];
        let count = elite.len() as f64;
        mean =
            std::array::from_fn(|i| elite.iter().map(|(_, point)| point[i]).sum::<f64>() / count);
        spread = std::array::from_fn(|i| {
            let off =
                elite.iter().map(|(_, point)| (point[i] - mean[i]).powi(2)).sum::<f64>() / count;
            off.sqrt().max(0.2 * spread[i])
        });
    }
    println!("mean of the last {:?}", law(mean));
    Ok(())
}

/// The mean logarithm of the slow share that each law leaves.
fn scores(points: &[Point]) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let data = std::env::var_os("WINDFALL_DATA").map_or("../shared/data".into(), PathBuf::from);
    let mut sums = vec![0.0; points.len()];
    for (pool, is_bursty) in POOLS {
        let mut scenario = World::SparseTrain.scenario(&data, Question::Scaling.needs());
        scenario.seeds.truncate(1);
        if let (true, Source::File { options, .. }) = (is_bursty, &mut scenario.trace) {
            options.placement = World::SparseTrain.bursts();
        }
        let family = |(place, point): (usize, &Point)| -> Result<Family, toml::ser::Error> {
            let table = toml::Value::try_from(law(*point))?;
            let label = place.to_string();
            Ok(Family {
                fixed: vec![("shadow", table)],
                values: vec![1e-4],
                ..windfall(&label, &[])
            })
        };
        let families = points.iter().enumerate().map(family).collect::<Result<_, _>>()?;
        let question = Question::Scaling;
        let frontier = Frontier { question, scenario: &scenario, families, pool: Some(pool) };
        for point in frontier.sweep(&Unwatched)?.points {
            let place: usize = point.policy.parse()?;
            sums[place] += point.slow_share.max(1e-6).ln() / POOLS.len() as f64;
        }
    }
    Ok(sums)
}
