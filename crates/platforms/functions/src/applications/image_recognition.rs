//! Recognises pictures with a residual network: the structure of ResNet, fewer and smaller layers, weights from a
//! generator. The first call of an instance builds the network, as real ones load theirs.

use std::sync::LazyLock;

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const IMAGE_RECOGNITION: Builtin = Builtin {
    name: "image-recognition",
    published_as: Some("ir"),
    summary: "Classifies pictures with a residual network, built by the first call.",
    reservation: Allocation::new(2000, 384),
    timeout: Duration::from_secs(60),
    input: Some(Input { parameter: "pictures", unit: "pictures", default: 8, most: 10_000 }),
    threads: 0,
    uses_store: true,
    body: run,
};

/// Side of a picture, pixels.
const SIDE: usize = 64;
const CLASSES: usize = 100;
/// Channels of the stages; each halves the side of the one before.
const STAGES: [usize; 3] = [32, 64, 128];

/// Planes of numbers, one per channel.
#[derive(Clone)]
struct Planes {
    channels: usize,
    side: usize,
    values: Vec<f32>,
}

/// A convolution with 3 x 3 weights per pair of channels.
struct Convolution {
    from: usize,
    to: usize,
    weights: Vec<f32>,
}

struct Network {
    stem: Convolution,
    /// Three convolutions a stage: one that widens, two with a path around them.
    stages: Vec<[Convolution; 3]>,
    classifier: Vec<f32>,
}

static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let mut generator = Seed::new(50).stream("image-recognition").generator();
    let mut weights = |count: usize, inputs: usize| -> Vec<f32> {
        // Uniform with variance 2 / inputs, so that values neither die out nor explode.
        let reach = (6.0 / inputs as f32).sqrt();
        let mut weight = || (generator.next_u32() as f32 / u32::MAX as f32 * 2.0 - 1.0) * reach;
        (0..count).map(|_| weight()).collect()
    };
    let mut convolution = |from: usize, to: usize| {
        let weights = weights(from * to * 9, from * 9);
        Convolution { from, to, weights }
    };
    let stem = convolution(3, STAGES[0]);
    let befores = [STAGES[0]].into_iter().chain(STAGES);
    let stages = befores
        .zip(STAGES)
        .map(|(before, to)| [convolution(before, to), convolution(to, to), convolution(to, to)])
        .collect();
    let classifier = weights(STAGES[2] * CLASSES, STAGES[2]);
    Network { stem, stages, classifier }
});

fn run(call: &Invocation) -> Result<Value, Failure> {
    let found = (0..call.size).map(|number| {
        let scores = NETWORK.scores(&picture(number));
        let best = (0..CLASSES).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        best.unwrap_or(0)
    });
    let classes: Vec<usize> = found.collect();
    let shown: Vec<&usize> = classes.iter().take(10).collect();
    let digest = crc32fast::hash(&classes.iter().map(|class| *class as u8).collect::<Vec<u8>>());
    Ok(json!({ "pictures": call.size, "first_classes": shown, "digest": digest }))
}

/// Stripes whose angle and width depend on the number.
fn picture(number: u32) -> Planes {
    let (a, b) = (number as usize % 7 + 1, number as usize % 5 + 1);
    let value = |at: usize| {
        let (channel, x, y) = (at / (SIDE * SIDE), at % SIDE, at / SIDE % SIDE);
        ((x * a + y * b + channel * 11) % 32) as f32 / 16.0 - 1.0
    };
    let values = (0..3 * SIDE * SIDE).map(value).collect();
    Planes { channels: 3, side: SIDE, values }
}

impl Network {
    fn scores(&self, picture: &Planes) -> Vec<f32> {
        let mut planes = self.stem.apply(picture).rectified();
        for [widen, first, second] in &self.stages {
            planes = widen.apply(&planes).rectified().halved();
            let around = planes.clone();
            planes = second.apply(&first.apply(&planes).rectified());
            for (value, kept) in planes.values.iter_mut().zip(&around.values) {
                *value = (*value + kept).max(0.0);
            }
        }
        let area = planes.side * planes.side;
        let means: Vec<f32> = planes
            .values
            .chunks(area)
            .map(|plane| plane.iter().sum::<f32>() / area as f32)
            .collect();
        let rows = self.classifier.chunks(means.len());
        rows.map(|row| row.iter().zip(&means).map(|(weight, mean)| weight * mean).sum()).collect()
    }
}

