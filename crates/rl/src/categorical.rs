//! A choice among few actions by weights: probabilities, entropy, their gradients, masks.

use crate::net::kernels::{LANES, padded};
use crate::net::{exp, ln};
use crate::random::Draw;

/// Probabilities of actions, kept in room that is allocated once.
///
/// ```text
/// p_i = exp(z_i - max) / sum_j exp(z_j - max)      log p_i = z_i - max - ln(sum)
/// H   = - sum_i p_i log p_i
/// ```
///
/// Actions that are not allowed have probability zero and a log-probability of [`NEVER`].
///
/// Room is padded to whole vector registers with actions that are never allowed.
#[derive(Clone, Debug)]
pub struct Choice {
    actions: usize,
    logits: Vec<f32>,
    probabilities: Vec<f32>,
    log_probabilities: Vec<f32>,
    entropy: f32,
}

/// Weights of the two terms whose gradient a choice writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectiveWeights {
    /// Of the log-probability of the action.
    pub by_log: f32,
    /// Of the entropy.
    pub by_entropy: f32,
}

/// The log-probability of what is not allowed: finite, so that zero times it is zero.
pub const NEVER: f32 = -1e30;

impl Choice {
    /// Among this many actions.
    pub fn new(actions: usize) -> Self {
        let room = padded(actions);
        Self {
            actions,
            logits: vec![NEVER; room],
            probabilities: vec![0.0; room],
            log_probabilities: vec![NEVER; room],
            entropy: 0.0,
        }
    }

    /// Takes the probabilities that `logits` mean and returns their entropy. At least one action must be
    /// allowed.
    #[inline(always)]
    pub fn set(&mut self, logits: &[f32], allowed: &[bool]) -> f32 {
        for ((own, logit), allowed) in self.logits.iter_mut().zip(logits).zip(allowed) {
            *own = if *allowed { *logit } else { NEVER };
        }
        let (logits, _) = self.logits.as_chunks::<LANES>();
        let (probabilities, _) = self.probabilities.as_chunks_mut::<LANES>();
        let (logs, _) = self.log_probabilities.as_chunks_mut::<LANES>();
        let most = logits.as_flattened().iter().fold(NEVER, |most, logit| most.max(*logit));
        let mut sum = 0.0;
        for (p, z) in probabilities.iter_mut().zip(logits) {
            *p = z.map(
                #[inline(always)]
                |z| if z > NEVER { exp(z - most) } else { 0.0 },
            );
            sum += p.iter().sum::<f32>();
        }
        let (share, shift) = (1.0 / sum, most + ln(sum));
        let mut entropy = 0.0;
        for ((p, log), z) in probabilities.iter_mut().zip(logs).zip(logits) {
            for lane in 0..LANES {
                p[lane] *= share;
                log[lane] = if z[lane] > NEVER { z[lane] - shift } else { NEVER };
            }
            entropy -= p.iter().zip(&*log).map(|(p, log)| p * log).sum::<f32>();
        }
        self.entropy = entropy;
        entropy
    }

    /// Logarithms of the probabilities.
    #[inline(always)]
    pub fn log_probabilities(&self) -> &[f32] {
        &self.log_probabilities[..self.actions]
    }

    /// Probabilities.
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities[..self.actions]
    }

    /// Draws an action by its probability.
    #[inline]
    pub fn sample(&self, draw: &mut Draw) -> usize {
        let mut left = draw.unit_f32();
        let mut last = 0;
        for (action, probability) in self.probabilities.iter().enumerate() {
            if *probability > 0.0 {
                last = action;
                left -= probability;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }

    /// Writes the gradients by the logits of `by_log * log p_action + by_entropy * H`.
    ///
    /// ```text
    /// d log p_a / d z_j = [a = j] - p_j               d H / d z_j = - p_j (log p_j + H)
    /// ```
    #[inline(always)]
    pub fn write_gradient(
        &self,
        action: usize,
        ObjectiveWeights { by_log, by_entropy }: ObjectiveWeights,
        delta: &mut [f32],
    ) {
        let both = self.probabilities.iter().zip(&self.log_probabilities);
        for ((p, log), delta) in both.zip(&mut *delta) {
            *delta = -p * (by_log + by_entropy * (log + self.entropy));
        }
        delta[action] += by_log;
    }
}

/// The allowed action with the largest score, the first of equals.
#[inline]
pub fn best(scores: &[f32], allowed: &[bool]) -> usize {
    let mut best: Option<usize> = None;
    for (action, score) in scores.iter().enumerate() {
        if allowed[action] && best.is_none_or(|best| *score > scores[best]) {
            best = Some(action);
        }
    }
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Seed;

    #[test]
    fn probabilities_add_up_and_masked_actions_have_none() {
        let mut choice = Choice::new(3);
        let entropy = choice.set(&[1.0, 1.0, 50.0], &[true, true, false]);
        assert!((choice.log_probabilities()[0] + std::f32::consts::LN_2).abs() < 1e-6);
        assert_eq!(choice.probabilities(), [0.5, 0.5, 0.0]);
        assert!((entropy - std::f32::consts::LN_2).abs() < 1e-6);
        let mut draw = Draw::new(Seed::new(1));
        assert!((0..1000).all(|_| choice.sample(&mut draw) < 2));
        assert_eq!(best(&[1.0, 2.0, 50.0], &[true, true, false]), 1);
    }

    #[test]
    fn actions_are_drawn_by_their_probability() {
        let mut choice = Choice::new(3);
        choice.set(&[0.0, libm::logf(2.0), libm::logf(5.0)], &[true; 3]);
        let mut draw = Draw::new(Seed::new(4));
        let mut seen = [0_i32; 3];
        (0..8000).for_each(|_| seen[choice.sample(&mut draw)] += 1);
        for (seen, expected) in seen.iter().zip([1000, 2000, 5000]) {
            assert!((seen - expected).abs() < 150, "{seen} {expected}");
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let logits = [0.3_f32, -1.2, 0.8, 2.0];
        let allowed = [true, true, true, false];
        let objective = |logits: &[f32]| {
            let mut choice = Choice::new(4);
            let entropy = choice.set(logits, &allowed);
            (1.5 * choice.log_probabilities()[1] + 0.5 * entropy, choice)
        };
        let mut delta = [f32::NAN; 4];
        objective(&logits).1.write_gradient(
            1,
            ObjectiveWeights { by_log: 1.5, by_entropy: 0.5 },
            &mut delta,
        );
        for j in 0..4 {
            let at = |shift: f32| {
                let mut moved = logits;
                moved[j] += shift;
                objective(&moved).0
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - delta[j]).abs() < 1e-3, "{j}: {slope} {}", delta[j]);
        }
    }
}
