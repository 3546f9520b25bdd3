//! A learner for the settings of `windfall`: tries a change of one or two of them on recent calls, and offers it only if
//! the check accepts it. It needs no clock and no thread of its own; the daemon runs it on one.

use windfall_core::Seed;
use windfall_core::seed::mix;
use windfall_policy::WindfallSizingSettings;

/// Proposes settings near the best known ones.
#[derive(Clone, Debug)]
pub struct Tuner {
    best: WindfallSizingSettings,
    state: u64,
}

impl Tuner {
    /// Begins at `settings`; proposals are drawn from `seed`.
    pub fn new(settings: WindfallSizingSettings, seed: Seed) -> Self {
        Self { best: settings, state: seed.stream("tuning").get() }
    }

    /// The settings that proposals start from.
    pub fn best(&self) -> &WindfallSizingSettings {
        &self.best
    }

    /// Takes over the settings that are in charge: accepted ones, or those before after a roll-back.
    pub fn settle(&mut self, settings: WindfallSizingSettings) {
        self.best = settings;
    }

    /// A number from 0 to 1.
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.state) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Settings that differ a little from the best ones, within bounds in which the policy makes sense.
    pub fn propose(&mut self) -> WindfallSizingSettings {
        let mut next = self.best;
        match (self.draw() * 4.0) as u32 {
            0 => {
                next.cpu_quantile = (next.cpu_quantile + (self.draw() - 0.5) * 0.2).clamp(0.5, 0.99)
            }
            1 => {
                next.memory_margin =
                    (next.memory_margin + (self.draw() - 0.5) * 0.2).clamp(0.05, 0.6)
            }
            2 => {
                next.first_margin = (next.first_margin + (self.draw() - 0.5) * 0.3).clamp(0.0, 1.0)
            }
            _ => next.use_margin = (next.use_margin + (self.draw() - 0.5) * 0.2).clamp(0.0, 0.6),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_differ_a_little_and_stay_within_bounds() {
        let mut tuner = Tuner::new(WindfallSizingSettings::default(), Seed::new(7));
        let best = *tuner.best();
        let proposals: Vec<_> = (0..200).map(|_| tuner.propose()).collect();
        assert!(proposals.iter().filter(|one| **one != best).count() > 150);
        assert!(proposals.iter().all(|one| (0.5..=0.99).contains(&one.cpu_quantile)
            && (0.05..=0.6).contains(&one.memory_margin)));
    }
}
