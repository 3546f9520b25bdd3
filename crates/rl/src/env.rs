//! Environments: what a learner acts in.
//!
//! An environment is a world with discrete actions that can be started over from a seed. It writes its
//! observation into a row it is handed, so that nothing is allocated per step, and it keeps apart the two
//! ways an episode can end ([`End`]): only one of them means that nothing of value follows.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

/// How a step left the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The episode goes on.
    Continues,
    /// The task ended; nothing of value follows.
    Terminated,
    /// We stopped watching, usually at a horizon; value does follow.
    Truncated,
}

impl End {
    /// Whether the environment must be reset before its next step.
    #[inline]
    pub fn is_over(self) -> bool {
        match self {
            Self::Continues => false,
            Self::Terminated | Self::Truncated => true,
        }
    }
}

/// What a step paid and how it left the episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The reward.
    pub reward: f32,
    /// Whether the episode is over, and why.
    pub end: End,
}

/// One number of an observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// What it is, in `snake_case`.
    pub name: String,
    /// The smallest value it can have.
    pub low: f32,
    /// The largest value it can have.
    pub high: f32,
}

impl Feature {
    /// A feature between `low` and `high`.
    pub fn new(name: &str, low: f32, high: f32) -> Self {
        Self { name: name.to_owned(), low, high }
    }
}

/// What an environment shows and accepts. Stored in every checkpoint, which refuses another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name and version, such as `windfall/Scaling-v0`: any change of meaning raises the version.
    pub id: String,
    /// The numbers of an observation, in order.
    pub features: Vec<Feature>,
    /// The names of the actions, in order.
    pub actions: Vec<String>,
}

