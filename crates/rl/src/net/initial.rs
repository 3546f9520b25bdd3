//! First weights.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use crate::random::Draw;

/// How the first weights are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Initial {
    /// Uniform within one over the root of the number of inputs, biases too: PyTorch's default.
    PerInput,
    /// Orthogonal rows or columns, biases zero (Saxe et al., 2014): signals keep their length.
    Orthogonal {
        /// Length of hidden rows.
        hidden: f32,
        /// Length of output rows; a small one makes the first policy nearly uniform.
        output: f32,
    },
}

impl Initial {
    /// Weight (`outputs x inputs`) and bias of a layer.
    pub(crate) fn draw(
        self,
        inputs: usize,
        outputs: usize,
        is_last: bool,
        seed: Seed,
    ) -> (Vec<f32>, Vec<f32>) {
        match self {
            Self::PerInput => {
                let mut draw = Draw::new(seed);
                #[expect(clippy::cast_precision_loss, reason = "layers have few inputs")]
                let bound = 1.0 / (inputs as f32).sqrt();
                let mut number = || (2.0 * draw.unit_f32() - 1.0) * bound;
                let weight = (0..inputs * outputs).map(|_| number()).collect();
                (weight, (0..outputs).map(|_| number()).collect())
            }
            Self::Orthogonal { hidden, output } => {
                let gain = f64::from(if is_last { output } else { hidden });
                (orthogonal(inputs, outputs, gain, seed), vec![0.0; outputs])
            }
        }
    }
}

/// Gram-Schmidt on normal vectors: as many as the smaller side, each as long as the larger.
fn orthogonal(inputs: usize, outputs: usize, gain: f64, seed: Seed) -> Vec<f32> {
    let mut draw = Draw::new(seed);
    let (count, length) = (inputs.min(outputs), inputs.max(outputs));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    while vectors.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| draw.normal()).collect();
        // Twice, because one pass leaves rounding errors behind.
        for other in vectors.iter().chain(&vectors) {
            let shared: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
            vector.iter_mut().zip(other).for_each(|(a, b)| *a -= shared * b);
        }
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        vectors.push(vector.iter().map(|x| x / norm).collect());
    }
    let at = |output: usize, input: usize| {
        if outputs <= inputs { vectors[output][input] } else { vectors[input][output] }
    };
    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
    let weight = |i: usize| (gain * at(i / inputs, i % inputs)) as f32;
    (0..inputs * outputs).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_orthogonal_and_as_long_as_asked() {
        for (inputs, outputs) in [(7, 4), (4, 7)] {
            let weight = orthogonal(inputs, outputs, 1.5, Seed::new(5));
            let at = |output: usize, input: usize| f64::from(weight[output * inputs + input]);
            for i in 0..inputs.min(outputs) {
                for j in 0..inputs.min(outputs) {
                    let product: f64 = if outputs <= inputs {
                        (0..inputs).map(|k| at(i, k) * at(j, k)).sum()
                    } else {
                        (0..outputs).map(|k| at(k, i) * at(k, j)).sum()
                    };
                    let expected = if i == j { 2.25 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn per_input_stays_within_its_bound() {
        let (weight, bias) = Initial::PerInput.draw(16, 8, false, Seed::new(1));
        assert!(weight.iter().chain(&bias).all(|x| x.abs() <= 0.25));
    }
}
