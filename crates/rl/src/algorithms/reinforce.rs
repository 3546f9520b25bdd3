//! REINFORCE (Williams, 1992), with or without a baseline.
//!
//! ```text
//! 1  play `steps` steps in every environment with the policy as it is
//! 2  G_t = r_t + discount G_t+1, zero after the end of an episode and of the rollout
//! 3  A_t = G_t - b(s_t), normalised if asked for; b is a value network, or nothing
//! 4  one Adam step against the mean (or sum) of - A_t log pi(a_t|s_t) - e H
//! 5  `baseline_steps` Adam steps of b against the mean of (b(s_t) - G_t)^2 / 2
//! ```
//!
//! An episode that is still running when the rollout ends loses what would have followed, so let `steps`
//! be a multiple of the horizon.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use crate::categorical::{Choice, ObjectiveWeights};
use crate::checkpoint::{Checkpoint, CheckpointError, Header};
use crate::env::Environment;
use crate::learner::{IterationReport, Learner, Tally};
use crate::net::kernels::sum_of_squares;
use crate::net::{Activation, Adam, AdamSettings, Initial, Mlp, Shape, clip_factor};
use crate::normalise::{Moments, standardise};
use crate::parallel::Workers;
use crate::policy::{Decide, NetworkPolicy};
use crate::rollout::{Behaviour, Track, collect, tracks};
use crate::schedule::Schedule;

const NAME: &str = "reinforce";

/// Settings of [`Reinforce`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReinforceSettings {
    /// Iterations of the whole training; schedules end with it.
    pub iterations: u64,
    /// Steps per environment and iteration.
    pub steps: usize,
    /// What a reward one step later is worth.
    pub discount: f32,
    /// Gradient steps of the baseline per iteration; 0 is REINFORCE without baseline.
    pub baseline_steps: u32,
    /// Bring returns (minus the baseline) to mean 0 and deviation 1.
    pub normalise_returns: bool,
    /// Sum the loss over samples instead of taking its mean.
    pub sum_loss: bool,
    /// Weight of the entropy.
    pub entropy: Schedule,
    /// Learning rate of the policy.
    pub learning_rate: Schedule,
    /// Learning rate of the baseline.
    pub baseline_rate: f32,
    /// Longest gradient of a network; nothing for no limit.
    pub max_gradient_norm: Option<f32>,
    /// Constants of Adam.
    pub adam: AdamSettings,
    /// Normalise observations by their running mean and deviation.
    pub normalise_observations: bool,
    /// Forbidden actions get probability zero.
    pub masks: bool,
    /// Hidden units.
    pub hidden: Vec<usize>,
    /// Of the hidden units.
    pub activation: Activation,
}

impl Default for ReinforceSettings {
    fn default() -> Self {
        Self {
            iterations: 500,
            steps: 200,
            discount: 0.9,
            baseline_steps: 10,
            normalise_returns: true,
            sum_loss: false,
            entropy: Schedule::constant(0.01),
            learning_rate: Schedule::constant(3e-3),
            baseline_rate: 3e-3,
            max_gradient_norm: Some(0.5),
            adam: AdamSettings::default(),
            normalise_observations: true,
            masks: true,
            hidden: vec![40, 40],
            activation: Activation::Relu,
        }
    }
}

/// REINFORCE at work on environments of one kind.
#[derive(Debug)]
pub struct Reinforce<E> {
    settings: ReinforceSettings,
    seed: Seed,
    actor: Mlp,
    actor_adam: Adam,
    baseline: Mlp,
    baseline_adam: Adam,
    observations: Moments,
    tracks: Vec<Track<E>>,
    workers: Workers,
    iteration: u64,
    steps: u64,
}

