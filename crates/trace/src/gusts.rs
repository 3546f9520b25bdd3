//! Rates that vary from second to second, with spikes.
//!
//! ```text
//!   slots of 1 s    ln factor = r x last + sqrt(1 - r^2) x 0.35 x N(0,1),  r = e^(-1/30)
//!   spikes          every 10 minutes on average, three times the rate for 5 to 20 s
//! ```
//!
//! For traces that record rates ([`Gusts::next_factor`]), every second has its own rate: a function with 10 calls per
//! second has 7 to 14 in two of three seconds, and 30 in a spike. For traces that record counts per minute
//! ([`Gusts::place`]), the count is kept and its calls are spread over the slots in proportion to their factors.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// Length of a slot, which has one factor.
pub(crate) const SLOT_NS: u64 = 1_000_000_000;
const SPREAD: f32 = 0.35;
const CORRELATION: f32 = 0.967_216;
const SPIKE: f32 = 3.0;
/// Mean number of slots between two spikes.
const BETWEEN_SPIKES: f32 = 600.0;
/// Length of a spike, in slots.
const SPIKE_SLOTS: std::ops::RangeInclusive<u32> = 5..=20;
/// Mean of the unnormalised factor: e^(0.35^2 / 2) from the lognormal part, and twice the rate more in 12.5 of 612.5
/// slots.
const MEAN: f32 = 1.063_2 * (1.0 + 2.0 * 12.5 / 612.5);

/// State of a function's varying rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gusts {
    wander: f32,
    spike_slots: u32,
}

impl Gusts {
    /// Draws the times of `calls` calls between `start` and `end`, unsorted.
    pub(crate) fn place(
        &mut self,
        rng: &mut impl Rng,
        (start, end): (u64, u64),
        calls: u64,
        mut push: impl FnMut(u64),
    ) {
        let slots = (end - start).div_ceil(SLOT_NS).max(1);
        let mut upto = Vec::with_capacity(slots as usize);
        let mut total = 0.0f32;
        for _ in 0..slots {
            total += self.next_factor(rng);
            upto.push(total);
        }
        for _ in 0..calls {
            let drawn = rng.random::<f32>() * total;
            let slot = upto.partition_point(|sum| *sum <= drawn).min(slots as usize - 1) as u64;
            let from = start + slot * SLOT_NS;
            let length = SLOT_NS.min(end.saturating_sub(from)).max(1);
            push(from + rng.random_range(0..length));
        }
    }

    /// Factor on the rate in the next slot; 1 on average.
    pub(crate) fn next_factor(&mut self, rng: &mut impl Rng) -> f32 {
        let noise: f32 = rng.sample(StandardNormal);
        let fresh = (1.0 - CORRELATION * CORRELATION).sqrt() * SPREAD;
        self.wander = CORRELATION * self.wander + fresh * noise;
        let begins = rng.random::<f32>() < 1.0 / BETWEEN_SPIKES;
        if self.spike_slots > 0 {
            self.spike_slots -= 1;
        } else if begins {
            self.spike_slots = rng.random_range(SPIKE_SLOTS);
        }
        let spike = if self.spike_slots > 0 { SPIKE } else { 1.0 };
        spike * self.wander.exp() / MEAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Seed;

    #[test]
    fn every_call_lies_inside_and_slots_differ() {
        let mut rng = Seed::new(1).generator();
        let mut gusts = Gusts::default();
        let mut slots = [0u32; 60];
        gusts.place(&mut rng, (0, 60 * SLOT_NS), 30_000, |at| slots[(at / SLOT_NS) as usize] += 1);
        assert_eq!(slots.iter().sum::<u32>(), 30_000);
        let (least, most) = (slots.iter().min().unwrap(), slots.iter().max().unwrap());
        assert!(*most > 3 * *least / 2, "{least} {most}: an even minute has 500 each");
    }

    #[test]
    fn factors_are_one_on_average_and_triple_in_spikes() {
        let mut rng = Seed::new(2).generator();
        let mut gusts = Gusts::default();
        let factors: Vec<f32> = (0..200_000).map(|_| gusts.next_factor(&mut rng)).collect();
        let mean = factors.iter().sum::<f32>() / factors.len() as f32;
        assert!((0.97..1.03).contains(&mean), "{mean}");
        // A rise by more than a factor of two within a second is the start of a spike; there is one in 612 s.
        let spikes = factors.windows(2).filter(|pair| pair[1] > 2.0 * pair[0]).count();
        assert!((250..400).contains(&spikes), "{spikes}");
    }
}
