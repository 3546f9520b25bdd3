//! Learns how the price of memory follows a full pool, on the functions that are set aside for fitting, and shows
//! whether what was learned is better than what is shipped:
//!
//! ```text
//! cargo run --profile quick -p windfall-studies --example learn_shadow_price -- [KEY=VALUE]...
//! cargo run --profile quick -p windfall-studies --example learn_shadow_price -- seed=1 generations=7 population=12 prices=3e-5
//! cargo run --profile quick -p windfall-studies --example learn_shadow_price -- generations=0 law=0.9,0.02,0.005,1,5
//! ```
//!
//! The cross-entropy method: draw laws from a Gaussian, keep the quarter with the fewest slow calls, fit the Gaussian
//! to them, again. Parameters that are shares are drawn as logits, the others as logarithms.
//!
//! ```text
//!   Gaussian ──► laws ──► slow share in pools of 3 and 4.5 ──► the best quarter ──┐
//!      ▲                  over that of the shipped law, one seed                  │
//!      └─────────────── a step towards their mean and spread ◄────────────────────┘
//! ```
//!
//! Every generation sees another of the seeds 101 to 103, so that no law wins by the luck of one. The mean of the last
//! Gaussian is what was learned. It is judged on whole windows of seeds 104 to 106, which nothing was learned on.
//! `law=FULL,RISE,FALL,GAIN,TREND` judges that law too, `minutes=60-180 warm_up=45` learns on less than the whole window.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints tables and how far it is")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use windfall_core::statistics::{mean, population_deviation};
use windfall_core::{Duration, Seed};
use windfall_policy::ShadowLaw;
use windfall_rl::random::Draw;
use windfall_scenario::Scenario;
use windfall_studies::frontier::parameters::{Family, windfall};
use windfall_studies::frontier::worlds::World;
use windfall_studies::frontier::{Frontier, FrontierPoint, FrontierWatcher, Question};
use windfall_trace::Source;

type Failure = Box<dyn std::error::Error>;

const POOLS: [f64; 2] = [3.0, 4.5];
const LEARN_ON: [u64; 3] = [101, 102, 103];
/// The law that was set by hand before any was fitted.
const BY_HAND: ShadowLaw = ShadowLaw { full: 0.92, rise: 0.03, fall: 0.01, gain: 0.0, trend: 0.0 };
const PARAMETERS: usize = 5;
/// Where the search begins: around .92, .03, .01, 1 and 3, a factor of two to both sides.
const FIRST: Gaussian =
    Gaussian { mean: [2.44, -3.51, -4.61, 0.0, 1.1], deviation: [0.7; PARAMETERS] };
/// Share of the population that the next Gaussian is fitted to, and how far it goes there.
const ELITE: f64 = 0.25;
const STEP: f64 = 0.7;

fn main() -> Result<(), Failure> {
    let search = Search::from_words(std::env::args().skip(1))?;
    let mut judged = vec![("shipped", ShadowLaw::default()), ("by hand", BY_HAND)];
    judged.extend(search.given.map(|law| ("given", law)));
    if search.generations > 0 {
        judged.push(("learned", search.learn()?));
    }
    search.judge(&judged)
}

/// What is searched, how long and where.
struct Search {
    seed: u64,
    generations: usize,
    population: usize,
    prices: Vec<f64>,
    /// The part of the window that is learned on.
    learn_minutes: (u32, u32),
    warm_up: u64,
    judge_on: Vec<u64>,
    given: Option<ShadowLaw>,
}

