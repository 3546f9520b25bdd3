//! Linear regression by gradient descent: from samples `y = w x` it finds the weights `w` again.

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const GRADIENT_DESCENT: Builtin = Builtin {
    name: "gradient-descent",
    published_as: Some("gd"),
    summary: "Linear regression by gradient descent; memory grows with the samples.",
    reservation: Allocation::new(1000, 256),
    timeout: Duration::from_secs(60),
    // 32 features of 4 bytes: 300,000 samples need 38 MB.
    input: Some(Input {
        parameter: "samples",
        unit: "samples",
        default: 300_000,
        most: 10_000_000,
    }),
    threads: 2,
    uses_store: true,
    body: run,
};

const FEATURES: usize = 32;
const ITERATIONS: usize = 30;
/// Samples whose gradients are added up together: sums do not depend on the number of threads.
const BLOCK: usize = 1000;
/// Features are uniform in -1..1 with variance 1/3, so a step of 1.5 halves every error each time.
const STEP: f32 = 1.5;

type Weights = [f32; FEATURES];

fn run(call: &Invocation) -> Result<Value, Failure> {
    let samples = call.size as usize;
    let truth: Weights = std::array::from_fn(|feature| feature as f32 / FEATURES as f32 - 0.5);
    let data = features(samples);
    let mut weights: Weights = [0.0; FEATURES];
    for _ in 0..ITERATIONS {
        let gradient = gradient(&data, &weights, &truth, call.threads);
        for (weight, slope) in weights.iter_mut().zip(gradient) {
            *weight -= STEP * slope / samples as f32;
        }
    }
    let errors = weights.iter().zip(truth).map(|(found, true_value)| (found - true_value).abs());
    let worst = errors.fold(0.0_f32, f32::max);
    Ok(json!({ "samples": samples, "iterations": ITERATIONS, "largest_error": worst }))
}

fn features(samples: usize) -> Vec<Weights> {
    let mut generator = Seed::new(samples as u64).stream("gradient-descent").generator();
    let mut feature = || generator.next_u32() as f32 / u32::MAX as f32 * 2.0 - 1.0;
    (0..samples).map(|_| std::array::from_fn(|_| feature())).collect()
}

/// Of the sum of squares, halved: the sum over samples of (prediction - y) x.
fn gradient(data: &[Weights], weights: &Weights, truth: &Weights, threads: usize) -> Weights {
    let blocks: Vec<&[Weights]> = data.chunks(BLOCK).collect();
    let sums = split(blocks.len(), threads, |range| {
        blocks[range].iter().map(|block| block_gradient(block, weights, truth)).collect::<Vec<_>>()
    });
    let mut total = [0.0; FEATURES];
    for block in sums.iter().flatten() {
        for (sum, part) in total.iter_mut().zip(block) {
            *sum += part;
        }
    }
    total
}

fn block_gradient(block: &[Weights], weights: &Weights, truth: &Weights) -> Weights {
    let mut sum = [0.0; FEATURES];
    for x in block {
        let error: f32 =
            x.iter().zip(weights).zip(truth).map(|((x, found), real)| x * (found - real)).sum();
        for (sum, x) in sum.iter_mut().zip(x) {
            *sum += error * x;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_found_again() {
        let answer = GRADIENT_DESCENT.run(&json!({"samples": 5_000})).unwrap();
        let error = answer["largest_error"].as_f64().unwrap();
        assert!(error < 1e-4, "{error}");
    }

    #[test]
    fn the_gradient_of_one_sample_is_the_error_times_the_sample() {
        let mut x = [0.0; FEATURES];
        (x[0], x[1]) = (1.0, 2.0);
        let mut weights = [0.0; FEATURES];
        weights[1] = 3.0;
        // Predicted 6, true value 0.
        let gradient = gradient(&[x], &weights, &[0.0; FEATURES], 1);
        assert_eq!((gradient[0], gradient[1], gradient[2]), (6.0, 12.0, 0.0));
    }
}
