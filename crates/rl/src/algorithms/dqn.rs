//! Deep Q-learning (Mnih et al., 2015), optionally double (van Hasselt et al., 2016).
//!
//! ```text
//! each step: act by epsilon-greedy on Q, remember; then, every `train_every` steps, on a random batch
//!   y = r + discount max_a Q'(s', a)           plain; Q' is the target network
//!   y = r + discount Q'(s', argmax_a Q(s', a)) double
//!   y = r                                      if the task ended at s'; a truncation is no end
//!   one Adam step against the mean Huber loss of Q(s, a) - y
//! every `target_every` steps Q' becomes a copy of Q
//! ```

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use crate::categorical::best;
use crate::checkpoint::{Checkpoint, CheckpointError, Header, Tensor};
use crate::env::{End, Environment};
use crate::learner::{IterationReport, Learner, Tally};
use crate::net::kernels::sum_of_squares;
use crate::net::{Activation, Activations, Adam, AdamSettings, Initial, Mlp, Shape, clip_factor};
use crate::normalise::{Moments, Scaling};
use crate::player::Player;
use crate::policy::{Decide, NetworkPolicy};
use crate::random::Draw;
use crate::replay::{Replay, Transition};
use crate::schedule::Schedule;
use crate::value_loss::ValueLoss;

const NAME: &str = "dqn";

/// Settings of [`Dqn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DqnSettings {
    /// Iterations of the whole training; schedules end with it.
    pub iterations: u64,
    /// Environment steps per iteration.
    pub steps: usize,
    /// Steps remembered.
    pub capacity: usize,
    /// Steps played before learning begins.
    pub warm_up: u64,
    /// Steps between two gradient steps.
    pub train_every: u64,
    /// Steps between two copies of the network to its target.
    pub target_every: u64,
    /// Samples per gradient step.
    pub batch: usize,
    /// What a reward one step later is worth.
    pub discount: f32,
    /// Probability of a random action.
    pub epsilon: Schedule,
    /// Learning rate.
    pub learning_rate: Schedule,
    /// Choose by one network and value by the other.
    pub double: bool,
    /// Longest gradient; nothing for no limit.
    pub max_gradient_norm: Option<f32>,
    /// Constants of Adam.
    pub adam: AdamSettings,
    /// Normalise observations by their running mean and deviation.
    pub normalise_observations: bool,
    /// Forbidden actions are neither explored nor valued.
    pub masks: bool,
    /// Hidden units.
    pub hidden: Vec<usize>,
    /// Of the hidden units.
    pub activation: Activation,
}

impl Default for DqnSettings {
    fn default() -> Self {
        Self {
            iterations: 50,
            steps: 1000,
            capacity: 50_000,
            warm_up: 1000,
            train_every: 2,
            target_every: 500,
            batch: 64,
            discount: 0.95,
            epsilon: Schedule::Linear { from: 1.0, to: 0.05, until: 0.5 },
            learning_rate: Schedule::linear(1e-3, 1e-4),
            double: true,
            max_gradient_norm: Some(10.0),
            adam: AdamSettings::default(),
            normalise_observations: true,
            masks: true,
            hidden: vec![64, 64],
            activation: Activation::Relu,
        }
    }
}

/// DQN at work in one environment.
#[derive(Debug)]
pub struct Dqn<E> {
    settings: DqnSettings,
    seed: Seed,
    network: Mlp,
    target: Mlp,
    adam: Adam,
    replay: Replay,
    observations: Moments,
    player: Player<E>,
    rooms: [Activations; 2],
    rows: [Vec<f32>; 2],
    gradients: Vec<f32>,
    iteration: u64,
    steps: u64,
}

impl<E: Environment> Dqn<E> {
    /// Starts training.
    pub fn new(settings: DqnSettings, environment: E, seed: Seed) -> Self {
        let spec = environment.spec();
        let (inputs, actions) = (spec.features.len(), spec.actions.len());
        let (hidden, activation) = (settings.hidden.clone(), settings.activation);
        let shape = Shape { inputs, hidden, outputs: actions, activation };
        let network = Mlp::new(shape, Initial::PerInput, seed.stream("actor"));
        let count = network.parameters().len();
        Self {
            adam: Adam::new(count, settings.adam),
            replay: Replay::new(settings.capacity, inputs, actions),
            observations: Moments::new(inputs),
            player: Player::new(environment, seed.stream("episodes").member(0)),
            rooms: [network.activations(settings.batch), network.activations(settings.batch)],
            rows: [vec![0.0; settings.batch * inputs], vec![0.0; settings.batch * inputs]],
            gradients: vec![0.0; count],
            target: network.clone(),
            network,
            iteration: 0,
            steps: 0,
            settings,
            seed,
        }
    }

