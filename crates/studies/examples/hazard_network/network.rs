//! A small network that predicts how long a gap will be: 33 classes of lengths, equally wide on a log scale.
//!
//! ```text
//!   22 inputs ─► 32 tanh ─► 33 sums ─► softmax ─► p(class)
//!   loss of a gap that ended in class c       - ln p(c)
//!   loss of a gap that was cut off in c       - ln (what is left of c x p(c) + p(c+1) + p(c+2) + ...)
//! ```
//!
//! Both have one gradient: with s_j the share of class j that the gap may be in, and P = sum of s_j p_j,
//! d loss / d z_j = p_j - s_j p_j / P. What is left of the class matters: the data end after four hours, and a call that
//! came once in the first minutes would otherwise speak for the last class before the tail.

use windfall_core::Seed;
use windfall_policy::LevelGap;
use windfall_rl::categorical::Choice;
use windfall_rl::net::{Activation, Adam, AdamSettings, Initial, Mlp, Shape};
use windfall_rl::random::Draw;

use crate::gaps::{HISTORY, INPUTS, KnownGap};

/// Classes of lengths; the last is for all beyond four hours.
pub(crate) const CLASSES: usize = 33;
const HIDDEN: usize = 32;

const BATCH: usize = 256;
const RATE: f32 = 1e-3;
const MOST_EPOCHS: usize = 60;
/// Epochs without a better loss after which training ends.
const PATIENCE: usize = 6;

/// The class of a bin: 32 classes of 20 or 21 bins, each 36 % wider than the one before, and the tail.
pub(crate) fn class_of_bin(bin: usize) -> usize {
    bin * (CLASSES - 1) / (LevelGap::BINS - 1)
}

/// The first bin of a class.
fn first_bin(class: usize) -> usize {
    (class * (LevelGap::BINS - 1)).div_ceil(CLASSES - 1)
}

/// Which inputs a network may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The gaps of the level alone.
    History,
    /// Trigger, siblings and the minute of the hour too.
    Everything,
}

impl Sight {
    fn inputs(self, gap: &KnownGap) -> [f32; INPUTS] {
        let mut inputs = gap.inputs;
        if self == Self::History {
            inputs[HISTORY..].fill(0.0);
        }
        inputs
    }
}

/// A network that has been trained.
pub(crate) struct HazardNetwork {
    mlp: Mlp,
    sight: Sight,
}

/// The training progress of a network, for the terminal.
pub(crate) struct Training {
    pub(crate) epochs: usize,
    pub(crate) best_loss: f64,
}

impl HazardNetwork {
    /// Trains on `train` until the loss on `stopping` gets no better, and keeps the best weights.
    pub(crate) fn train(
        train: &[&KnownGap],
        stopping: &[&KnownGap],
        sight: Sight,
        seed: Seed,
    ) -> (Self, Training) {
        let shape = Shape {
            inputs: INPUTS,
            hidden: vec![HIDDEN],
            outputs: CLASSES,
            activation: Activation::Tanh,
        };
        let mut network = Self { mlp: Mlp::new(shape, Initial::PerInput, seed), sight };
        let mut adam = Adam::new(network.mlp.parameters().len(), AdamSettings::default());
        let mut draw = Draw::new(seed.stream("order"));
        let mut order: Vec<&KnownGap> = train.to_vec();
        let mut best = (network.loss(stopping), network.mlp.clone(), 0);
        let mut epochs = 0;
        while epochs < MOST_EPOCHS && epochs - best.2 < PATIENCE {
            epochs += 1;
            draw.shuffle(&mut order);
            network.epoch(&order, &mut adam);
            let loss = network.loss(stopping);
            if loss < best.0 {
                best = (loss, network.mlp.clone(), epochs);
            }
        }
        network.mlp = best.1;
        (network, Training { epochs: best.2, best_loss: best.0 })
    }

    fn epoch(&mut self, order: &[&KnownGap], adam: &mut Adam) {
        let mut passed = self.mlp.activations(BATCH);
        let mut gradients = vec![0.0; self.mlp.parameters().len()];
        let mut choice = Choice::new(CLASSES);
        let mean_weight = order.iter().map(|known| known.weight).sum::<f32>() / order.len() as f32;
        for batch in order.chunks(BATCH) {
            let input = self.rows(batch);
            self.mlp.forward(&input, &mut passed);
            for (row, known) in batch.iter().enumerate() {
                choice.set(passed.output(row), &[true; CLASSES]);
                write_gradient(choice.probabilities(), known, passed.output_delta(row));
            }
            self.mlp.backward(&input, &mut passed, &mut gradients);
            let scale = 1.0 / (mean_weight * batch.len() as f32);
            adam.step(self.mlp.parameters_mut(), &gradients, RATE, scale);
        }
    }

    fn rows(&self, gaps: &[&KnownGap]) -> Vec<f32> {
        gaps.iter().flat_map(|known| self.sight.inputs(known)).collect()
    }

    /// Mean loss per gap, weighed as in training.
    fn loss(&self, gaps: &[&KnownGap]) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        self.for_each(gaps, |place, chances| {
            let KnownGap { gap, weight, .. } = gaps[place];
            sum -= f64::from(weight * chance_of(chances, &possible(gap)).ln());
            weights += f64::from(*weight);
        });
        sum / f64::max(weights, f64::MIN_POSITIVE)
    }

    /// Hands the chance of every class to `take`, gap by gap.
    fn for_each(&self, gaps: &[&KnownGap], mut take: impl FnMut(usize, &[f32])) {
        let mut passed = self.mlp.activations(BATCH);
        let mut choice = Choice::new(CLASSES);
        for (number, batch) in gaps.chunks(BATCH).enumerate() {
            self.mlp.forward(&self.rows(batch), &mut passed);
            for row in 0..batch.len() {
                choice.set(passed.output(row), &[true; CLASSES]);
                take(number * BATCH + row, choice.probabilities());
            }
        }
    }

    /// The chance of every class, for each of these gaps.
    pub(crate) fn chances(&self, gaps: &[&KnownGap]) -> Vec<[f32; CLASSES]> {
        let mut all = vec![[0.0; CLASSES]; gaps.len()];
        self.for_each(gaps, |place, chances| all[place].copy_from_slice(chances));
        all
    }
}

/// How much of each class a gap may be in: of one that ended all of its own, of one that was cut off all longer ones and
/// what is left of its own.
fn possible(gap: &LevelGap) -> [f32; CLASSES] {
    let bin = gap.bin();
    let class = class_of_bin(bin);
    let mut shares = [0.0; CLASSES];
    shares[class] = 1.0;
    if gap.is_cut && class + 1 < CLASSES {
        let first = first_bin(class);
        let after = first_bin(class + 1);
        shares[class] = (after - 1 - bin) as f32 / (after - first) as f32;
        shares[class + 1..].fill(1.0);
    }
    shares
}

fn write_gradient(chances: &[f32], KnownGap { gap, weight, .. }: &KnownGap, into: &mut [f32]) {
    let possible = possible(gap);
    let all = chance_of(chances, &possible);
    for ((delta, chance), share) in into.iter_mut().zip(chances).zip(possible) {
        *delta = weight * chance * (1.0 - share / all);
    }
}

/// The chance that was given to a gap; none is held impossible.
fn chance_of(chances: &[f32], possible: &[f32; CLASSES]) -> f32 {
    chances.iter().zip(possible).map(|(chance, share)| chance * share).sum::<f32>().max(1e-7)
}
