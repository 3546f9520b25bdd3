//! Adam (Kingma and Ba, 2015), on a flat vector.

use serde::{Deserialize, Serialize};

use super::kernels::dispatch;

/// Constants of Adam; the learning rate is given at each step, because it follows a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamSettings {
    /// Memory of the mean gradient.
    pub beta1: f32,
    /// Memory of the mean squared gradient.
    pub beta2: f32,
    /// Added to the root in the denominator; larger values calm the first steps.
    pub epsilon: f32,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-5 }
    }
}

/// The moments of Adam.
#[derive(Clone, Debug)]
pub struct Adam {
    settings: AdamSettings,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) steps: u64,
}

impl Adam {
    /// For this many parameters.
    pub fn new(parameters: usize, settings: AdamSettings) -> Self {
        Self { settings, mean: vec![0.0; parameters], square: vec![0.0; parameters], steps: 0 }
    }

    /// Takes one step against `scale` times the gradients.
    ///
    /// ```text
    /// m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
    /// p = p - rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
    /// ```
    pub fn step(&mut self, parameters: &mut [f32], gradients: &[f32], rate: f32, scale: f32) {
        self.steps += 1;
        let AdamSettings { beta1, beta2, epsilon } = self.settings;
        #[expect(clippy::cast_precision_loss, reason = "both powers are zero long before 2^52")]
        let steps = self.steps as f64;
        let first = 1.0 - libm::pow(f64::from(beta1), steps);
        let second = 1.0 - libm::pow(f64::from(beta2), steps);
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let (rate, root) = ((f64::from(rate) / first) as f32, libm::sqrt(1.0 / second) as f32);
        let (mean, square) = (&mut self.mean[..], &mut self.square[..]);
        let pull = Pull { beta1, beta2, epsilon, rate, root, scale };
        dispatch(
            #[inline(always)]
            || {
                let moments = mean.iter_mut().zip(square);
                for ((p, g), (m, v)) in parameters.iter_mut().zip(gradients).zip(moments) {
                    pull.on(p, *g, m, v);
                }
            },
        );
    }
}

/// What to multiply gradients with whose squares add up to `squares`, so that none is longer than `longest`.
pub(crate) fn clip_factor(longest: Option<f32>, squares: f32) -> f32 {
    let longest = longest.unwrap_or(f32::INFINITY);
    (longest / (squares.sqrt() + 1e-6)).min(1.0)
}

/// The constants of one step.
#[derive(Clone, Copy)]
struct Pull {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    rate: f32,
    root: f32,
    scale: f32,
}

impl Pull {
    #[inline(always)]
    fn on(self, p: &mut f32, g: f32, m: &mut f32, v: &mut f32) {
        let g = g * self.scale;
        *m = self.beta1 * *m + (1.0 - self.beta1) * g;
        *v = self.beta2 * *v + (1.0 - self.beta2) * g * g;
        *p -= self.rate * *m / (v.sqrt() * self.root + self.epsilon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_gradients_are_cut_and_short_ones_left() {
        assert!((clip_factor(Some(0.5), 4.0) - 0.25).abs() < 1e-6);
        assert_eq!(clip_factor(Some(0.5), 0.04), 1.0);
        assert_eq!(clip_factor(None, 1e9), 1.0);
    }

    #[test]
    fn the_first_step_is_the_rate_whatever_the_gradient() {
        let mut adam = Adam::new(3, AdamSettings { epsilon: 1e-12, ..AdamSettings::default() });
        let mut parameters = [1.0, 1.0, 1.0];
        adam.step(&mut parameters, &[1e-3, -50.0, 0.0], 0.1, 1.0);
        for (parameter, expected) in parameters.iter().zip([0.9, 1.1, 1.0]) {
            assert!((parameter - expected).abs() < 1e-6, "{parameter} {expected}");
        }
    }

    #[test]
    fn two_steps_worked_by_hand() {
        // Gradients 1 then 0: m = 0.1 then 0.09, v = 0.001 then 0.000999.
        let mut adam = Adam::new(1, AdamSettings { epsilon: 0.0, ..AdamSettings::default() });
        let mut parameter = [0.0];
        adam.step(&mut parameter, &[1.0], 1.0, 1.0);
        adam.step(&mut parameter, &[0.0], 1.0, 1.0);
        let second = (0.09 / 0.19) / f64::sqrt(0.000_999 / 0.001_999);
        assert!((f64::from(parameter[0]) + 1.0 + second).abs() < 1e-5, "{}", parameter[0]);
    }
}