    /// Goes on from a checkpoint.
    pub fn resume(checkpoint: &Checkpoint, environment: E) -> Result<Self, CheckpointError> {
        let header = &checkpoint.header;
        let settings: DqnSettings = header.settings_for(NAME, environment.spec())?;
        let mut own = Self::new(settings, environment, header.seed);
        (own.iteration, own.steps) = (header.iteration, header.steps);
        checkpoint.take_learning("actor", &mut own.network, &mut own.adam)?;
        checkpoint.take_network("target", &mut own.target)?;
        checkpoint.take_moments("observations", &mut own.observations)?;
        checkpoint.take_player(0, &mut own.player)?;
        own.replay.pushed = header.steps;
        take_replay(checkpoint, &mut own.replay)?;
        Ok(own)
    }

    fn act(&mut self, scaling: &Scaling, epsilon: f32, draw: &mut Draw, tally: &mut Tally) {
        let allowed = |player: &Player<E>, masks: bool| {
            player.allowed().iter().map(|allowed| *allowed || !masks).collect::<Vec<bool>>()
        };
        let now = allowed(&self.player, self.settings.masks);
        let observation = self.player.observation().to_vec();
        let action = if draw.unit_f32() < epsilon {
            draw.among(&now)
        } else {
            let row = &mut self.rows[0][..observation.len()];
            scaling.apply(&observation, row);
            self.network.forward(row, &mut self.rooms[0]);
            best(self.rooms[0].output(0), &now)
        };
        let step = self.player.act(action);
        self.replay.push(Transition {
            observation: &observation,
            action,
            reward: step.reward,
            next_observation: self.player.observation(),
            next_allowed: &allowed(&self.player, self.settings.masks),
            terminated: step.end == End::Terminated,
        });
        tally.rows(&observation);
        if step.end.is_over() {
            tally.episode(self.player.total());
            self.player.begin();
        }
        self.steps += 1;
    }

    /// One gradient step; returns the mean loss.
    fn update(&mut self, scaling: &Scaling, rate: f32, draw: &mut Draw) -> f64 {
        let inputs = self.network.shape().inputs;
        let places: Vec<usize> = (0..self.settings.batch).map(|_| self.replay.draw(draw)).collect();
        for (row, place) in places.iter().enumerate() {
            let step = self.replay.transition(*place);
            let span = row * inputs..(row + 1) * inputs;
            scaling.apply(step.observation, &mut self.rows[0][span.clone()]);
            scaling.apply(step.next_observation, &mut self.rows[1][span]);
        }
        let [here, there] = &mut self.rooms;
        // The choice at s' by Q itself (double) or by the target (plain).
        self.target.forward(&self.rows[1], there);
        let chooser = if self.settings.double { &self.network } else { &self.target };
        chooser.forward(&self.rows[1], here);
        let targets = places.iter().enumerate().map(|(row, place)| {
            let step = self.replay.transition(*place);
            let next = there.output(row)[best(here.output(row), step.next_allowed)];
            step.reward + if step.terminated { 0.0 } else { self.settings.discount * next }
        });
        let targets: Vec<f32> = targets.collect();

        self.network.forward(&self.rows[0], here);
        #[expect(clippy::cast_precision_loss, reason = "batches are small")]
        let share = 1.0 / places.len() as f32;
        let mut total = 0.0;
        for (row, place) in places.iter().enumerate() {
            let action = self.replay.transition(*place).action;
            let value = here.output(row)[action];
            let off = ValueLoss::SmoothL1.evaluate(value, value, targets[row]);
            let delta = here.output_delta(row);
            delta.fill(0.0);
            delta[action] = off.by_value * share;
            total += f64::from(off.loss * share);
        }
        self.network.backward(&self.rows[0], here, &mut self.gradients);
        let scale = clip_factor(self.settings.max_gradient_norm, sum_of_squares(&self.gradients));
        self.adam.step(self.network.parameters_mut(), &self.gradients, rate, scale);
        total
    }
}

fn put_replay(checkpoint: &mut Checkpoint, replay: &Replay) {
    let len = replay.len();
    let floats = |data: &[f32], width: usize| Tensor::F32(vec![len, width], data.to_vec());
    let (features, actions) = (replay.features, replay.actions);
    let bits = |bits: &[bool]| Tensor::I64(bits.iter().map(|bit| i64::from(*bit)).collect());
    let span = len * features;
    checkpoint.put("replay.observations", floats(&replay.observations[..span], features));
    checkpoint.put("replay.next_observations", floats(&replay.next_observations[..span], features));
    checkpoint.put("replay.rewards", floats(&replay.rewards[..len], 1));
    checkpoint.put("replay.next_allowed", bits(&replay.next_allowed[..len * actions]));
    checkpoint.put("replay.terminated", bits(&replay.terminated[..len]));
    let chosen = replay.chosen[..len].iter().map(|action| *action as i64).collect();
    checkpoint.put("replay.actions", Tensor::I64(chosen));
}

