//! One gradient step of both networks on a minibatch.

use super::eight_choices::EightChoices;
use super::loss::{Loss, centre_and_scale};
use super::{AdvantageNormalisation, Batch, Half, PpoSettings, Sums};
use crate::net::clip_factor;
use crate::net::kernels::sum_of_squares;

/// A minibatch at one moment of training.
pub(super) struct Descent<'a> {
    pub(super) settings: &'a PpoSettings,
    /// Iterations done, which schedules depend on.
    pub(super) iteration: u64,
    pub(super) batch: &'a Batch,
    /// Samples of the minibatch.
    pub(super) chosen: &'a [usize],
}

impl Descent<'_> {
    /// Forward, loss, backward, clip, Adam. Both networks have rows of their own, in the order of `chosen`.
    pub(super) fn step(
        &self,
        (actor, actor_rows): (&mut Half, &[f32]),
        (critic, critic_rows): (&mut Half, &[f32]),
        choices: &mut EightChoices,
        sums: &mut Sums,
    ) {
        let Self { settings, iteration, batch, chosen } = self;
        let loss = Loss {
            clip: settings.clip,
            value_clip: settings.value_clip,
            value_weight: settings.value_weight,
            entropy: settings.entropy.at(*iteration, settings.iterations),
            advantages: match settings.advantage_normalisation {
                AdvantageNormalisation::Minibatch => centre_and_scale(batch, chosen),
                AdvantageNormalisation::None | AdvantageNormalisation::Batch => (0.0, 1.0),
            },
        };
        actor.network.forward(actor_rows, &mut actor.room);
        critic.network.forward(critic_rows, &mut critic.room);
        loss.write(batch, chosen, (&mut actor.room, &mut critic.room), choices, sums);
        let mut squares = 0.0;
        for (half, rows) in [(&mut *actor, actor_rows), (&mut *critic, critic_rows)] {
            half.network.backward(rows, &mut half.room, &mut half.gradients);
            squares += sum_of_squares(&half.gradients);
        }
        let scale = clip_factor(settings.max_gradient_norm, squares);
        let rate = settings.learning_rate.at(*iteration, settings.iterations);
        actor.step(rate, scale);
        critic.step(rate, scale);
    }
}
