//! The clipped objective of PPO for one sample, with its derivative.
//!
//! ```text
//! ratio = pi(a|s) / pi_old(a|s)
//! gain  = min(ratio A, clip(ratio, 1-c, 1+c) A)
//! d (-gain) / d log pi(a|s) = - ratio A   while the ratio is inside its range or moves against A, else 0
//! ```
//!
//! With c = 0.2, A = 2 and a ratio of 1.1 the gain is 2.2 and the derivative -2.2: the probability is pushed
//! up. At a ratio of 1.25 the gain is held at 2.4 and the derivative is 0. With A = -2 and the same ratio the
//! gain is -2.5, which nothing holds, and the derivative 2.5 pushes the probability down.

use crate::net::exp;

/// The objective of one sample at one moment of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    /// What is maximised.
    pub gain: f32,
    /// Derivative of the loss `-gain` by the log-probability of the action.
    pub by_log_probability: f32,
    /// This sample's estimate of the KL divergence from the old policy, `ratio - 1 - ln(ratio)`: never negative.
    pub kl: f32,
    /// Whether the ratio has left its range, in either direction.
    pub is_clipped: bool,
}

impl Surrogate {
    /// At `log_ratio`, the log-probability of the action now minus that when it was taken.
    #[inline(always)]
    pub fn new(log_ratio: f32, advantage: f32, clip: f32) -> Self {
        let ratio = exp(log_ratio);
        let bounded = ratio.clamp(1.0 - clip, 1.0 + clip);
        let (free, held) = (ratio * advantage, bounded * advantage);
        let is_held = held < free;
        Self {
            gain: if is_held { held } else { free },
            by_log_probability: if is_held { 0.0 } else { -free },
            kl: ratio - 1.0 - log_ratio,
            is_clipped: (ratio - 1.0).abs() > clip,
        }
    }
}

#[test]
fn the_worked_numbers() {
    let at = |ratio: f32, advantage| Surrogate::new(libm::logf(ratio), advantage, 0.2);
    let is_about = |found: f32, expected: f32| (found - expected).abs() < 1e-5;
    let inside = at(1.1, 2.0);
    assert!(is_about(inside.gain, 2.2) && is_about(inside.by_log_probability, -2.2));
    assert!(!inside.is_clipped && is_about(inside.kl, 0.1 - libm::logf(1.1)));
    let beyond = at(1.25, 2.0);
    assert!(is_about(beyond.gain, 2.4) && beyond.is_clipped);
    assert_eq!(beyond.by_log_probability, 0.0);
    let against = at(1.25, -2.0);
    assert!(is_about(against.gain, -2.5) && is_about(against.by_log_probability, 2.5));
}