impl Search {
    fn from_words(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut search = Self {
            seed: 1,
            generations: 8,
            population: 16,
            prices: vec![3e-5, 1e-4],
            learn_minutes: (0, 240),
            warm_up: 60,
            judge_on: vec![104, 105, 106],
            given: None,
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or("a setting is KEY=VALUE")?;
            match key {
                "seed" => search.seed = value.parse()?,
                "generations" => search.generations = value.parse()?,
                "population" => search.population = value.parse()?,
                "prices" => search.prices = numbers(value)?,
                "minutes" => {
                    let (from, to) = value.split_once('-').ok_or("minutes are FROM-TO")?;
                    search.learn_minutes = (from.parse()?, to.parse()?);
                }
                "warm_up" => search.warm_up = value.parse()?,
                "judge_on" => {
                    search.judge_on = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "law" => search.given = Some(law_of(&numbers(value)?)?),
                _ => return Err(format!("unknown setting {key}").into()),
            }
        }
        Ok(search)
    }

    fn learn(&self) -> Result<ShadowLaw, Failure> {
        let mut draw = Draw::new(Seed::new(self.seed).stream("shadow-law"));
        let mut gaussian = FIRST;
        let mut scenario = training();
        scenario.warm_up = Duration::from_mins(self.warm_up);
        if let Source::File { options, .. } = &mut scenario.trace {
            options.window_minutes = Some(self.learn_minutes);
        }
        println!("generation  seed   best   mean  {}", names());
        for generation in 0..self.generations {
            let seed = LEARN_ON[generation % LEARN_ON.len()];
            scenario.seeds = vec![seed];
            let drawn: Vec<[f64; PARAMETERS]> =
                (0..self.population).map(|_| gaussian.draw(&mut draw)).collect();
            let laws: Vec<ShadowLaw> = drawn.iter().map(law_at).collect();
            let mut ranked: Vec<(f64, [f64; PARAMETERS])> =
                self.over_shipped(&scenario, &laws)?.into_iter().zip(drawn).collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mean = mean(ranked.iter().map(|(ratio, _)| ratio)).unwrap_or(f64::NAN);
            let elite = (ELITE * ranked.len() as f64).ceil() as usize;
            gaussian.go_to(&ranked[..elite.max(1)]);
            let law = law_at(&gaussian.mean);
            println!("{generation:10}  {seed}  {:.3}  {mean:.3}  {}", ranked[0].0, printed(&law));
        }
        Ok(law_at(&gaussian.mean))
    }

    /// The slow share of each law over that of the shipped one, geometric mean over pools, prices and seeds.
    fn over_shipped(&self, scenario: &Scenario, laws: &[ShadowLaw]) -> Result<Vec<f64>, Failure> {
        let mut tried = vec![ShadowLaw::default()];
        tried.extend_from_slice(laws);
        let points = self.points(scenario, &tried)?;
        let shipped = mean_log(of(&points, 0));
        Ok((1..tried.len()).map(|law| (mean_log(of(&points, law)) - shipped).exp()).collect())
    }

    /// All laws in both pools, named by their place.
    fn points(
        &self,
        scenario: &Scenario,
        laws: &[ShadowLaw],
    ) -> Result<Vec<(f64, FrontierPoint)>, Failure> {
        let families = laws.iter().enumerate().map(|(place, law)| self.family(place, law));
        let families = families.collect::<Result<Vec<Family>, Failure>>()?;
        let mut points = Vec::new();
        for pool in POOLS {
            let frontier = Frontier {
                question: Question::Scaling,
                scenario,
                families: families.clone(),
                pool: Some(pool),
            };
            let result = frontier.sweep(&Progress::of(pool))?;
            points.extend(result.points.into_iter().map(|point| (pool, point)));
        }
        eprint!("\r");
        Ok(points)
    }

    fn family(&self, place: usize, law: &ShadowLaw) -> Result<Family, Failure> {
        let mut family = windfall(&place.to_string(), &[]);
        family.values.clone_from(&self.prices);
        family.fixed.push(("shadow", toml::Value::try_from(law)?));
        Ok(family)
    }

    /// Prints what the laws are worth on seeds that nothing was learned on.
    fn judge(&self, judged: &[(&str, ShadowLaw)]) -> Result<(), Failure> {
        let scenario = Scenario { seeds: self.judge_on.clone(), ..training() };
        let laws: Vec<ShadowLaw> = judged.iter().map(|(_, law)| *law).collect();
        let points = self.points(&scenario, &laws)?;
        println!("\nslow %, slow % per function; slow share over the shipped law's, by seed");
        for (place, (name, law)) in judged.iter().enumerate() {
            println!("{name:8} {}", printed(law));
            for pool in POOLS {
                for &price in &self.prices {
                    let here = |law| {
                        let all = of(&points, law)
                            .filter(|(at, point)| (*at, point.parameter) == (pool, price));
                        all.map(|(_, point)| point).collect::<Vec<_>>()
                    };
                    println!("  pool {pool:3} price {price:e}: {}", row(&here(place), &here(0)));
                }
            }
            let ratio = (mean_log(of(&points, place)) - mean_log(of(&points, 0))).exp();
            println!("  geometric mean over the shipped law: {ratio:.3}");
        }
        Ok(())
    }
}

/// One law at one pool and price beside the shipped one, seed by seed.
fn row(own: &[&FrontierPoint], shipped: &[&FrontierPoint]) -> String {
    let percent = |of: fn(&FrontierPoint) -> f64| {
        100.0 * own.iter().map(|point| of(point)).sum::<f64>() / own.len() as f64
    };
    let by_seed: Vec<String> = own
        .iter()
        .zip(shipped)
        .map(|(own, shipped)| format!("{:.3}", own.slow_share / shipped.slow_share))
        .collect();
    let (slow, per_function) =
        (percent(|point| point.slow_share), percent(|point| point.slow_share_per_function));
    format!("{slow:6.3} {per_function:6.2}   {}", by_seed.join(" "))
}

/// Where laws are drawn from: each parameter on its own, as logit or logarithm.
struct Gaussian {
    mean: [f64; PARAMETERS],
    deviation: [f64; PARAMETERS],
}

impl Gaussian {
    fn draw(&self, draw: &mut Draw) -> [f64; PARAMETERS] {
        std::array::from_fn(|parameter| {
            self.mean[parameter] + self.deviation[parameter] * draw.normal()
        })
    }

