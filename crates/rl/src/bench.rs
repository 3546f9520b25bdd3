//! How fast it is. The clock is handed in: this crate reads none.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::upper_median;

use crate::algorithms::ppo::{Ppo, PpoSettings};
use crate::env::{Environment, VectorEnv};
use crate::net::{Activation, Initial, Mlp, Shape};
use crate::normalise::Scaling;
use crate::policy::{Decide, NetworkPolicy, ScorePolicy};
use crate::random::Draw;

/// Seconds since some fixed moment.
pub type Clock<'a> = &'a dyn Fn() -> f64;

/// The two clocks of a measurement.
#[derive(Clone, Copy)]
pub struct Clocks<'a> {
    /// Of the wall.
    pub wall: Clock<'a>,
    /// Time for which this thread has had a processor: what others do on the machine does not count.
    pub processor: Clock<'a>,
}

/// Results of [`measure`]: of the fastest round each, because other work on the machine only ever adds.
/// Latencies are quantiles over the single decisions of the quietest of two hundred windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// Steps per second of one environment with random actions.
    pub env_steps_per_s: f64,
    /// Steps per second of 256 environments stepped together.
    pub env_steps_per_s_256: f64,
    /// Samples per second of PPO end to end: 2,048 samples, 10 epochs, minibatches of 64, 64-64 tanh.
    pub ppo_samples_per_s: f64,
    /// Milliseconds of its update phase.
    pub update_ms: f64,
    /// Update phase over its bare matrix products, run in turn, in processor time: median of the rounds.
    pub update_ratio_to_products: f64,
    /// Decision of a 64-64 policy, microseconds.
    pub policy_p50_us: f64,
    /// The same, 99th percentile.
    pub policy_p99_us: f64,
    /// Choice among 64 candidates by an 11-32-16-1 score network, microseconds.
    pub score64_p50_us: f64,
    /// The same, 99th percentile.
    pub score64_p99_us: f64,
}

/// Measures everything on one thread, on environments that `make` makes. `tick` is called after every
/// round of PPO, which is where the time goes.
pub fn measure<E: Environment>(
    make: impl Fn() -> E,
    rounds: usize,
    clocks: Clocks<'_>,
    tick: &mut dyn FnMut(),
) -> Measurements {
    let clock = clocks.wall;
    let one = steps_per_second(vec![make()], 200_000, rounds, clock);
    let many = steps_per_second((0..256).map(|_| make()).collect(), 800, rounds, clock);
    let ppo = ppo((0..8).map(|_| make()).collect(), rounds, clocks, tick);
    let (policy, score) = (policy_latency(clock), score_latency(clock));
    Measurements {
        env_steps_per_s: one,
        env_steps_per_s_256: many,
        ppo_samples_per_s: ppo.samples_per_second,
        update_ms: ppo.update_seconds * 1e3,
        update_ratio_to_products: ppo.ratio_to_products,
        policy_p50_us: policy.p50_us,
        policy_p99_us: policy.p99_us,
        score64_p50_us: score.p50_us,
        score64_p99_us: score.p99_us,
    }
}

