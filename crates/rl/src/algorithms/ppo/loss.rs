//! The loss of PPO and its derivatives by the outputs of both networks.

use super::{Activations, Batch, Choice, Half, Sums, exp};

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
    /// samples `chosen`, and adds the losses to `sums`.
    ///
    /// The gradient of the clipped objective is `A ratio d log pi` where the ratio has not left its
    /// range in the direction of the advantage, else zero.
    #[inline(always)]
    pub(super) fn write(
        &self,
        batch: &Batch,
        chosen: &[usize],
        (actor, critic): (&mut Activations, &mut Activations),
        choice: &mut Choice,
        sums: &mut Sums,
    ) {
        let actions = choice.log_probabilities().len();
        #[expect(clippy::cast_precision_loss, reason = "minibatches are small")]
        let share = 1.0 / chosen.len() as f32;
        let (centre, scale) = self.advantages;
        for (row, &place) in chosen.iter().enumerate() {
            let allowed = &batch.allowed[place * actions..(place + 1) * actions];
            let action = batch.actions[place];
            let entropy = choice.set(actor.output(row), allowed);
            let log_ratio = choice.log_probabilities()[action] - batch.log_probabilities[place];
            let ratio = exp(log_ratio);
            let advantage = (batch.advantages[place] - centre) * scale;
            let bounded = ratio.clamp(1.0 - self.clip, 1.0 + self.clip);
            let is_clipped = bounded * advantage < ratio * advantage;
            let by_log = if is_clipped { 0.0 } else { -advantage * ratio * share };
            let delta = actor.output_delta(row);
            choice.write_gradient(action, (by_log, -self.entropy * share), delta);

            let (value_loss, by_value) = self.value(batch, place, critic.output(row)[0]);
            critic.output_delta(row)[0] = self.value_weight * by_value * share;

            sums.policy_loss -= f64::from((ratio * advantage).min(bounded * advantage));
            sums.value_loss += f64::from(value_loss);
            sums.entropy += f64::from(entropy);
            sums.kl += f64::from(ratio - 1.0 - log_ratio);
            sums.clipped += if (ratio - 1.0).abs() > self.clip { 1.0 } else { 0.0 };
            sums.samples += 1.0;
        }
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

/// Brings all numbers to mean 0 and deviation 1.
pub(super) fn standardise(numbers: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "a rollout has far fewer than 2^52 steps")]
    let count = numbers.len() as f64;
    let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let square = numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (square.sqrt() + 1e-8);
    #[expect(clippy::cast_possible_truncation, reason = "advantages are f32")]
    numbers.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
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
