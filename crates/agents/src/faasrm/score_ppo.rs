//! PPO on scores: the actor scores every allowed size, the critic values the situation.
//!
//! ```text
//! 1  value all situations with the critic as it is; advantage = return - value
//! 2  epochs (x minibatches), as in `windfall_rl::algorithms::ppo`:
//!      L = - min(ratio A, clip(ratio, 1-c, 1+c) A) + w smooth-L1(V - R) - e H
//!    one AdamW step on both networks against its mean
//! ```
//!
//! Loop, objective and value loss are those of every other PPO here. What differs is how a sample becomes
//! probabilities: one row per allowed size goes through the actor, and the scores of a sample's rows are its logits.
//!
//! [`ScorePpoSettings::published`] are the paper's, where a whole episode is one batch, nothing is
//! normalised and the critic's value is its mean over all 64 rows, forbidden ones included. Rows that may
//! not be chosen have no probability and get no gradient, so the actor is not asked about them.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::{mean, population_deviation};
use windfall_rl::algorithms::ppo::epochs::{Epochs, Order, Sums};
use windfall_rl::algorithms::ppo::surrogate::Surrogate;
use windfall_rl::categorical::{Choice, ObjectiveWeights};
use windfall_rl::checkpoint::{Checkpoint, CheckpointError};
use windfall_rl::net::{Adam, AdamSettings, Initial, Mlp};
use windfall_rl::parallel::Workers;
use windfall_rl::random::Draw;
use windfall_rl::value_loss::ValueLoss;

use super::candidates::{Candidates, ROWS};
use super::score_agent::{ScoreAgent, shape};

/// Decisions whose gradients are added up together: large enough for the kernels, small enough for the
/// cache, and independent of the number of threads.
const CHUNK: usize = 32;

/// Settings of the learner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorePpoSettings {
    /// Learning rate.
    pub learning_rate: f32,
    /// How far a probability may move, as a ratio.
    pub clip: f32,
    /// Passes over the decisions of an update.
    pub epochs: usize,
    /// Decisions per gradient step; nothing for all of them.
    pub minibatch: Option<usize>,
    /// Weight of the value loss.
    pub value_weight: f32,
    /// Weight of the entropy.
    pub entropy: f32,
    /// Share of every weight that a step of size one takes away (AdamW).
    pub weight_decay: f32,
    /// Bring advantages to mean 0 and deviation 1 over an update.
    pub normalise_advantages: bool,
    /// Value only the rows that may be chosen.
    pub critic_sees_allowed_rows: bool,
}

impl ScorePpoSettings {
    /// The paper's, with PyTorch's defaults where it says nothing.
    pub const fn published() -> Self {
        Self {
            learning_rate: 1e-3,
            clip: 0.2,
            epochs: 4,
            minibatch: None,
            value_weight: 0.5,
            entropy: 0.01,
            weight_decay: 0.01,
            normalise_advantages: false,
            critic_sees_allowed_rows: false,
        }
    }

    /// The same with what is common today: minibatches, normalised advantages, a critic of legal rows.
    pub const fn mended() -> Self {
        Self {
            minibatch: Some(256),
            normalise_advantages: true,
            critic_sees_allowed_rows: true,
            ..Self::published()
        }
    }

    /// A whole episode in one batch needs no order; minibatches are drawn anew for every pass.
    fn epochs(&self) -> Epochs {
        let order = if self.minibatch.is_some() { Order::Shuffled } else { Order::Gathered };
        Epochs { epochs: self.epochs, minibatch: self.minibatch, order, target_kl: None }
    }
}

/// One decision to learn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What was seen.
    pub seen: Candidates,
    /// The place of the row chosen.
    pub action: usize,
    /// The logarithm of its probability then.
    pub log_probability: f32,
    /// What followed from it.
    pub value: f32,
}

/// What an update did, means over its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UpdateReport {
    /// Of the last epoch.
    pub policy_loss: f64,
    /// Of the last epoch.
    pub value_loss: f64,
    /// Of the last epoch, over decisions with a choice.
    pub entropy: f64,
}

/// A learner.
#[derive(Clone, Debug)]
pub struct ScorePpo {
    settings: ScorePpoSettings,
    seed: Seed,
    actor: Mlp,
    critic: Mlp,
    actor_adam: Adam,
    critic_adam: Adam,
    updates: u64,
    steps: u64,
}

/// Gradients and losses of a chunk, as sums.
struct Partial {
    actor: Vec<f32>,
    critic: Vec<f32>,
    sums: Sums,
}

