//! A choice among few actions by weights: probabilities, entropy, their gradients, masks.

use crate::net::exp;
use crate::random::Draw;

/// Writes the logarithms of the probabilities that `logits` mean; actions that are not allowed get
/// negative infinity. Returns the entropy.
///
/// ```text
/// log p_i = z_i - max - ln(sum_j exp(z_j - max))          H = - sum_i p_i log p_i
/// ```
#[inline(always)]
pub fn log_probabilities(logits: &[f32], allowed: &[bool], out: &mut [f32]) -> f32 {
    let mut most = f32::NEG_INFINITY;
    for (logit, allowed) in logits.iter().zip(allowed) {
        most = if *allowed { most.max(*logit) } else { most };
    }
    let mut sum = 0.0;
    for ((logit, allowed), out) in logits.iter().zip(allowed).zip(&mut *out) {
        *out = if *allowed { *logit - most } else { f32::NEG_INFINITY };
        sum += if *allowed { exp(*out) } else { 0.0 };
    }
    let log_sum = libm::logf(sum);
    let mut entropy = 0.0;
    for (out, allowed) in out.iter_mut().zip(allowed) {
        *out -= log_sum;
        entropy -= if *allowed { exp(*out) * *out } else { 0.0 };
    }
    entropy
}

/// Draws an action by its probability; `log_probabilities` as written by the function of that name.
#[inline]
pub fn sample(log_probabilities: &[f32], draw: &mut Draw) -> usize {
    let mut left = draw.unit_f32();
    let mut last = 0;
    for (action, log_probability) in log_probabilities.iter().enumerate() {
        if *log_probability > f32::NEG_INFINITY {
            last = action;
            left -= exp(*log_probability);
            if left < 0.0 {
                break;
            }
        }
    }
    last
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

/// Adds to `delta` the gradients by the logits of `by_log * log p_action + by_entropy * H`.
///
/// ```text
/// d log p_a / d z_j = [a = j] - p_j               d H / d z_j = - p_j (log p_j + H)
/// ```
#[inline(always)]
pub fn add_gradient(
    log_probabilities: &[f32],
    entropy: f32,
    action: usize,
    (by_log, by_entropy): (f32, f32),
    delta: &mut [f32],
) {
    for (j, (log_p, delta)) in log_probabilities.iter().zip(&mut *delta).enumerate() {
        if *log_p > f32::NEG_INFINITY {
            let p = exp(*log_p);
            let chosen = if j == action { 1.0 } else { 0.0 };
            *delta += by_log * (chosen - p) - by_entropy * p * (log_p + entropy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Seed;

    const ALL: [bool; 3] = [true; 3];

    #[test]
    fn probabilities_add_up_and_masked_actions_have_none() {
        let mut out = [0.0; 3];
        let entropy = log_probabilities(&[1.0, 1.0, 50.0], &[true, true, false], &mut out);
        assert!((out[0] + std::f32::consts::LN_2).abs() < 1e-6);
        assert_eq!(out[2], f32::NEG_INFINITY);
        assert!((entropy - std::f32::consts::LN_2).abs() < 1e-6);
        let mut draw = Draw::new(Seed::new(1));
        assert!((0..1000).all(|_| sample(&out, &mut draw) < 2));
        assert_eq!(best(&[1.0, 2.0, 50.0], &[true, true, false]), 1);
    }

    #[test]
    fn actions_are_drawn_by_their_probability() {
        let mut out = [0.0; 3];
        log_probabilities(&[0.0, libm::logf(2.0), libm::logf(5.0)], &ALL, &mut out);
        let mut draw = Draw::new(Seed::new(4));
        let mut seen = [0_i32; 3];
        (0..8000).for_each(|_| seen[sample(&out, &mut draw)] += 1);
        for (seen, expected) in seen.iter().zip([1000, 2000, 5000]) {
            assert!((seen - expected).abs() < 150, "{seen} {expected}");
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let logits = [0.3_f32, -1.2, 0.8, 2.0];
        let allowed = [true, true, true, false];
        let objective = |logits: &[f32]| {
            let mut out = [0.0; 4];
            let entropy = log_probabilities(logits, &allowed, &mut out);
            (1.5 * out[1] + 0.5 * entropy, out, entropy)
        };
        let (_, out, entropy) = objective(&logits);
        let mut delta = [0.0; 4];
        add_gradient(&out, entropy, 1, (1.5, 0.5), &mut delta);
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