impl<E: Environment> Reinforce<E> {
    /// Starts training. The number of threads changes the time it takes and nothing else.
    ///
    /// # Panics
    ///
    /// If there is no environment.
    pub fn new(
        settings: ReinforceSettings,
        environments: Vec<E>,
        seed: Seed,
        threads: usize,
    ) -> Self {
        let spec = environments.first().expect("at least one environment").spec();
        let (inputs, actions) = (spec.features.len(), spec.actions.len());
        let network = |outputs, stream| {
            let (hidden, activation) = (settings.hidden.clone(), settings.activation);
            let shape = Shape { inputs, hidden, outputs, activation };
            Mlp::new(shape, Initial::PerInput, seed.stream(stream))
        };
        let (actor, baseline) = (network(actions, "actor"), network(1, "baseline"));
        Self {
            actor_adam: Adam::new(actor.parameters().len(), settings.adam),
            baseline_adam: Adam::new(baseline.parameters().len(), settings.adam),
            observations: Moments::new(inputs),
            tracks: tracks(environments, &actor, seed),
            workers: Workers::new(threads),
            iteration: 0,
            steps: 0,
            settings,
            seed,
            actor,
            baseline,
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
        let settings = header.settings_for(NAME, &spec)?;
        let mut own = Self::new(settings, environments, header.seed, threads);
        (own.iteration, own.steps) = (header.iteration, header.steps);
        checkpoint.take_learning("actor", &mut own.actor, &mut own.actor_adam)?;
        checkpoint.take_learning("baseline", &mut own.baseline, &mut own.baseline_adam)?;
        checkpoint.take_moments("observations", &mut own.observations)?;
        checkpoint.take_players(&mut own.tracks)?;
        Ok(own)
    }

    /// Steps 2 to 5.
    fn update(&mut self, rows: &[f32], tally: &mut Tally) {
        let mut returns = Vec::new();
        for track in &self.tracks {
            returns.extend(discounted(&track.record.rewards, self.settings.discount, |step| {
                track.record.ends[step].is_over()
            }));
        }
        let mut advantages = returns.clone();
        if self.settings.baseline_steps > 0 {
            let mut room = self.baseline.activations(returns.len());
            self.baseline.forward(rows, &mut room);
            let values = (0..returns.len()).map(|row| room.output(row)[0]);
            advantages.iter_mut().zip(values).for_each(|(advantage, value)| *advantage -= value);
        }
        if self.settings.normalise_returns {
            standardise(&mut advantages);
        }

        let mut room = self.actor.activations(returns.len());
        self.actor.forward(rows, &mut room);
        #[expect(clippy::cast_precision_loss, reason = "a rollout has few steps")]
        let share = if self.settings.sum_loss { 1.0 } else { 1.0 / returns.len() as f32 };
        let entropy_weight = self.settings.entropy.at(self.iteration, self.settings.iterations);
        let actions = self.actor.shape().outputs;
        let mut choice = Choice::new(actions);
        let (mut place, mut entropies) = (0, 0.0);
        for record in self.tracks.iter().map(|track| &track.record) {
            for (action, allowed) in record.actions.iter().zip(record.allowed.chunks_exact(actions))
            {
                let entropy = choice.set(room.output(place), allowed);
                let weights = ObjectiveWeights {
                    by_log: -advantages[place] * share,
                    by_entropy: -entropy_weight * share,
                };
                choice.write_gradient(*action, weights, room.output_delta(place));
                entropies += f64::from(entropy) * f64::from(share);
                place += 1;
            }
        }
        let mut gradients = vec![0.0; self.actor.parameters().len()];
        self.actor.backward(rows, &mut room, &mut gradients);
        let rate = self.settings.learning_rate.at(self.iteration, self.settings.iterations);
        let scale = self.scale(&gradients);
        self.actor_adam.step(self.actor.parameters_mut(), &gradients, rate, scale);
        tally.metric("entropy", entropies);
        tally.metric("learning_rate", rate);
        self.fit_baseline(rows, &returns, tally);
    }

    fn fit_baseline(&mut self, rows: &[f32], returns: &[f32], tally: &mut Tally) {
        let mut room = self.baseline.activations(returns.len());
        let mut gradients = vec![0.0; self.baseline.parameters().len()];
        #[expect(clippy::cast_precision_loss, reason = "a rollout has few steps")]
        let share = 1.0 / returns.len() as f32;
        for _ in 0..self.settings.baseline_steps {
            self.baseline.forward(rows, &mut room);
            let mut loss = 0.0;
            for (row, target) in returns.iter().enumerate() {
                let miss = room.output(row)[0] - target;
                room.output_delta(row)[0] = miss * share;
                loss += f64::from(miss * miss * share) / 2.0;
            }
            self.baseline.backward(rows, &mut room, &mut gradients);
            let (rate, scale) = (self.settings.baseline_rate, self.scale(&gradients));
            self.baseline_adam.step(self.baseline.parameters_mut(), &gradients, rate, scale);
            tally.metric("value_loss", loss);
        }
    }

    fn scale(&self, gradients: &[f32]) -> f32 {
        clip_factor(self.settings.max_gradient_norm, sum_of_squares(gradients))
    }
}

/// Discounted sums of what follows each step, itself included, up to the end of its episode.
fn discounted(rewards: &[f32], discount: f32, is_over: impl Fn(usize) -> bool) -> Vec<f32> {
    let mut returns = rewards.to_vec();
    let mut later = 0.0;
    for (step, reward) in returns.iter_mut().enumerate().rev() {
        later = if is_over(step) { *reward } else { *reward + discount * later };
        *reward = later;
    }
    returns
}

impl<E: Environment> Learner for Reinforce<E> {
    fn iterate(&mut self) -> IterationReport {
        let scaling = self.observations.scaling();
        let behaviour =
            Behaviour { actor: &self.actor, scaling: &scaling, masks: self.settings.masks };
        collect(&mut self.tracks, behaviour, self.settings.steps, self.iteration, &self.workers);
        let mut tally = Tally::new(self.actor.shape().inputs);
        let mut rows = Vec::new();
        for record in self.tracks.iter().map(|track| &track.record) {
            tally.rows(&record.observations);
            record.returns.iter().for_each(|total| tally.episode(*total));
            let start = rows.len();
            rows.resize(start + record.observations.len(), 0.0);
            scaling.apply(&record.observations, &mut rows[start..]);
        }
        self.update(&rows, &mut tally);
        if self.settings.normalise_observations {
            for track in &self.tracks {
                self.observations.observe(&track.record.observations);
            }
        }
        self.iteration += 1;
        self.steps += (rows.len() / self.actor.shape().inputs) as u64;
        tally.report(self.iteration, self.steps)
    }

    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn policy(&self) -> Box<dyn Decide> {
        Box::new(NetworkPolicy::new(self.actor.clone(), self.observations.scaling()))
    }