impl ScorePpo {
    /// One that has learned nothing.
    pub fn new(settings: ScorePpoSettings, seed: Seed) -> Self {
        let actor = ScoreAgent::new(seed).actor().clone();
        let critic = Mlp::new(shape(), Initial::PerInput, seed.stream("critic"));
        let adam = AdamSettings { epsilon: 1e-8, ..AdamSettings::default() };
        let room = actor.parameters().len();
        Self {
            settings,
            seed,
            actor,
            critic,
            actor_adam: Adam::new(room, adam),
            critic_adam: Adam::new(room, adam),
            updates: 0,
            steps: 0,
        }
    }

    /// The agent as it is now.
    pub fn agent(&self) -> ScoreAgent {
        ScoreAgent::from_actor(self.actor.clone())
    }

    /// Updates done and decisions learned from.
    pub fn progress(&self) -> (u64, u64) {
        (self.updates, self.steps)
    }

    /// Its settings.
    pub fn settings(&self) -> &ScorePpoSettings {
        &self.settings
    }

    /// Puts everything needed to go on into `checkpoint`.
    pub fn store(&self, checkpoint: &mut Checkpoint) {
        checkpoint.put_learning("actor", &self.actor, &self.actor_adam);
        checkpoint.put_learning("critic", &self.critic, &self.critic_adam);
    }

    /// A learner that goes on from `checkpoint`.
    pub fn restore(
        settings: ScorePpoSettings,
        checkpoint: &Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let mut learner = Self::new(settings, checkpoint.header.seed);
        checkpoint.take_learning("actor", &mut learner.actor, &mut learner.actor_adam)?;
        checkpoint.take_learning("critic", &mut learner.critic, &mut learner.critic_adam)?;
        (learner.updates, learner.steps) = (checkpoint.header.iteration, checkpoint.header.steps);
        Ok(learner)
    }

    /// Learns from `samples`.
    pub fn update(&mut self, samples: &[Sample], workers: &Workers) -> UpdateReport {
        let advantages = self.advantages(samples, workers);
        let mut draw = Draw::new(self.seed.stream("order").member(self.updates));
        // Weighed by this, the sums of a pass are means.
        let share = 1.0 / samples.len().max(1) as f64;
        let done = self.settings.epochs().run(samples.len(), &mut draw, |batch, means| {
            let partial = self.gradients(samples, &advantages, batch, workers);
            self.step(&partial, batch.len());
            means.add(&partial.sums, share);
        });
        self.updates += 1;
        self.steps += samples.len() as u64;
        let Sums { policy_loss, value_loss, entropy, .. } = done.last;
        UpdateReport { policy_loss, value_loss, entropy }
    }

    fn advantages(&self, samples: &[Sample], workers: &Workers) -> Vec<f32> {
        let chunks: Vec<&[Sample]> = samples.chunks(CHUNK).collect();
        let values = workers.map(&chunks, |chunk| self.values(chunk));
        let values = values.into_iter().flatten();
        let mut advantages: Vec<f32> =
            samples.iter().zip(values).map(|(sample, value)| sample.value - value).collect();
        if self.settings.normalise_advantages {
            let values = advantages.iter().map(|a| f64::from(*a));
            let mean = mean(values.clone()).unwrap_or(0.0);
            let deviation = population_deviation(values).unwrap_or(0.0) + 1e-8;
            // Divided in double precision, where `normalise::standardise` multiplies by the inverse: the last bit
            // may differ, and stored agents were trained with this one.
            for advantage in &mut advantages {
                *advantage = ((f64::from(*advantage) - mean) / deviation) as f32;
            }
        }
        advantages
    }

    /// Rows that the critic looks at, appended.
    fn critic_rows(&self, seen: &Candidates, rows: &mut Vec<f32>) -> usize {
        if self.settings.critic_sees_allowed_rows {
            return seen.write_allowed(rows);
        }
        (0..ROWS).for_each(|place| seen.write_row(place, rows));
        ROWS
    }

    fn values(&self, samples: &[Sample]) -> Vec<f32> {
        let mut rows = Vec::new();
        let counts: Vec<usize> =
            samples.iter().map(|sample| self.critic_rows(&sample.seen, &mut rows)).collect();
        let mut room = self.critic.activations(counts.iter().sum());
        self.critic.forward(&rows, &mut room);
        let mut start = 0;
        let mean = |count: &usize| {
            let sum: f32 = (start..start + count).map(|row| room.output(row)[0]).sum();
            start += count;
            sum / *count as f32
        };
        counts.iter().map(mean).collect()
    }

