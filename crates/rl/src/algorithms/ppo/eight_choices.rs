//! Choices of eight samples at once, one per lane of a vector register.
//!
//! The same formulas, in the same order, as [`Choice`](crate::categorical::Choice) has for one sample, so
//! up to eight actions the bits are the same too; side by side they take an eighth of the time, because
//! no sum has to wait for its own lane.

use crate::categorical::NEVER;
use crate::net::kernels::LANES;
use crate::net::{exp, ln};

/// One number of each of eight samples.
pub(super) type Eight = [f32; LANES];

/// Probabilities of the actions of eight samples, kept in room that is allocated once.
#[derive(Clone, Debug)]
pub(super) struct EightChoices {
    /// For each action: its logits, then the logarithms of its probabilities.
    logs: Vec<Eight>,
    probabilities: Vec<Eight>,
    entropy: Eight,
}

impl EightChoices {
    /// Among this many actions.
    pub(super) fn new(actions: usize) -> Self {
        let room = vec![[0.0; LANES]; actions];
        Self { logs: room.clone(), probabilities: room, entropy: [0.0; LANES] }
    }

    /// Number of actions.
    pub(super) fn actions(&self) -> usize {
        self.logs.len()
    }

    /// Takes the logits of one sample. Lanes that are not loaded keep those of an earlier one.
    #[inline(always)]
    pub(super) fn load(&mut self, lane: usize, logits: &[f32], allowed: &[bool]) {
        for ((own, logit), allowed) in self.logs.iter_mut().zip(logits).zip(allowed) {
            own[lane] = if *allowed { *logit } else { NEVER };
        }
    }

    /// Works out the probabilities and returns the entropies.
    #[inline(always)]
    pub(super) fn settle(&mut self) -> Eight {
        let mut most = [NEVER; LANES];
        for logit in &self.logs {
            for lane in 0..LANES {
                most[lane] = most[lane].max(logit[lane]);
            }
        }
        let mut sum = [0.0; LANES];
        for (p, logit) in self.probabilities.iter_mut().zip(&self.logs) {
            for lane in 0..LANES {
                let z = logit[lane];
                p[lane] = if z > NEVER { exp(z - most[lane]) } else { 0.0 };
                sum[lane] += p[lane];
            }
        }
        let (mut share, mut shift) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            share[lane] = 1.0 / sum[lane];
            shift[lane] = most[lane] + ln(sum[lane]);
        }
        let mut entropy = [0.0; LANES];
        for (p, log) in self.probabilities.iter_mut().zip(&mut self.logs) {
            for lane in 0..LANES {
                p[lane] *= share[lane];
                log[lane] = if log[lane] > NEVER { log[lane] - shift[lane] } else { NEVER };
                entropy[lane] -= p[lane] * log[lane];
            }
        }
        self.entropy = entropy;
        entropy
    }

    /// The logarithm of the probability of an action of one sample.
    #[inline(always)]
    pub(super) fn log_probability(&self, lane: usize, action: usize) -> f32 {
        self.logs[action][lane]
    }

    /// Replaces the probabilities by the gradients by the logits of
    /// `by_log * log p_action + by_entropy * H`, but for the action's own `by_log`.
    #[inline(always)]
    pub(super) fn differentiate(&mut self, by_log: Eight, by_entropy: f32) {
        for (p, log) in self.probabilities.iter_mut().zip(&self.logs) {
            for lane in 0..LANES {
                let outer = by_log[lane] + by_entropy * (log[lane] + self.entropy[lane]);
                p[lane] = -p[lane] * outer;
            }
        }
    }

    /// Writes the gradients of one sample.
    #[inline(always)]
    pub(super) fn write(&self, lane: usize, action: usize, by_log: f32, delta: &mut [f32]) {
        for (delta, slope) in delta.iter_mut().zip(&self.probabilities) {
            *delta = slope[lane];
        }
        delta[action] += by_log;
    }
}

#[test]
fn eight_choices_are_eight_times_one_choice() {
    use crate::categorical::{Choice, ObjectiveWeights};
    let actions = 5;
    let mut eight = EightChoices::new(actions);
    let logits: Vec<f32> = (0..8 * actions).map(|i| (i as f32 * 0.7).sin() * 4.0).collect();
    let allowed: Vec<bool> = (0..8 * actions).map(|i| i % 7 != 3).collect();
    for lane in 0..8 {
        let span = lane * actions..(lane + 1) * actions;
        eight.load(lane, &logits[span.clone()], &allowed[span]);
    }
    let entropy = eight.settle();
    let by_log: Eight = std::array::from_fn(|lane| 0.5 - lane as f32);
    let logs: Vec<Eight> = eight.logs.clone();
    eight.differentiate(by_log, 0.25);
    for lane in 0..8 {
        let span = lane * actions..(lane + 1) * actions;
        let mut one = Choice::new(actions);
        assert_eq!(one.set(&logits[span.clone()], &allowed[span]), entropy[lane]);
        for (one, eight) in one.log_probabilities().iter().zip(&logs) {
            assert_eq!(*one, eight[lane]);
        }
        let (mut expected, mut found) = ([0.0; 5], [0.0; 5]);
        let weights = ObjectiveWeights { by_log: by_log[lane], by_entropy: 0.25 };
        one.write_gradient(2, weights, &mut expected);
        eight.write(lane, 2, by_log[lane], &mut found);
        assert_eq!(expected, found);
    }
}
