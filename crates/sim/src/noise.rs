//! Random draws that depend on who asks and not on when: the n-th look at call 812 sees the same noise
//! under every policy, so that runs of one seed can be compared pair by pair.

use windfall_core::seed::mix;
use windfall_core::{ColdStart, Duration, Seed};

/// A source of draws addressed by two numbers.
#[derive(Clone, Copy, Debug)]
pub struct Noise(u64);

impl Noise {
    /// Draws of the stream `seed`.
    pub fn new(seed: Seed) -> Self {
        Self(seed.get())
    }

    fn bits(self, subject: u64, draw: u64) -> u64 {
        mix(self.0 ^ mix(subject.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(draw)))
    }

    /// Uniform in [0, 1).
    pub fn uniform(self, subject: u64, draw: u64) -> f64 {
        (self.bits(subject, draw) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// No draw of [`Self::normal`] is larger: (4 * 65535 - 131070) / 37837.2 is 3.464.
    pub const FARTHEST: f64 = 3.465;

    /// Nearly standard normal: the sum of four uniform sixteenths of a word, never beyond 3.46.
    pub fn normal(self, subject: u64, draw: u64) -> f64 {
        let bits = self.bits(subject, draw);
        let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
        // Mean 4 * 32767.5, variance 4 * (65536^2 - 1) / 12.
        (sum as f64 - 131_070.0) / 37_837.2
    }

    /// How long the instance that is started for `subject` takes.
    pub fn cold_start(self, law: ColdStart, subject: u64) -> Duration {
        law.median.scaled((law.sigma * self.normal(subject, 0)).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_draws_have_mean_zero_and_unit_variance() {
        let noise = Noise::new(Seed::new(1).stream("test"));
        let draws: Vec<f64> = (0..100_000).map(|i| noise.normal(i, 3)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }
}