    /// Sums over the decisions of a batch, always added up in the same order.
    fn gradients(
        &self,
        samples: &[Sample],
        advantages: &[f32],
        batch: &[usize],
        workers: &Workers,
    ) -> Partial {
        let chunks: Vec<&[usize]> = batch.chunks(CHUNK).collect();
        let room = self.actor.parameters().len();
        let mut sum =
            Partial { actor: vec![0.0; room], critic: vec![0.0; room], sums: Sums::default() };
        // A few hundred chunks at a time, so that a whole episode does not hold its gradients at once.
        for some in chunks.chunks(256) {
            for partial in workers.map(some, |places| self.of_chunk(samples, advantages, places)) {
                let add = |to: &mut [f32], from: &[f32]| {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                };
                add(&mut sum.actor, &partial.actor);
                add(&mut sum.critic, &partial.critic);
                sum.sums.add(&partial.sums, 1.0);
            }
        }
        sum
    }

    fn of_chunk(&self, samples: &[Sample], advantages: &[f32], places: &[usize]) -> Partial {
        let mut sums = Sums::default();
        let actor = self.of_actor(samples, advantages, places, &mut sums);
        let critic = self.of_critic(samples, places, &mut sums);
        Partial { actor, critic, sums }
    }

    /// Gradients of the actor, summed over the decisions at `places`.
    fn of_actor(
        &self,
        samples: &[Sample],
        advantages: &[f32],
        places: &[usize],
        sums: &mut Sums,
    ) -> Vec<f32> {
        let mut gradients = vec![0.0; self.actor.parameters().len()];
        // Where there is one size to choose there is nothing to learn.
        let open: Vec<usize> = places
            .iter()
            .copied()
            .filter(|place| samples[*place].seen.count_allowed() > 1)
            .collect();
        if open.is_empty() {
            return gradients;
        }
        let mut rows = Vec::new();
        open.iter().for_each(|place| _ = samples[*place].seen.write_allowed(&mut rows));
        let mut room = self.actor.activations(rows.len() / shape().inputs);
        self.actor.forward(&rows, &mut room);
        let (mut choice, mut delta, mut start) = (Choice::new(ROWS), [0.0; ROWS], 0);
        for place in open {
            let Sample { seen, action, log_probability, .. } = &samples[place];
            let count = seen.count_allowed();
            let scores = (start..start + count).map(|row| room.output(row)[0]);
            let entropy = seen.weigh(scores, &mut choice);
            let ScorePpoSettings { clip, entropy: weight, .. } = self.settings;
            let log_ratio = choice.log_probabilities()[*action] - log_probability;
            let surrogate = Surrogate::new(log_ratio, advantages[place], clip);
            let by_log = surrogate.by_log_probability;
            let weights = ObjectiveWeights { by_log, by_entropy: -weight };
            choice.write_gradient(*action, weights, &mut delta);
            let allowed = (0..ROWS).filter(|row| seen.allows(*row));
            allowed.enumerate().for_each(|(row, at)| room.output_delta(start + row)[0] = delta[at]);
            sums.policy_loss -= f64::from(surrogate.gain);
            sums.entropy += f64::from(entropy);
            sums.kl += f64::from(surrogate.kl);
            sums.clipped += if surrogate.is_clipped { 1.0 } else { 0.0 };
            start += count;
        }
        self.actor.backward(&rows, &mut room, &mut gradients);
        gradients
    }

    /// Gradients of the critic, summed over the decisions at `places`.
    fn of_critic(&self, samples: &[Sample], places: &[usize], sums: &mut Sums) -> Vec<f32> {
        let mut gradients = vec![0.0; self.critic.parameters().len()];
        let mut rows = Vec::new();
        let counts: Vec<usize> =
            places.iter().map(|place| self.critic_rows(&samples[*place].seen, &mut rows)).collect();
        let mut room = self.critic.activations(counts.iter().sum());
        self.critic.forward(&rows, &mut room);
        let mut start = 0;
        for (place, count) in places.iter().zip(counts) {
            let range = start..start + count;
            let value = range.clone().map(|row| room.output(row)[0]).sum::<f32>() / count as f32;
            let off = ValueLoss::SmoothL1.evaluate(value, value, samples[*place].value);
            sums.value_loss += f64::from(off.loss);
            sums.samples += 1.0;
            let slope = self.settings.value_weight * off.by_value / count as f32;
            range.for_each(|row| room.output_delta(row)[0] = slope);
            start += count;
        }
        self.critic.backward(&rows, &mut room, &mut gradients);
        gradients
    }