fn take_replay(checkpoint: &Checkpoint, replay: &mut Replay) -> Result<(), CheckpointError> {
    let (len, features, actions) = (replay.len(), replay.features, replay.actions);
    let integers = |name: &str, count: usize| {
        let data = checkpoint.integers(name)?;
        let most = if name == "replay.actions" { actions as i64 } else { 2 };
        if data.len() == count && data.iter().all(|x| (0..most).contains(x)) {
            return Ok(data);
        }
        Err(CheckpointError::Mismatch {
            what: format!("`{name}`"),
            found: format!("{} integers", data.len()),
            expected: format!("{count} integers from 0 to {}", most - 1),
        })
    };
    let shape = [len, features];
    let rows = checkpoint.floats("replay.observations", &shape)?;
    replay.observations[..rows.len()].copy_from_slice(rows);
    let rows = checkpoint.floats("replay.next_observations", &shape)?;
    replay.next_observations[..rows.len()].copy_from_slice(rows);
    replay.rewards[..len].copy_from_slice(checkpoint.floats("replay.rewards", &[len, 1])?);
    let allowed = integers("replay.next_allowed", len * actions)?;
    replay.next_allowed.iter_mut().zip(allowed).for_each(|(own, bit)| *own = *bit == 1);
    let terminated = integers("replay.terminated", len)?;
    replay.terminated.iter_mut().zip(terminated).for_each(|(own, bit)| *own = *bit == 1);
    let chosen = integers("replay.actions", len)?;
    for (own, action) in replay.chosen.iter_mut().zip(chosen) {
        *own = usize::try_from(*action).expect("checked above to lie between 0 and the actions");
    }
    Ok(())
}

impl<E: Environment> Learner for Dqn<E> {
    fn iterate(&mut self) -> IterationReport {
        let (done, all) = (self.iteration, self.settings.iterations);
        let epsilon = self.settings.epsilon.at(done, all);
        let rate = self.settings.learning_rate.at(done, all);
        let scaling = self.observations.scaling();
        let mut explore = Draw::new(self.seed.stream("actions").member(done));
        let mut sample = Draw::new(self.seed.stream("replay").member(done));
        let mut tally = Tally::new(self.network.shape().inputs);
        let first = self.replay.pushed;
        let mut losses = (0.0, 0.0);
        for _ in 0..self.settings.steps {
            self.act(&scaling, epsilon, &mut explore, &mut tally);
            let is_due = self.steps.is_multiple_of(self.settings.train_every);
            if is_due && self.steps >= self.settings.warm_up {
                losses.0 += self.update(&scaling, rate, &mut sample);
                losses.1 += 1.0;
            }
            if self.steps.is_multiple_of(self.settings.target_every) {
                self.target.parameters_mut().copy_from_slice(self.network.parameters());
            }
        }
        if self.settings.normalise_observations {
            let capacity = self.replay.capacity as u64;
            for step in first.max(self.replay.pushed.saturating_sub(capacity))..self.replay.pushed {
                let place = usize::try_from(step % capacity).expect("below the capacity");
                self.observations.observe(self.replay.transition(place).observation);
            }
        }
        tally.metric("loss", losses.0 / f64::max(losses.1, 1.0));
        tally.metric("epsilon", epsilon);
        tally.metric("learning_rate", rate);
        self.iteration += 1;
        tally.report(self.iteration, self.steps)
    }

    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn policy(&self) -> Box<dyn Decide> {
        Box::new(NetworkPolicy::new(self.network.clone(), self.observations.scaling()))
    }

    fn checkpoint(&self) -> Checkpoint {
        let spec = self.player.environment().spec();
        let done = (self.iteration, self.steps);
        let header = Header::new(NAME, spec, Some(self.network.shape()), self.seed, done);
        let mut checkpoint = Checkpoint::new(header.with_settings(&self.settings));
        checkpoint.put_learning("actor", &self.network, &self.adam);
        checkpoint.put_network("target", &self.target);
        checkpoint.put_moments("observations", &self.observations);
        checkpoint.put_player(0, &self.player);
        put_replay(&mut checkpoint, &self.replay);
        checkpoint
    }
}

#[cfg(test)]
mod tests;
