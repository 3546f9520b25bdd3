//! PPO without its own environments: for callers that play themselves, such as many agents in one world.
//!
//! The caller asks [`PpoAgent::act`] at every step, keeps what happened in [`Segment`]s, and hands them to
//! [`PpoAgent::learn`]. Actor and critic may see different rows: a central critic sees everybody's. A clone is
//! a warm start: weights, optimiser and normalisation.

use windfall_core::Seed;

use super::actor_critic::{ActorCritic, Half, Moment};
use super::batch::Batch;
use super::{NAME, PpoSettings};
use crate::advantages::{StepEnd, ValuedStep};
use crate::categorical::{Choice, best};
use crate::checkpoint::{Checkpoint, Header};
use crate::env::Spec;
use crate::net::Activations;
use crate::normalise::{Moments, Scaling};
use crate::random::Draw;

/// Consecutive steps of one agent. Where a step was lost, one segment ends and the next begins.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// What the actor saw, row after row.
    pub rows: Vec<f32>,
    /// What the critic saw, row after row.
    pub critic_rows: Vec<f32>,
    /// Which actions were allowed.
    pub allowed: Vec<bool>,
    /// What was done.
    pub actions: Vec<usize>,
    /// With which log-probability.
    pub log_probabilities: Vec<f32>,
    /// What it paid.
    pub rewards: Vec<f32>,
    /// What the critic sees after the last step: worlds of services go on.
    pub last: Vec<f32>,
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// Samples learned from.
    pub samples: usize,
    /// Mean entropy of the last epoch.
    pub entropy: f64,
    /// Mean KL divergence of the last epoch.
    pub kl: f64,
}

/// Actor and critic of one agent, or of many that share them.
#[derive(Clone, Debug)]
pub struct PpoAgent {
    settings: PpoSettings,
    seed: Seed,
    networks: ActorCritic,
    observations: Moments,
    critic_observations: Moments,
    returns: Moments,
    choice: Choice,
    /// Of the actor's rows, as of the last update.
    scaling: Scaling,
    /// Numbers of a row, actor's or critic's, that are normalised as others are.
    twins: Vec<(usize, usize)>,
    row: Vec<f32>,
    room: Activations,
    updates: u64,
}

impl PpoAgent {
    /// An agent that knows nothing. `updates` of the settings' iterations are what its schedules count.
    pub fn new(
        settings: PpoSettings,
        inputs: usize,
        critic_inputs: usize,
        actions: usize,
        seed: Seed,
    ) -> Self {
        let networks = ActorCritic::new(&settings, inputs, critic_inputs, actions, seed);
        Self {
            seed,
            room: networks.actor.network.activations(1),
            networks,
            observations: Moments::new(inputs),
            critic_observations: Moments::new(critic_inputs),
            returns: Moments::new(1),
            choice: Choice::new(actions),
            scaling: Moments::new(inputs).scaling(),
            twins: Vec::new(),
            row: vec![0.0; inputs],
            updates: 0,
            settings,
        }
    }

    /// Lets numbers of a row be normalised as others are: of each pair, the first as the second.
    pub fn normalise_alike(&mut self, twins: Vec<(usize, usize)>) {
        self.twins = twins;
    }

    /// Makes `action` the likely one before anything is learned, by a bias of its logit.
    pub fn prefer(&mut self, action: usize, bias: f32) {
        let network = &mut self.networks.actor.network;
        let last = network.depth() - 1;
        let (weight, mut biases) = network.layer_of(network.parameters(), last);
        biases[action] += bias;
        let mut flat = network.parameters().to_vec();
        network.set_layer_of(&mut flat, last, &weight, &biases);
        network.parameters_mut().copy_from_slice(&flat);
    }

    /// Chooses: by probability if there are draws, else the most likely. Also the log-probability.
    pub fn act(&mut self, row: &[f32], allowed: &[bool], draw: Option<&mut Draw>) -> (usize, f32) {
        self.consider(row, allowed);
        let action = match draw {
            Some(draw) => self.choice.sample(draw),
            None => best(self.room.output(0), allowed),
        };
        (action, self.choice.log_probabilities()[action])
    }