fn steps_per_second<E: Environment>(
    environments: Vec<E>,
    steps: usize,
    rounds: usize,
    clock: Clock<'_>,
) -> f64 {
    let count = environments.len();
    let actions = environments[0].spec().actions.len();
    let mut vector = VectorEnv::new(environments, Seed::new(1));
    let mut draw = Draw::new(Seed::new(2));
    // Drawn beforehand, so that stepping is what is measured.
    let chosen: Vec<usize> = (0..count * 64).map(|_| draw.below(actions)).collect();
    let round = |_| {
        let start = clock();
        for step in 0..steps {
            let first = step % 64 * count;
            vector.step(&chosen[first..first + count]);
            vector.reset_ended();
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
        let done = (steps * count) as f64;
        done / (clock() - start)
    };
    (0..rounds).map(round).fold(0.0, f64::max)
}

/// Speed of PPO.
struct PpoSpeed {
    samples_per_second: f64,
    /// Of an update phase.
    update_seconds: f64,
    /// Of an update phase to its bare matrix products.
    ratio_to_products: f64,
}

fn ppo<E: Environment>(
    environments: Vec<E>,
    rounds: usize,
    clocks: Clocks<'_>,
    tick: &mut dyn FnMut(),
) -> PpoSpeed {
    const SAMPLES: usize = 2048;
    let settings = PpoSettings { steps: SAMPLES / environments.len(), ..PpoSettings::default() };
    let updates = SAMPLES / settings.minibatch * settings.epochs;
    let mut ppo = Ppo::new(settings, environments, Seed::new(1), 1);
    let Clocks { wall, processor } = clocks;
    let (mut whole, mut update) = (f64::INFINITY, f64::INFINITY);
    let mut ratios = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = wall();
        ppo.gather();
        let (gathered, before) = (wall(), processor());
        ppo.learn();
        let (learned, between) = (wall(), processor());
        for _ in 0..updates {
            ppo.bare_products();
        }
        ratios.push((between - before) / (processor() - between));
        whole = whole.min(learned - start);
        update = update.min(learned - gathered);
        tick();
    }
    ratios.sort_unstable_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "two thousand")]
    let samples = SAMPLES as f64;
    PpoSpeed {
        samples_per_second: samples / whole,
        update_seconds: update,
        ratio_to_products: upper_median(&ratios).unwrap_or(f64::NAN),
    }
}

fn network(inputs: usize, hidden: &[usize], outputs: usize) -> Mlp {
    let (hidden, activation) = (hidden.to_vec(), Activation::Tanh);
    let shape = Shape { inputs, hidden, outputs, activation };
    Mlp::new(shape, Initial::Orthogonal { hidden: 1.0, output: 1.0 }, Seed::new(3))
}

fn policy_latency(clock: Clock<'_>) -> Latency {
    let mut policy = NetworkPolicy::new(network(6, &[64, 64], 5), Scaling::identity(6));
    let mut draw = Draw::new(Seed::new(4));
    let rows: Vec<f32> = (0..6 * 256).map(|_| draw.unit_f32()).collect();
    latency(clock, |round| {
        let first = round % 256 * 6;
        policy.decide(&rows[first..first + 6], &[true; 5])
    })
}

fn score_latency(clock: Clock<'_>) -> Latency {
    let mut policy = ScorePolicy::new(network(11, &[32, 16], 1), Scaling::identity(11), 64);
    let mut draw = Draw::new(Seed::new(5));
    let rows: Vec<f32> = (0..11 * 128).map(|_| draw.unit_f32()).collect();
    latency(clock, |round| {
        let first = round % 64 * 11;
        policy.best(&rows[first..first + 64 * 11])
    })
}

/// Microseconds of single decisions.
struct Latency {
    p50_us: f64,
    p99_us: f64,
}

/// Latency in the window with the lowest 99th percentile.
fn latency(clock: Clock<'_>, mut decide: impl FnMut(usize) -> usize) -> Latency {
    // Short enough that some window of a busy machine is quiet, with twenty calls above its p99.
    const CALLS: usize = 2000;
    let mut chosen = 0;
    let mut quietest = Latency { p50_us: f64::INFINITY, p99_us: f64::INFINITY };
    for _ in 0..200 {
        let mut times: Vec<f64> = (0..CALLS)
            .map(|round| {
                let start = clock();
                chosen += decide(round);
                clock() - start
            })
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        let window =
            Latency { p50_us: times[CALLS / 2] * 1e6, p99_us: times[CALLS * 99 / 100] * 1e6 };
        quietest = if window.p99_us < quietest.p99_us { window } else { quietest };
    }
    // The choices are used, so that they are made.
    assert!(chosen < usize::MAX, "decisions are small numbers");
    quietest
}