    fn checkpoint(&self) -> Checkpoint {
        let spec = self.tracks[0].player.environment().spec();
        let done = (self.iteration, self.steps);
        let header = Header::new(NAME, spec, Some(self.actor.shape()), self.seed, done);
        let mut checkpoint = Checkpoint::new(header.with_settings(&self.settings));
        checkpoint.put_learning("actor", &self.actor, &self.actor_adam);
        checkpoint.put_learning("baseline", &self.baseline, &self.baseline_adam);
        checkpoint.put_moments("observations", &self.observations);
        checkpoint.put_players(&self.tracks);
        checkpoint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::evaluate;
    use crate::toy::Identity;

    #[test]
    fn returns_worked_by_hand() {
        let returns = discounted(&[1.0, 2.0, 4.0, 8.0], 0.5, |step| step == 1);
        assert_eq!(returns, [2.0, 2.0, 8.0, 8.0]);
    }

    fn learner(baseline_steps: u32) -> Reinforce<Identity> {
        let settings = ReinforceSettings {
            baseline_steps,
            steps: 32,
            discount: 0.0,
            learning_rate: Schedule::constant(1e-2),
            ..ReinforceSettings::default()
        };
        Reinforce::new(settings, vec![Identity::new(); 4], Seed::new(1), 1)
    }

    #[test]
    fn the_identity_is_learned_with_and_without_baseline() {
        for baseline_steps in [0, 5] {
            let mut learner = learner(baseline_steps);
            (0..60).for_each(|_| drop(learner.iterate()));
            let mut policy = learner.policy();
            let totals = evaluate(&mut [Identity::new()], policy.as_mut(), true, Seed::new(2));
            assert_eq!(totals, [8.0], "baseline steps {baseline_steps}");
        }
    }

    #[test]
    fn resuming_equals_going_on() {
        let mut whole = learner(5);
        (0..3).for_each(|_| drop(whole.iterate()));
        let kept = whole.checkpoint();
        let mut resumed = Reinforce::resume(&kept, vec![Identity::new(); 4], 2).unwrap();
        assert_eq!(resumed.checkpoint(), kept);
        for _ in 0..3 {
            assert_eq!(whole.iterate(), resumed.iterate());
        }
        let bytes = |learner: &Reinforce<Identity>| learner.checkpoint().to_bytes().unwrap();
        assert_eq!(bytes(&whole), bytes(&resumed));
    }
}
