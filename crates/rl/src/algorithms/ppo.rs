//! Proximal policy optimisation (Schulman et al., 2017), clipped.
//!
//! ```text
//! 1  play `steps` steps in every environment with the policy as it is
//! 2  value all states; advantages by GAE, bootstrapped where an episode was cut off
//! 3  epochs x minibatches: for each sample, with ratio = pi(a|s) / pi_old(a|s),
//!      L = - min(ratio A, clip(ratio, 1-c, 1+c) A) + w (V - R)^2 / 2 - e H
//!    one Adam step on both networks against its mean, gradient clipped to `max_gradient_norm`
//! 4  stop early if the policy has moved by more than `target_kl`
//! 5  fold the new observations into the normalisation used from the next iteration on, and the new
//!    weights of the actor into their running average
//! ```
//!
//! Step 3 is in [`epochs`], [`surrogate`] and [`crate::value_loss`], which every PPO of the repository uses.
//!
//! Every detail beyond the clipped loss is a switch, so that a paper's plain variant can be run:
//! [`PpoSettings::plain`] has them all off.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use crate::advantages::{StepEnd, ValuedStep};
use crate::checkpoint::{Checkpoint, CheckpointError, Header, Tensor};
use crate::env::{End, Environment, Spec};
use crate::learner::{IterationReport, Learner, Tally};
use crate::net::{Activation, AdamSettings, Initial, Mlp, Shape};
use crate::normalise::{Moments, RewardScaling};
use crate::parallel::Workers;
use crate::policy::{Decide, NetworkPolicy};
use crate::rollout::{Behaviour, Track, collect, tracks};
use crate::schedule::Schedule;

const NAME: &str = "ppo";

/// Settings of [`Ppo`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PpoSettings {
    /// Iterations of the whole training; schedules end with it.
    pub iterations: u64,
    /// Steps per environment and iteration.
    pub steps: usize,
    /// Passes over the samples of an iteration.
    pub epochs: usize,
    /// Samples per gradient step.
    pub minibatch: usize,
    /// Draw minibatches with replacement instead of walking through a shuffled order.
    pub with_replacement: bool,
    /// What a reward one step later is worth.
    pub discount: f32,
    /// How far advantages trust rewards over values; 1 is the whole return.
    pub lambda: f32,
    /// Count the value after a truncation; otherwise it is treated as an end of the task.
    pub bootstrap: bool,
    /// How far a probability may move, as a ratio, before the loss stops caring.
    pub clip: f32,
    /// How far a value may move before its loss stops caring; nothing for no limit.
    pub value_clip: Option<f32>,
    /// Weight of the entropy.
    pub entropy: Schedule,
    /// Weight of the value loss.
    pub value_weight: f32,
    /// Longest gradient of both networks together; nothing for no limit.
    pub max_gradient_norm: Option<f32>,
    /// Mean KL divergence of an epoch after which no further epoch follows.
    pub target_kl: Option<f32>,
    /// Learning rate.
    pub learning_rate: Schedule,
    /// Constants of Adam.
    pub adam: AdamSettings,
    /// Over what advantages are brought to mean 0 and deviation 1.
    pub advantage_normalisation: AdvantageNormalisation,
    /// Normalise observations by their running mean and deviation.
    pub normalise_observations: bool,
    /// Scale rewards by the deviation of the discounted return.
    pub scale_rewards: bool,
    /// Memory per iteration of the running average of the actor's weights that decides outside of
    /// training; nothing lets the last weights decide. Below 1.
    pub average: Option<f32>,
    /// Forbidden actions get probability zero.
    pub masks: bool,
    /// Orthogonal first weights (actor's last layer 0.01) instead of PyTorch's default.
    pub orthogonal: bool,
    /// Hidden units of actor and critic.
    pub hidden: Vec<usize>,
    /// Of the hidden units.
    pub activation: Activation,
}

/// Over what advantages are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvantageNormalisation {
    /// Not at all.
    None,
    /// Over all samples of an iteration.
    Batch,
    /// Over each minibatch.
    Minibatch,
}

impl Default for PpoSettings {
    fn default() -> Self {
        Self {
            iterations: 100,
            steps: 256,
            epochs: 10,
            minibatch: 64,
            with_replacement: false,
            discount: 0.99,
            lambda: 0.95,
            bootstrap: true,
            clip: 0.2,
            value_clip: None,
            entropy: Schedule::constant(0.01),
            value_weight: 0.5,
            max_gradient_norm: Some(0.5),
            target_kl: None,
            learning_rate: Schedule::linear(3e-4, 0.0),
            adam: AdamSettings::default(),
            advantage_normalisation: AdvantageNormalisation::Minibatch,
            normalise_observations: true,
            scale_rewards: true,
            average: None,
            masks: true,
            orthogonal: true,
            hidden: vec![64, 64],
            activation: Activation::Tanh,
        }
    }
}

