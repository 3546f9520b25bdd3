//! Safeguard-random: FaaSRM's safeguard with a uniform random choice in place of the network.
//!
//! ```text
//!   u uniform in [0, 1)     size = low + u x (high - low)     per resource, range from PeakRange
//! ```
//!
//! A range of 1.3 to 4 cores and a draw of 0.5 give 2.65 cores. In the published simulation this scores
//! 0.760, the same as the trained agent (0.76): it is the baseline for a learned policy behind this
//! safeguard.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use windfall_core::{
    CallDecision, CallOutcome, CallPolicy, CallView, PeakRange, PeakSettings, PolicyError, Seed,
};

/// A uniform choice inside the allowed range.
#[derive(Clone, Debug)]
pub struct SafeguardRandom {
    ranges: PeakRange,
    generator: Xoshiro256PlusPlus,
}

impl SafeguardRandom {
    /// Creates a policy that draws from the stream `policy/safeguard-random` of `seed`.
    pub fn new(settings: PeakSettings, seed: Seed) -> Self {
        let generator = seed.stream("policy/safeguard-random").generator();
        Self { ranges: PeakRange::new(settings), generator }
    }

    /// Uniform between `low` and `high`.
    fn pick(&mut self, low: f64, high: f64) -> f64 {
        // The upper 53 bits give a uniform number in [0, 1) at full f64 precision.
        let u = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        low + u * (high - low)
    }
}

impl CallPolicy for SafeguardRandom {
    fn name(&self) -> &str {
        "safeguard-random"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let (least, most) = self.ranges.range(call.function, call.reservation, call.ceiling);
        Ok(CallDecision {
            cpu_cores: self.pick(least.cpu.cores(), most.cpu.cores()),
            memory_mib: self.pick(least.memory.mib(), most.memory.mib()),
            ..CallDecision::exactly(call.reservation, "anywhere in the allowed range")
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        self.ranges.observe(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second, outcome, view};
    use windfall_core::Allocation;

    const USER: Allocation = Allocation::new(4000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);

    fn policy(seed: u64) -> SafeguardRandom {
        SafeguardRandom::new(PeakSettings::default(), Seed::new(seed))
    }

    #[test]
    fn the_first_call_gets_the_users_size() {
        let decision = policy(1).size(&view(USER, CEILING)).unwrap();
        assert_eq!((decision.cpu_cores, decision.memory_mib), (4.0, 512.0));
    }

    #[test]
    fn choices_are_uniform_in_the_range() {
        let mut random = policy(1);
        random.learn(&outcome(USER, USER, 1.23, 100.0));
        let draws: Vec<f64> =
            (0..10_000).map(|_| random.size(&view(USER, CEILING)).unwrap().cpu_cores).collect();
        assert!(draws.iter().all(|&cores| (1.3..4.0).contains(&cores)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // The mean of uniform draws from 1.3 to 4 is 2.65 with a standard error of 0.0078.
        assert!((mean - 2.65).abs() < 0.03, "{mean}");
    }

    #[test]
    fn the_seed_determines_every_decision() {
        let run = |seed| {
            let mut platform = FakePlatform::new(USER, CEILING);
            let mut random = policy(seed);
            (0..10).map(|_| platform.call(&mut random, one_core_second())).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn a_steady_function_is_never_slowed_down_or_killed() {
        let mut platform = FakePlatform::new(USER, CEILING);
        let mut random = policy(3);
        for _ in 0..10 {
            let call = platform.call(&mut random, one_core_second());
            assert_eq!((call.run, call.was_killed), (one_core_second().fastest(), false));
        }
    }
}