    /// The log-probability of `action`: needed where another one was carried out than was chosen.
    pub fn log_probability(&mut self, row: &[f32], allowed: &[bool], action: usize) -> f32 {
        self.consider(row, allowed);
        self.choice.log_probabilities()[action]
    }

    fn consider(&mut self, row: &[f32], allowed: &[bool]) {
        self.scaling.apply(row, &mut self.row);
        self.networks.actor.network.forward(&self.row, &mut self.room);
        self.choice.set(self.room.output(0), allowed);
    }

    /// Learns from what was played with the weights as they are.
    pub fn learn(&mut self, segments: &[Segment]) -> Learned {
        let batch = self.batch_of(segments);
        let samples = batch.len();
        if samples == 0 {
            return Learned::default();
        }
        let moment = Moment { seed: self.seed, iteration: self.updates };
        let sums = self.networks.learn(&batch, &self.settings, moment).last;
        if self.settings.normalise_observations {
            for segment in segments {
                self.observations.observe(&segment.rows);
                self.critic_observations.observe(&segment.critic_rows);
            }
            self.scaling = self.observations.scaling().with_twins(&self.twins);
        }
        self.updates += 1;
        Learned { samples, entropy: sums.entropy / sums.samples, kl: sums.mean_kl() }
    }

    /// All samples in one matrix per network, with their advantages.
    fn batch_of(&mut self, segments: &[Segment]) -> Batch {
        let critic_scaling = self.critic_observations.scaling().with_twins(&self.twins);
        let (mut batch, mut critic_rows) = (Batch::default(), Vec::new());
        let factor = self.reward_factor(segments);
        let (mut seen, mut values, mut valued) = (Vec::new(), Vec::new(), Vec::new());
        for segment in segments.iter().filter(|segment| !segment.actions.is_empty()) {
            let first = batch.rows.len();
            batch.rows.resize(first + segment.rows.len(), 0.0);
            self.scaling.apply(&segment.rows, &mut batch.rows[first..]);
            batch.allowed.extend_from_slice(&segment.allowed);
            batch.actions.extend_from_slice(&segment.actions);
            batch.log_probabilities.extend_from_slice(&segment.log_probabilities);

            let raw = [&segment.critic_rows[..], &segment.last].concat();
            seen.resize(raw.len(), 0.0);
            critic_scaling.apply(&raw, &mut seen);
            self.networks.value_rows(&seen, &mut values);
            critic_rows.extend_from_slice(&seen[..segment.critic_rows.len()]);

            let count = segment.actions.len();
            valued.clear();
            for step in 0..count {
                let next = values[step + 1];
                let end = if step + 1 < count {
                    StepEnd::Continues { next_value: next }
                } else {
                    StepEnd::Truncated { final_value: next }
                };
                let reward = segment.rewards[step] * factor;
                valued.push(ValuedStep { reward, value: values[step], end });
            }
            let PpoSettings { discount, lambda, .. } = self.settings;
            batch.push_valued(&valued, discount, lambda);
        }
        batch.critic_rows = Some(critic_rows);
        batch.close(self.settings.advantage_normalisation);
        batch
    }

    /// One over the deviation of discounted returns, each segment's from zero on.
    fn reward_factor(&mut self, segments: &[Segment]) -> f32 {
        if !self.settings.scale_rewards {
            return 1.0;
        }
        for segment in segments {
            let mut total = 0.0;
            for reward in &segment.rewards {
                total = total * self.settings.discount + reward;
                self.returns.observe(&[total]);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "rewards are f32")]
        let factor = (1.0 / self.returns.deviation(0)) as f32;
        factor
    }

    /// What decides, as a file that [`Checkpoint::policy`] reads: the actor and how its rows are normalised, without the
    /// critic and the optimiser. `spec` names the numbers of a row and the actions.
    pub fn deciding(&self, spec: &Spec) -> Checkpoint {
        let network = &self.networks.actor.network;
        let done = (self.updates, self.observations.count as u64);
        let header = Header::new(NAME, spec, Some(network.shape()), self.seed, done);
        let mut checkpoint = Checkpoint::new(header.with_settings(&self.settings));
        checkpoint.put_network("actor", network);
        let mut observations = self.observations.clone();
        for &(one, other) in &self.twins {
            observations.mean[one] = observations.mean[other];
            observations.spread[one] = observations.spread[other];
        }
        checkpoint.put_moments("observations", &observations);
        checkpoint
    }

