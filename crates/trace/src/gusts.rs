//! Load that breathes: rates that wander within a minute, and spikes.
//!
//! ```text
//!   slots of 5 s    ln factor = r x last + sqrt(1 - r^2) x 0.35 x N(0,1),  r = e^(-5/30)
//!   spikes          every 10 minutes on average, three times the rate for 5 to 20 s
//! ```
//!
//! The count of the minute stays as the trace has it; its calls are spread over the slots by their
//! factors. A function of 600 calls a minute has 50 in a usual slot and 100 to 150 in one with a spike.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

const SLOT_NS: u64 = 5_000_000_000;
const SPREAD: f32 = 0.35;
const CORRELATION: f32 = 0.846_48;
const SPIKE: f32 = 3.0;
/// Slots between two spikes, on average.
const BETWEEN_SPIKES: f32 = 120.0;

/// Where a function's rate has wandered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gusts {
    wander: f32,
    spike_slots: u32,
}

impl Gusts {
    /// Times of `calls` calls between `start` and `end`, in no order.
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

    fn next_factor(&mut self, rng: &mut impl Rng) -> f32 {
        let noise: f32 = rng.sample(StandardNormal);
        let fresh = (1.0 - CORRELATION * CORRELATION).sqrt() * SPREAD;
        self.wander = CORRELATION * self.wander + fresh * noise;
        let begins = rng.random::<f32>() < 1.0 / BETWEEN_SPIKES;
        if self.spike_slots > 0 {
            self.spike_slots -= 1;
        } else if begins {
            self.spike_slots = rng.random_range(1..=4);
        }
        let spike = if self.spike_slots > 0 { SPIKE } else { 1.0 };
        spike * self.wander.exp()
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
        let mut slots = [0u32; 12];
        let minute = 60_000_000_000;
        for _ in 0..50 {
            gusts.place(&mut rng, (0, minute), 600, |at| {
                assert!(at < minute);
                slots[(at / SLOT_NS) as usize] += 1;
            });
        }
        assert_eq!(slots.iter().sum::<u32>(), 30_000);
        let mut counts = Vec::new();
        gusts.place(&mut rng, (0, minute), 6000, |at| counts.push(at / SLOT_NS));
        let of = |slot| counts.iter().filter(|&&at| at == slot).count();
        let (least, most) = (0..12).map(of).fold((usize::MAX, 0), |(l, h), n| (l.min(n), h.max(n)));
        assert!(most > 5 * least / 4, "{least} {most}: an even minute has 500 each");
    }
}