impl PpoSettings {
    /// The clipped loss and nothing else: Monte-Carlo returns, no bootstrap, no clipping but the
    /// policy's, no normalisation but the advantages', no schedules, no masks.
    pub fn plain() -> Self {
        Self {
            lambda: 1.0,
            bootstrap: false,
            max_gradient_norm: None,
            learning_rate: Schedule::constant(3e-4),
            adam: AdamSettings { epsilon: 1e-8, ..AdamSettings::default() },
            advantage_normalisation: AdvantageNormalisation::Batch,
            normalise_observations: false,
            scale_rewards: false,
            masks: false,
            orthogonal: false,
            activation: Activation::Relu,
            ..Self::default()
        }
    }

    fn network(&self, inputs: usize, outputs: usize, output_gain: f32, seed: Seed) -> Mlp {
        let (hidden, activation) = (self.hidden.clone(), self.activation);
        let gain = std::f32::consts::SQRT_2;
        let initial = if self.orthogonal {
            Initial::Orthogonal { hidden: gain, output: output_gain }
        } else {
            Initial::PerInput
        };
        Mlp::new(Shape { inputs, hidden, outputs, activation }, initial, seed)
    }
}

/// PPO at work on environments of one kind.
#[derive(Debug)]
pub struct Ppo<E> {
    settings: PpoSettings,
    spec: Spec,
    seed: Seed,
    networks: ActorCritic,
    /// The actor's weights, averaged over iterations: they decide outside of training, if asked for.
    averaged: Mlp,
    observations: Moments,
    rewards: RewardScaling,
    tracks: Vec<Track<E>>,
    workers: Workers,
    batch: Batch,
    iteration: u64,
    steps: u64,
}

impl<E: Environment> Ppo<E> {
    /// Starts training. The number of threads changes the time it takes and nothing else.
    ///
    /// # Panics
    ///
    /// If there is no environment.
    pub fn new(settings: PpoSettings, environments: Vec<E>, seed: Seed, threads: usize) -> Self {
        let spec = environments.first().expect("at least one environment").spec().clone();
        let (features, actions) = (spec.features.len(), spec.actions.len());
        let networks = ActorCritic::new(&settings, features, features, actions, seed);
        let actor = &networks.actor.network;
        Self {
            rewards: RewardScaling::new(environments.len(), settings.discount),
            tracks: tracks(environments, actor, seed),
            averaged: actor.clone(),
            networks,
            observations: Moments::new(features),
            workers: Workers::new(threads),
            batch: Batch::default(),
            iteration: 0,
            steps: 0,
            settings,
            spec,
            seed,
        }
    }

    /// Goes on from a checkpoint, with as many environments as it was made with.
    pub fn resume(
        checkpoint: &Checkpoint,
        environments: Vec<E>,
        threads: usize,
    ) -> Result<Self, CheckpointError> {
        let spec = environments.first().expect("at least one environment").spec().clone();
        let header = &checkpoint.header;
        let settings: PpoSettings = header.settings_for(NAME, &spec)?;
        let mut ppo = Self::new(settings, environments, header.seed, threads);
        (ppo.iteration, ppo.steps) = (header.iteration, header.steps);
        let ActorCritic { actor, critic, .. } = &mut ppo.networks;
        checkpoint.take_learning("actor", &mut actor.network, &mut actor.adam)?;
        checkpoint.take_learning("critic", &mut critic.network, &mut critic.adam)?;
        if ppo.settings.average.is_some() {
            checkpoint.take_network("averaged", &mut ppo.averaged)?;
        }
        checkpoint.take_moments("observations", &mut ppo.observations)?;
        checkpoint.take_moments("rewards", &mut ppo.rewards.moments)?;
        ppo.rewards.returns = checkpoint.doubles("rewards.returns", ppo.tracks.len())?.to_vec();
        checkpoint.take_players(&mut ppo.tracks)?;
        Ok(ppo)
    }

    /// The actor as it is.
    pub fn actor(&self) -> &Mlp {
        &self.networks.actor.network
    }

    /// Steps 1 and 2: experience, values, advantages.
    pub fn gather(&mut self) {
        let scaling = self.observations.scaling();
        let actor = &self.networks.actor.network;
        let behaviour = Behaviour { actor, scaling: &scaling, masks: self.settings.masks };
        let (steps, iteration) = (self.settings.steps, self.iteration);
        collect(&mut self.tracks, behaviour, steps, iteration, &self.workers);
        if self.settings.scale_rewards {
            for (index, track) in self.tracks.iter().enumerate() {
                for (reward, end) in track.record.rewards.iter().zip(&track.record.ends) {
                    self.rewards.observe(index, *reward, end.is_over());
                }
            }
        }
        self.fill_batch(&scaling);
    }