    fn step(&mut self, sums: &Partial, count: usize) {
        let ScorePpoSettings { learning_rate: rate, weight_decay, .. } = self.settings;
        let scale = 1.0 / count.max(1) as f32;
        let networks = [
            (&mut self.actor, &mut self.actor_adam, &sums.actor),
            (&mut self.critic, &mut self.critic_adam, &sums.critic),
        ];
        for (network, adam, gradients) in networks {
            let weights = network.parameters_mut();
            weights.iter_mut().for_each(|weight| *weight *= 1.0 - rate * weight_decay);
            adam.step(weights, gradients, rate, scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::bits;
    use super::*;

    /// The best size is the one with the most CPU; memory does not matter.
    fn lesson(agent: &mut ScoreAgent, draw: &mut Draw) -> Sample {
        let seen = Candidates {
            shared: std::array::from_fn(|_| draw.unit_f32()),
            cpu: std::array::from_fn(|level| level as f32 / 8.0),
            memory: std::array::from_fn(|level| level as f32 / 8.0),
            cpu_allowed: bits(draw.below(7), 7),
            memory_allowed: bits(draw.below(7), 7),
        };
        let (action, log_probability) = agent.draw(&seen, draw);
        Sample { value: seen.cpu[Candidates::levels(action).0], seen, action, log_probability }
    }

    fn mean_reward(learner: &ScorePpo) -> f32 {
        let (mut agent, mut draw) = (learner.agent(), Draw::new(Seed::new(99)));
        (0..200).map(|_| lesson(&mut agent, &mut draw).value).sum::<f32>() / 200.0
    }

    #[test]
    fn it_learns_what_pays_on_any_number_of_threads() {
        let train = |threads: usize| {
            let workers = Workers::new(threads);
            let mut learner = ScorePpo::new(ScorePpoSettings::mended(), Seed::new(1));
            let mut draw = Draw::new(Seed::new(2));
            for _ in 0..20 {
                let mut agent = learner.agent();
                let samples: Vec<Sample> =
                    (0..256).map(|_| lesson(&mut agent, &mut draw)).collect();
                learner.update(&samples, &workers);
            }
            learner
        };
        let (one, two) = (train(1), train(2));
        assert_eq!(one.actor.parameters(), two.actor.parameters());
        let before = mean_reward(&ScorePpo::new(ScorePpoSettings::mended(), Seed::new(1)));
        let after = mean_reward(&one);
        assert!(after > before + 0.03, "{before} to {after}");
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let mut learner = ScorePpo::new(ScorePpoSettings::published(), Seed::new(3));
        let mut draw = Draw::new(Seed::new(4));
        let mut agent = learner.agent();
        let samples: Vec<Sample> = (0..8).map(|_| lesson(&mut agent, &mut draw)).collect();
        let advantages = [0.5, -0.3, 1.0, 0.2, -1.0, 0.1, 0.7, -0.2];
        let places: Vec<usize> = (0..8).collect();
        let mut sums = Sums::default();
        let gradients = learner.of_actor(&samples, &advantages, &places, &mut sums);
        let objective = |learner: &ScorePpo| {
            let mut sums = Sums::default();
            learner.of_actor(&samples, &advantages, &places, &mut sums);
            sums.policy_loss - f64::from(learner.settings.entropy) * sums.entropy
        };
        for parameter in [0, 5, 40, 100] {
            let mut moved = |by: f32| {
                learner.actor.parameters_mut()[parameter] += by;
                objective(&learner)
            };
            let up = moved(1e-2);
            let down = moved(-2e-2);
            moved(1e-2);
            let slope = (up - down) / 2e-2;
            assert!(
                (slope - f64::from(gradients[parameter])).abs() < 2e-3,
                "{parameter}: {slope} {}",
                gradients[parameter]
            );
        }
    }

    #[test]
    fn a_restored_learner_goes_on_as_the_first_would_have() {
        let mut draw = Draw::new(Seed::new(2));
        let mut first = ScorePpo::new(ScorePpoSettings::mended(), Seed::new(7));
        let mut agent = first.agent();
        let samples: Vec<Sample> = (0..64).map(|_| lesson(&mut agent, &mut draw)).collect();
        first.update(&samples, &Workers::new(1));
        let (updates, steps) = first.progress();
        let mut file = super::super::sizing::empty_checkpoint(
            Seed::new(7),
            updates,
            steps,
            serde_json::json!({}),
        );
        first.store(&mut file);
        let file = Checkpoint::from_bytes(&file.to_bytes().unwrap()).unwrap();
        let mut second = ScorePpo::restore(*first.settings(), &file).unwrap();
        first.update(&samples, &Workers::new(1));
        second.update(&samples, &Workers::new(1));
        assert_eq!(first.actor.parameters(), second.actor.parameters());
    }
}