    /// Moves towards the mean and the spread of the best.
    fn go_to(&mut self, best: &[(f64, [f64; PARAMETERS])]) {
        for parameter in 0..PARAMETERS {
            let values = best.iter().map(|(_, at)| at[parameter]);
            let (Some(mean), Some(deviation)) =
                (mean(values.clone()), population_deviation(values))
            else {
                continue;
            };
            self.mean[parameter] += STEP * (mean - self.mean[parameter]);
            self.deviation[parameter] += STEP * (deviation - self.deviation[parameter]);
        }
    }
}

fn law_at(&[full, rise, fall, gain, trend]: &[f64; PARAMETERS]) -> ShadowLaw {
    ShadowLaw {
        full: 1.0 / (1.0 + (-full).exp()),
        rise: rise.exp(),
        fall: fall.exp(),
        gain: gain.exp(),
        trend: trend.exp(),
    }
}

fn law_of(numbers: &[f64]) -> Result<ShadowLaw, Failure> {
    let &[full, rise, fall, gain, trend] = numbers else {
        return Err("a law is FULL,RISE,FALL,GAIN,TREND".into());
    };
    Ok(ShadowLaw { full, rise, fall, gain, trend })
}

fn names() -> String {
    format!("{:>7} {:>7} {:>7} {:>7} {:>7}", "full", "rise", "fall", "gain", "trend")
}

fn printed(law: &ShadowLaw) -> String {
    let ShadowLaw { full, rise, fall, gain, trend } = law;
    format!("{full:7.4} {rise:7.4} {fall:7.4} {gain:7.3} {trend:7.2}")
}

fn numbers(text: &str) -> Result<Vec<f64>, Failure> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn training() -> Scenario {
    let data = std::env::var_os("WINDFALL_DATA").map_or("../shared/data".into(), PathBuf::from);
    World::SparseTrain.scenario(&data, Question::Scaling.needs())
}

/// The runs of the law at this place.
fn of(
    points: &[(f64, FrontierPoint)],
    place: usize,
) -> impl Iterator<Item = &(f64, FrontierPoint)> {
    let name = place.to_string();
    points.iter().filter(move |(_, point)| point.policy == name)
}

fn mean_log<'a>(points: impl Iterator<Item = &'a (f64, FrontierPoint)>) -> f64 {
    mean(points.map(|(_, point)| point.slow_share.max(1e-6).ln())).unwrap_or(f64::NAN)
}

/// Tells after every run how many are over.
struct Progress {
    pool: f64,
    runs: AtomicUsize,
    over: AtomicUsize,
}

impl Progress {
    fn of(pool: f64) -> Self {
        Self { pool, runs: AtomicUsize::new(0), over: AtomicUsize::new(0) }
    }
}

impl FrontierWatcher for Progress {
    fn begins(&self, runs: usize) {
        self.runs.store(runs, Ordering::Relaxed);
    }

    fn run_ends(&self, _: &FrontierPoint) {
        let over = self.over.fetch_add(1, Ordering::Relaxed) + 1;
        eprint!("\rpool {}: {over}/{} ", self.pool, self.runs.load(Ordering::Relaxed));
    }
}