impl Convolution {
    /// Zeros are assumed outside; the side stays the same.
    fn apply(&self, planes: &Planes) -> Planes {
        let side = planes.side;
        let area = side * side;
        debug_assert_eq!(planes.channels, self.from);
        let mut values = vec![0.0; self.to * area];
        for (to, plane) in values.chunks_mut(area).enumerate() {
            for (from, source) in planes.values.chunks(area).enumerate() {
                let weights = &self.weights[(to * self.from + from) * 9..][..9];
                for (place, weight) in weights.iter().enumerate() {
                    add_shifted(plane, source, side, (place % 3, place / 3), *weight);
                }
            }
        }
        Planes { channels: self.to, side, values }
    }
}

/// Adds `weight` times the source, moved by `shift - 1` to the left and up: whole rows at a time, which the compiler
/// turns into vector instructions.
fn add_shifted(plane: &mut [f32], source: &[f32], side: usize, shift: (usize, usize), weight: f32) {
    let (right, down) = shift;
    // With shift 0 the first column takes nothing, with shift 2 the last one.
    let (to, from) = (1_usize.saturating_sub(right), right.saturating_sub(1));
    let width = side - to.max(from);
    let (first, last) = (1_usize.saturating_sub(down), side - down.saturating_sub(1));
    for y in first..last {
        let target = &mut plane[y * side + to..][..width];
        let row = &source[(y + down - 1) * side + from..][..width];
        for (sum, value) in target.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
}

impl Planes {
    fn rectified(mut self) -> Self {
        self.values.iter_mut().for_each(|value| *value = value.max(0.0));
        self
    }

    /// The largest of every four neighbours.
    fn halved(&self) -> Self {
        let (side, half) = (self.side, self.side / 2);
        let mut values = Vec::with_capacity(self.values.len() / 4);
        for plane in self.values.chunks(side * side) {
            for at in 0..half * half {
                let corner = at / half * 2 * side + at % half * 2;
                let four = [corner, corner + 1, corner + side, corner + side + 1];
                values.push(four.into_iter().map(|at| plane[at]).fold(f32::MIN, f32::max));
            }
        }
        Self { channels: self.channels, side: half, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes(side: usize, values: &[f32]) -> Planes {
        Planes { channels: values.len() / (side * side), side, values: values.to_vec() }
    }

    #[test]
    fn a_convolution_adds_neighbours_with_zeros_outside() {
        let ones = Convolution { from: 1, to: 1, weights: vec![1.0; 9] };
        let sums = ones.apply(&planes(3, &[1.0; 9])).values;
        assert_eq!(sums, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
    }

    #[test]
    fn a_single_weight_moves_the_picture() {
        let source: Vec<f32> = (1..=9).map(|value| value as f32).collect();
        let mut weights = vec![0.0; 9];
        weights[5] = 1.0; // The neighbour on the right.
        let right = Convolution { from: 1, to: 1, weights };
        let moved = right.apply(&planes(3, &source)).values;
        assert_eq!(moved, [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0]);
    }

    #[test]
    fn halving_keeps_the_largest_of_four() {
        let halved = planes(2, &[1.0, 7.0, 3.0, 2.0]).halved();
        assert_eq!((halved.side, halved.values), (1, vec![7.0]));
    }

    #[test]
    fn different_pictures_have_different_scores_and_equal_ones_the_same() {
        let scores = NETWORK.scores(&picture(0));
        assert_eq!(scores.len(), CLASSES);
        assert!(scores.iter().all(|score| score.is_finite()));
        assert_eq!(scores, NETWORK.scores(&picture(0)));
        assert_ne!(scores, NETWORK.scores(&picture(1)));
    }
}
