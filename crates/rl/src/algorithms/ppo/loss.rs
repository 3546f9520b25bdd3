//! The loss of PPO and its derivatives by the outputs of both networks.

use super::batch::Batch;
use super::eight_choices::{Eight, EightChoices};
use super::epochs::Sums;
use super::surrogate::Surrogate;
use crate::net::Activations;
use crate::net::kernels::{LANES, dispatch};
use crate::value_loss::ValueLoss;

/// The loss of one minibatch, all settings resolved.
pub(super) struct Loss {
    pub(super) clip: f32,
    pub(super) value: ValueLoss,
    pub(super) value_weight: f32,
    pub(super) entropy: f32,
    pub(super) advantages: Normalisation,
}

/// Advantages enter the loss as `(A - centre) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normalisation {
    pub(super) centre: f32,
    pub(super) scale: f32,
}

impl Default for Normalisation {
    /// As they are.
    fn default() -> Self {
        Self { centre: 0.0, scale: 1.0 }
    }
}

impl Loss {
    /// Writes the derivatives by the outputs of `actor` and `critic`, both after a forward pass on the
    /// samples `chosen`, and adds the losses to `sums`. Eight samples go side by side.
    #[inline(never)]
    pub(super) fn write(
        &self,
        batch: &Batch,
        chosen: &[usize],
        rooms: (&mut Activations, &mut Activations),
        choices: &mut EightChoices,
        sums: &mut Sums,
    ) {
        dispatch(
            #[inline(always)]
            || self.write_inline(batch, chosen, rooms, choices, sums),
        );
    }

    #[inline(always)]
    fn write_inline(
        &self,
        batch: &Batch,
        chosen: &[usize],
        (actor, critic): (&mut Activations, &mut Activations),
        choices: &mut EightChoices,
        sums: &mut Sums,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "minibatches are small")]
        let share = 1.0 / chosen.len() as f32;
        let actions = choices.actions();
        for (block, places) in chosen.chunks(LANES).enumerate() {
            let first = block * LANES;
            for (lane, &place) in places.iter().enumerate() {
                let allowed = &batch.allowed[place * actions..(place + 1) * actions];
                choices.load(lane, actor.output(first + lane), allowed);
            }
            let entropy = choices.settle();
            let by_log = self.policy(batch, places, choices, share, sums);
            choices.differentiate(by_log, -self.entropy * share);
            for (lane, &place) in places.iter().enumerate() {
                let delta = actor.output_delta(first + lane);
                choices.write(lane, batch.actions[place], by_log[lane], delta);
                let value = critic.output(first + lane)[0];
                let off = self.value.evaluate(value, batch.values[place], batch.returns[place]);
                critic.output_delta(first + lane)[0] = self.value_weight * off.by_value * share;
                sums.value_loss += f64::from(off.loss);
                sums.entropy += f64::from(entropy[lane]);
                sums.samples += 1.0;
            }
        }
    }

    /// The derivatives of the clipped objective by the log-probabilities of up to eight samples.
    #[inline(always)]
    fn policy(
        &self,
        batch: &Batch,
        places: &[usize],
        choices: &EightChoices,
        share: f32,
        sums: &mut Sums,
    ) -> Eight {
        let Normalisation { centre, scale } = self.advantages;
        let (mut log_ratio, mut advantage) = ([0.0; LANES], [0.0; LANES]);
        for (lane, &place) in places.iter().enumerate() {
            let log = choices.log_probability(lane, batch.actions[place]);
            log_ratio[lane] = log - batch.log_probabilities[place];
            advantage[lane] = (batch.advantages[place] - centre) * scale;
        }
        let (mut gain, mut by_log, mut kl) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let mut clipped = [0.0_f32; LANES];
        for lane in 0..LANES {
            let one = Surrogate::new(log_ratio[lane], advantage[lane], self.clip);
            gain[lane] = one.gain;
            by_log[lane] = one.by_log_probability * share;
            kl[lane] = one.kl;
            clipped[lane] = if one.is_clipped { 1.0 } else { 0.0 };
        }
        for lane in 0..places.len() {
            sums.policy_loss -= f64::from(gain[lane]);
            sums.kl += f64::from(kl[lane]);
            sums.clipped += f64::from(clipped[lane]);
        }
        by_log
    }
}

/// What brings the advantages of `chosen` to mean 0 and deviation 1, in the single precision of the loss.
pub(super) fn normalisation_of(batch: &Batch, chosen: &[usize]) -> Normalisation {
    #[expect(clippy::cast_precision_loss, reason = "minibatches are small")]
    let count = chosen.len() as f32;
    let of = |place: &usize| batch.advantages[*place];
    let mean = chosen.iter().map(of).sum::<f32>() / count;
    let square = chosen.iter().map(|place| (of(place) - mean).powi(2)).sum::<f32>() / count;
    Normalisation { centre: mean, scale: 1.0 / (square.sqrt() + 1e-8) }
}
