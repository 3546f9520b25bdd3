//! Two networks that learn together: one chooses, the other values.

use windfall_core::Seed;

use super::batch::Batch;
use super::eight_choices::EightChoices;
use super::epochs::{Epochs, Optimisation, Order, Sums};
use super::loss::{Loss, normalisation_of};
use super::{AdvantageNormalisation, PpoSettings};
use crate::net::kernels::sum_of_squares;
use crate::net::{Activations, Adam, Mlp, clip_factor};
use crate::random::Draw;
use crate::value_loss::ValueLoss;

/// Rows that are valued together.
const BLOCK: usize = 64;

/// A network with its optimiser and room to work in.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) network: Mlp,
    pub(super) adam: Adam,
    gradients: Vec<f32>,
    room: Activations,
    /// Rows of a minibatch.
    input: Vec<f32>,
}

impl Half {
    fn new(network: Mlp, settings: &PpoSettings) -> Self {
        let count = network.parameters().len();
        let rows = settings.minibatch.max(BLOCK);
        Self {
            adam: Adam::new(count, settings.adam),
            gradients: vec![0.0; count],
            room: network.activations(rows),
            input: vec![0.0; rows * network.shape().inputs],
            network,
        }
    }

    /// Forward pass over the chosen ones of `rows`.
    fn forward(&mut self, rows: &[f32], chosen: &[usize]) {
        let width = self.network.shape().inputs;
        let input = &mut self.input[..chosen.len() * width];
        for (row, place) in input.chunks_exact_mut(width).zip(chosen) {
            row.copy_from_slice(&rows[place * width..(place + 1) * width]);
        }
        self.network.forward(input, &mut self.room);
    }

    /// Backward pass after [`Half::forward`] on `count` rows; returns the squared length of the gradient.
    fn backward(&mut self, count: usize) -> f32 {
        let input = &self.input[..count * self.network.shape().inputs];
        self.network.backward(input, &mut self.room, &mut self.gradients);
        sum_of_squares(&self.gradients)
    }

    fn step(&mut self, rate: f32, scale: f32) {
        self.adam.step(self.network.parameters_mut(), &self.gradients, rate, scale);
    }

    /// The matrix products of one gradient step, for benchmarks.
    fn bare_products(&mut self, count: usize) {
        let input = &self.input[..count * self.network.shape().inputs];
        self.network.bare_products(input, &mut self.room, &mut self.gradients);
    }
}

/// When an update happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Of the learner; minibatches are drawn from its stream.
    pub(super) seed: Seed,
    /// Updates done before, which schedules depend on.
    pub(super) iteration: u64,
}

/// Actor and critic.
#[derive(Clone, Debug)]
pub(super) struct ActorCritic {
    pub(super) actor: Half,
    pub(super) critic: Half,
    choices: EightChoices,
}

impl ActorCritic {
    pub(super) fn new(
        settings: &PpoSettings,
        inputs: usize,
        critic_inputs: usize,
        actions: usize,
        seed: Seed,
    ) -> Self {
        let actor = settings.network(inputs, actions, 0.01, seed.stream("actor"));
        let critic = settings.network(critic_inputs, 1, 1.0, seed.stream("critic"));
        Self {
            actor: Half::new(actor, settings),
            critic: Half::new(critic, settings),
            choices: EightChoices::new(actions),
        }
    }

    /// Values of all `rows` of the critic, in blocks that fit its room.
    pub(super) fn value_rows(&mut self, rows: &[f32], values: &mut Vec<f32>) {
        values.clear();
        let Half { network, room, .. } = &mut self.critic;
        let width = network.shape().inputs;
        for block in rows.chunks(BLOCK * width) {
            network.forward(block, room);
            values.extend((0..block.len() / width).map(|row| room.output(row)[0]));
        }
    }

    /// All passes over `batch`.
    pub(super) fn learn(
        &mut self,
        batch: &Batch,
        settings: &PpoSettings,
        moment: Moment,
    ) -> Optimisation {
        let epochs = Epochs {
            epochs: settings.epochs,
            minibatch: Some(settings.minibatch),
            order: if settings.with_replacement { Order::WithReplacement } else { Order::Shuffled },
            target_kl: settings.target_kl,
        };
        let mut draw = Draw::new(moment.seed.stream("minibatches").member(moment.iteration));
        epochs.run(batch.len(), &mut draw, |chosen, sums| {
            self.descend(batch, chosen, settings, moment.iteration, sums);
        })
    }

    /// One gradient step of both networks: forward, loss, backward, clip, Adam.
    fn descend(
        &mut self,
        batch: &Batch,
        chosen: &[usize],
        settings: &PpoSettings,
        iteration: u64,
        sums: &mut Sums,
    ) {
        let Self { actor, critic, choices } = self;
        let loss = Loss {
            clip: settings.clip,
            value: ValueLoss::HalfSquare { clip: settings.value_clip },
            value_weight: settings.value_weight,
            entropy: settings.entropy.at(iteration, settings.iterations),
            advantages: match settings.advantage_normalisation {
                AdvantageNormalisation::Minibatch => normalisation_of(batch, chosen),
                AdvantageNormalisation::None | AdvantageNormalisation::Batch => Default::default(),
            },
        };
        actor.forward(&batch.rows, chosen);
        critic.forward(batch.critic_rows.as_ref().unwrap_or(&batch.rows), chosen);
        loss.write(batch, chosen, (&mut actor.room, &mut critic.room), choices, sums);
        let mut squares = 0.0;
        for half in [&mut *actor, &mut *critic] {
            squares += half.backward(chosen.len());
        }
        let scale = clip_factor(settings.max_gradient_norm, squares);
        let rate = settings.learning_rate.at(iteration, settings.iterations);
        actor.step(rate, scale);
        critic.step(rate, scale);
    }

    /// The matrix products of one gradient step on `count` samples, for benchmarks.
    pub(super) fn bare_products(&mut self, count: usize) {
        self.actor.bare_products(count);
        self.critic.bare_products(count);
    }
}