    fn fill_batch(&mut self, scaling: &crate::normalise::Scaling) {
        let factor = if self.settings.scale_rewards { self.rewards.factor() } else { 1.0 };
        let PpoSettings { discount, lambda, bootstrap, .. } = self.settings;
        let batch = &mut self.batch;
        *batch = Batch::default();
        let mut valued = Vec::new();
        let mut values = Vec::new();
        for track in &self.tracks {
            let record = &track.record;
            let count = record.actions.len();
            batch.allowed.extend_from_slice(&record.allowed);
            batch.actions.extend_from_slice(&record.actions);
            batch.log_probabilities.extend_from_slice(&record.log_probabilities);

            // States in the order: visited, cut off, last; values in the same.
            let first = batch.rows.len();
            for raw in [&record.observations, &record.finals, &record.last] {
                let start = batch.rows.len();
                batch.rows.resize(start + raw.len(), 0.0);
                scaling.apply(raw, &mut batch.rows[start..]);
            }
            self.networks.value_rows(&batch.rows[first..], &mut values);
            batch.rows.truncate(first + record.observations.len());
            let (visited, beyond) = values.split_at(count);
            let (mut finals, last) = (beyond.iter(), beyond[beyond.len() - 1]);

            valued.clear();
            for step in 0..count {
                let end = match record.ends[step] {
                    End::Continues => StepEnd::Continues {
                        next_value: visited.get(step + 1).copied().unwrap_or(last),
                    },
                    End::Terminated => StepEnd::Terminated,
                    End::Truncated => {
                        let final_value = *finals.next().expect("one final state per truncation");
                        if bootstrap {
                            StepEnd::Truncated { final_value }
                        } else {
                            StepEnd::Terminated
                        }
                    }
                };
                let reward = record.rewards[step] * factor;
                valued.push(ValuedStep { reward, value: visited[step], end });
            }
            batch.push_valued(&valued, discount, lambda);
        }
        batch.close(self.settings.advantage_normalisation);
    }

    /// Steps 3 and 4: learns from what was gathered.
    pub fn learn(&mut self) -> IterationReport {
        let mut tally = Tally::new(self.spec.features.len());
        for track in &self.tracks {
            tally.rows(&track.record.observations);
            track.record.returns.iter().for_each(|total| tally.episode(*total));
        }
        let moment = Moment { seed: self.seed, iteration: self.iteration };
        let done = self.networks.learn(&self.batch, &self.settings, moment);
        let (epochs, sums) = (done.epochs, done.last);
        tally.metric("policy_loss", sums.policy_loss / sums.samples);
        tally.metric("value_loss", sums.value_loss / sums.samples);
        tally.metric("entropy", sums.entropy / sums.samples);
        tally.metric("kl", sums.mean_kl());
        tally.metric("clipped", sums.clipped / sums.samples);
        tally.metric("epochs", epochs as f64);
        tally.metric("learning_rate", self.learning_rate());
        if self.settings.normalise_observations {
            for track in &self.tracks {
                self.observations.observe(&track.record.observations);
            }
        }
        self.average_weights();
        self.iteration += 1;
        self.steps += self.batch.len() as u64;
        tally.report(self.iteration, self.steps)
    }

    /// `average = memory average + (1 - memory) weights`, from the first weights on.
    fn average_weights(&mut self) {
        let Some(memory) = self.settings.average else { return };
        let share = 1.0 - memory;
        let weights = self.networks.actor.network.parameters();
        for (average, weight) in self.averaged.parameters_mut().iter_mut().zip(weights) {
            *average += share * (weight - *average);
        }
    }

    fn learning_rate(&self) -> f32 {
        self.settings.learning_rate.at(self.iteration, self.settings.iterations)
    }

    /// The matrix products of one gradient step of both networks, for benchmarks.
    pub fn bare_products(&mut self) {
        self.networks.bare_products(self.settings.minibatch);
    }
}

mod actor_critic;
mod agent;
mod batch;
mod eight_choices;
pub mod epochs;
mod loss;
pub mod surrogate;
use actor_critic::{ActorCritic, Moment};
pub use agent::{Learned, PpoAgent, Segment};
use batch::Batch;

impl<E: Environment> Learner for Ppo<E> {
    fn iterate(&mut self) -> IterationReport {
        self.gather();
        self.learn()
    }

    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn policy(&self) -> Box<dyn Decide> {
        let network = match self.settings.average {
            Some(_) => &self.averaged,
            None => &self.networks.actor.network,
        };
        Box::new(NetworkPolicy::new(network.clone(), self.observations.scaling()))
    }

    fn checkpoint(&self) -> Checkpoint {
        let done = (self.iteration, self.steps);
        let header = Header::new(NAME, &self.spec, Some(self.actor().shape()), self.seed, done);
        let mut checkpoint = Checkpoint::new(header.with_settings(&self.settings));
        let ActorCritic { actor, critic, .. } = &self.networks;
        checkpoint.put_learning("actor", &actor.network, &actor.adam);
        checkpoint.put_learning("critic", &critic.network, &critic.adam);
        if self.settings.average.is_some() {
            checkpoint.put_network("averaged", &self.averaged);
        }
        checkpoint.put_moments("observations", &self.observations);
        checkpoint.put_moments("rewards", &self.rewards.moments);
        checkpoint.put("rewards.returns", Tensor::F64(self.rewards.returns.clone()));
        checkpoint.put_players(&self.tracks);
        checkpoint
    }
}

#[cfg(test)]
mod tests;