    /// Bytes of weights, optimiser and room to work in.
    pub fn bytes(&self) -> usize {
        let of = |half: &Half| 16 * half.network.parameters().len();
        of(&self.networks.actor) + of(&self.networks.critic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    fn settings() -> PpoSettings {
        PpoSettings {
            iterations: 60,
            minibatch: 64,
            learning_rate: Schedule::constant(3e-3),
            hidden: vec![16],
            ..PpoSettings::default()
        }
    }

    /// Rows of one number in -1..1; action 1 pays where it is positive, action 0 elsewhere.
    fn play(agent: &mut PpoAgent, seed: u64, lost: bool) -> (Vec<Segment>, f32) {
        let mut draw = Draw::new(Seed::new(seed));
        let (mut segments, mut total) = (vec![Segment::default()], 0.0);
        for step in 0..256 {
            let row = [draw.unit_f32() * 2.0 - 1.0];
            let (action, log) = agent.act(&row, &[true, true], Some(&mut draw));
            let reward = if (action == 1) == (row[0] > 0.0) { 1.0 } else { 0.0 };
            total += reward;
            let segment = segments.last_mut().expect("never empty");
            if lost && step % 5 == 4 {
                segment.last = vec![row[0]];
                segments.push(Segment::default());
                continue;
            }
            segment.rows.push(row[0]);
            segment.critic_rows.push(row[0]);
            segment.allowed.extend([true, true]);
            segment.actions.push(action);
            segment.log_probabilities.push(log);
            segment.rewards.push(reward);
            segment.last = vec![row[0]];
        }
        (segments, total / 256.0)
    }

    #[test]
    fn it_learns_with_and_without_lost_steps() {
        for lost in [false, true] {
            let mut agent = PpoAgent::new(settings(), 1, 1, 2, Seed::new(3));
            let mut last = 0.0;
            for update in 0..60 {
                let (segments, mean) = play(&mut agent, update, lost);
                agent.learn(&segments);
                last = mean;
            }
            assert!(last > 0.9, "{last} with lost steps: {lost}");
        }
    }

    #[test]
    fn a_clone_goes_on_as_the_original_would() {
        let mut first = PpoAgent::new(settings(), 1, 1, 2, Seed::new(4));
        let (segments, _) = play(&mut first, 1, false);
        first.learn(&segments);
        let mut second = first.clone();
        let (segments, _) = play(&mut first, 2, false);
        first.learn(&segments);
        second.learn(&segments);
        assert_eq!(
            first.networks.actor.network.parameters(),
            second.networks.actor.network.parameters()
        );
    }

    #[test]
    fn a_number_is_normalised_as_its_twin() {
        let mut agent = PpoAgent::new(settings(), 2, 2, 2, Seed::new(6));
        agent.normalise_alike(vec![(1, 0)]);
        let rows = vec![1.0, 2.0, 3.0, 2.1];
        let last = vec![1.0, 2.0];
        let (actions, logs, rewards) = (vec![0, 1], vec![-0.7; 2], vec![1.0, 0.0]);
        agent.learn(&[Segment {
            critic_rows: rows.clone(),
            rows,
            allowed: vec![true; 4],
            actions,
            log_probabilities: logs,
            rewards,
            last,
        }]);
        // The first number has mean 2 and deviation 1; a second of 2.5 is half a deviation, not ten of its own.
        agent.consider(&[2.5, 2.5], &[true; 2]);
        assert!((agent.row[0] - 0.5).abs() < 1e-6 && (agent.row[1] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_preferred_action_is_the_likely_one() {
        let mut agent = PpoAgent::new(settings(), 1, 1, 4, Seed::new(5));
        agent.prefer(2, 3.0);
        let log = agent.log_probability(&[0.3], &[true; 4], 2);
        assert!(log > -0.2, "{log}");
    }
}