impl Spec {
    /// A description from names and ranges.
    pub fn new(id: &str, features: &[(&str, f32, f32)], actions: &[&str]) -> Self {
        Self {
            id: id.to_owned(),
            features: features.iter().map(|(n, low, high)| Feature::new(n, *low, *high)).collect(),
            actions: actions.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

/// A world to act in.
///
/// The same seed and the same actions give the same episode, apart from what [`Environment::memory`]
/// declares. Learners rely on this to resume in the middle of an episode: they replay it.
pub trait Environment: Send {
    /// What it shows and accepts; never changes.
    fn spec(&self) -> &Spec;

    /// Starts an episode and writes its first observation.
    fn reset(&mut self, seed: Seed, observation: &mut [f32]);

    /// Acts and writes what follows: at the end of an episode its last observation.
    ///
    /// `action` is an index into the actions of the spec. Not called between an end and a reset.
    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step;

    /// Writes which actions make sense now. At least one always does.
    fn mask(&self, allowed: &mut [bool]) {
        allowed.fill(true);
    }

    /// [`Self::step`], then [`Self::mask`]: one call through a pointer for whoever steps many.
    fn step_and_mask(
        &mut self,
        action: usize,
        observation: &mut [f32],
        allowed: &mut [bool],
    ) -> Step {
        let step = self.step(action, observation);
        self.mask(allowed);
        step
    }

    /// What else is worth knowing about the present state, by name; for people, not for learners.
    fn info(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// What survives a reset. Nothing, in a well-made environment; faithful copies of others have it.
    fn memory(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Takes over a memory, before a reset.
    fn remember(&mut self, _memory: &[i64]) {}
}

impl<E: Environment + ?Sized> Environment for Box<E> {
    fn spec(&self) -> &Spec {
        (**self).spec()
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        (**self).reset(seed, observation);
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        (**self).step(action, observation)
    }

    fn mask(&self, allowed: &mut [bool]) {
        (**self).mask(allowed);
    }

    fn step_and_mask(
        &mut self,
        action: usize,
        observation: &mut [f32],
        allowed: &mut [bool],
    ) -> Step {
        (**self).step_and_mask(action, observation, allowed)
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        (**self).info()
    }

    fn memory(&self) -> Vec<i64> {
        (**self).memory()
    }

    fn remember(&mut self, memory: &[i64]) {
        (**self).remember(memory);
    }
}

/// Many environments stepped together; observations and masks lie in one matrix each.
///
/// Ended environments are reset explicitly ([`VectorEnv::reset_ended`]), so that their last observation
/// can be read before it is replaced.
#[derive(Clone, Debug)]
pub struct VectorEnv<E> {
    environments: Vec<E>,
    observations: Vec<f32>,
    masks: Vec<bool>,
    steps: Vec<Step>,
    episodes: Vec<u64>,
    seed: Seed,
}

impl<E: Environment> VectorEnv<E> {
    /// Resets all; environment `i` takes its episodes from the `i`-th member of the seed.
    ///
    /// # Panics
    ///
    /// If there is no environment.
    pub fn new(environments: Vec<E>, seed: Seed) -> Self {
        let spec = environments.first().expect("at least one environment").spec();
        let (features, actions) = (spec.features.len(), spec.actions.len());
        let count = environments.len();
        let mut vector = Self {
            environments,
            observations: vec![0.0; count * features],
            masks: vec![true; count * actions],
            steps: vec![Step { reward: 0.0, end: End::Truncated }; count],
            episodes: vec![0; count],
            seed,
        };
        vector.reset_ended();
        vector
    }

    /// Starts the next episode of every environment whose episode is over.
    pub fn reset_ended(&mut self) {
        let features = self.features();
        for (index, environment) in self.environments.iter_mut().enumerate() {
            if self.steps[index].end.is_over() {
                let seed = self.seed.member(index as u64).member(self.episodes[index]);
                self.episodes[index] += 1;
                let row = &mut self.observations[index * features..][..features];
                environment.reset(seed, row);
                self.steps[index].end = End::Continues;
            }
        }
        self.write_masks();
    }

    /// Steps every environment with its action and returns what each paid.
    pub fn step(&mut self, actions: &[usize]) -> &[Step] {
        let features = self.features();
        let rows = self.observations.chunks_exact_mut(features).zip(&mut self.steps);
        for ((environment, action), (row, step)) in
            self.environments.iter_mut().zip(actions).zip(rows)
        {
            *step = environment.step(*action, row);
        }
        self.write_masks();
        &self.steps
    }

    fn write_masks(&mut self) {
        let actions = self.masks.len() / self.environments.len();
        for (environment, row) in self.environments.iter().zip(self.masks.chunks_exact_mut(actions))
        {
            environment.mask(row);
        }
    }

    fn features(&self) -> usize {
        self.observations.len() / self.environments.len()
    }

    /// The environments.
    pub fn environments(&self) -> &[E] {
        &self.environments
    }

    /// All observations, row after row.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// All masks, row after row.
    pub fn masks(&self) -> &[bool] {
        &self.masks
    }
}

/// What every environment must keep to; call it from a test.
///
/// # Panics
///
/// If the environment breaks the contract of [`Environment`], with a sentence that says how.
pub fn check_environment<E: Environment>(mut make: impl FnMut() -> E, steps: usize) {
    let mut play = |seed: u64| {
        let mut environment = make();
        let spec = environment.spec().clone();
        let mut draw = crate::random::Draw::new(Seed::new(seed));
        let mut row = vec![f32::NAN; spec.features.len()];
        let mut allowed = vec![false; spec.actions.len()];
        let mut seen = Vec::new();
        environment.reset(Seed::new(seed), &mut row);
        for step in 0..steps {
            for (value, feature) in row.iter().zip(&spec.features) {
                assert!(
                    (feature.low..=feature.high).contains(value),
                    "{} is {value} at step {step}, outside its range",
                    feature.name
                );
            }
            environment.mask(&mut allowed);
            assert!(allowed.contains(&true), "no action is allowed at step {step}");
            seen.extend_from_slice(&row);
            let action = draw.below(spec.actions.len());
            let Step { reward, end } = environment.step(action, &mut row);
            assert!(reward.is_finite(), "reward is {reward} at step {step}");
            seen.push(reward);
            if end.is_over() {
                environment.reset(Seed::new(seed).member(step as u64), &mut row);
            }
        }
        seen
    };
    assert_eq!(play(1), play(1), "the same seed gave two different episodes");
}
