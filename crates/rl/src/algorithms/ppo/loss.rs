//! The loss of PPO and its derivatives by the outputs of both networks.

use super::eight_choices::{Eight, EightChoices};
use super::{Activations, Batch, Half, Sums};
use crate::net::exp;
use crate::net::kernels::{LANES, dispatch};

/// The loss of one minibatch, all settings resolved.
pub(super) struct Loss {
    pub(super) clip: f32,
    pub(super) value_clip: Option<f32>,
    pub(super) value_weight: f32,
    pub(super) entropy: f32,
    /// Mean of the advantages and one over their deviation.
    pub(super) advantages: (f32, f32),
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
                let (value_loss, by_value) = self.value(batch, place, value);
                critic.output_delta(first + lane)[0] = self.value_weight * by_value * share;
                sums.value_loss += f64::from(value_loss);
                sums.entropy += f64::from(entropy[lane]);
                sums.samples += 1.0;
            }
        }
    }

    /// The derivatives of the clipped objective by the log-probabilities of up to eight samples: `A ratio`
    /// where the ratio has not left its range in the direction of the advantage, else zero.
    #[inline(always)]
    fn policy(
        &self,
        batch: &Batch,
        places: &[usize],
        choices: &EightChoices,
        share: f32,
        sums: &mut Sums,
    ) -> Eight {
        let (centre, scale) = self.advantages;
        let (mut log_ratio, mut advantage) = ([0.0; LANES], [0.0; LANES]);
        for (lane, &place) in places.iter().enumerate() {
            let log = choices.log_probability(lane, batch.actions[place]);
            log_ratio[lane] = log - batch.log_probabilities[place];
            advantage[lane] = (batch.advantages[place] - centre) * scale;
        }
        let (mut ratio, mut gain, mut by_log) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            ratio[lane] = exp(log_ratio[lane]);
            let bounded = ratio[lane].clamp(1.0 - self.clip, 1.0 + self.clip);
            let (free, held) = (ratio[lane] * advantage[lane], bounded * advantage[lane]);
            gain[lane] = if held < free { held } else { free };
            by_log[lane] = if held < free { 0.0 } else { -free * share };
        }
        for lane in 0..places.len() {
            sums.policy_loss -= f64::from(gain[lane]);
            sums.kl += f64::from(ratio[lane] - 1.0 - log_ratio[lane]);
            sums.clipped += if (ratio[lane] - 1.0).abs() > self.clip { 1.0 } else { 0.0 };
        }
        by_log
    }

    /// `(V - R)^2 / 2`, or the larger of it and the same for `V` held within `value_clip` of the old
    /// value; and its derivative by `V`.
    #[inline(always)]
    fn value(&self, batch: &Batch, place: usize, value: f32) -> (f32, f32) {
        let miss = value - batch.returns[place];
        let Some(clip) = self.value_clip else { return (miss * miss / 2.0, miss) };
        let old = batch.values[place];
        let held = old + (value - old).clamp(-clip, clip);
        let held_miss = held - batch.returns[place];
        if held_miss * held_miss > miss * miss {
            (held_miss * held_miss / 2.0, 0.0)
        } else {
            (miss * miss / 2.0, miss)
        }
    }
}

/// Mean and one over the deviation of the advantages of `chosen`.
pub(super) fn centre_and_scale(batch: &Batch, chosen: &[usize]) -> (f32, f32) {
    #[expect(clippy::cast_precision_loss, reason = "minibatches are small")]
    let count = chosen.len() as f32;
    let of = |place: &usize| batch.advantages[*place];
    let mean = chosen.iter().map(of).sum::<f32>() / count;
    let square = chosen.iter().map(|place| (of(place) - mean).powi(2)).sum::<f32>() / count;
    (mean, 1.0 / (square.sqrt() + 1e-8))
}

/// Values of all rows, in blocks that fit the critic's room.
pub(super) fn value_rows(critic: &mut Half, rows: &[f32], values: &mut Vec<f32>) {
    values.clear();
    let width = critic.network.shape().inputs;
    for block in rows.chunks(64 * width) {
        critic.network.forward(block, &mut critic.room);
        values.extend((0..block.len() / width).map(|row| critic.room.output(row)[0]));
    }
}
