//! Trajectories: random exploration (task 1.2) and a policy against it (task 4.3).

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_rl::env::Environment;
use windfall_rl::policy::Decide;
use windfall_rl::random::Draw;

use super::environment::{ACTIONS, Ece471, Settings};

/// One step of a trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Steps before it.
    pub step: u32,
    /// The state acted in, in the order of the features.
    pub state: Vec<f32>,
    /// What was done.
    pub action: String,
    /// What it paid.
    pub reward: f64,
}

/// A policy that chooses among all five actions with equal probability, the illegal ones included.
#[derive(Clone, Debug)]
pub struct Random(Draw);

impl Random {
    /// From a stream of its own.
    pub fn new(seed: Seed) -> Self {
        Self(Draw::new(seed.stream("random policy")))
    }
}

impl Decide for Random {
    fn decide(&mut self, _observation: &[f32], allowed: &[bool]) -> usize {
        self.0.below(allowed.len())
    }
}

/// Lets a policy act for `steps` steps of one episode.
pub fn trajectory(
    settings: Settings,
    policy: &mut dyn Decide,
    masks: bool,
    steps: u32,
    seed: Seed,
) -> Vec<Visit> {
    let mut environment = Ece471::new(settings);
    let mut state = vec![0.0; environment.spec().features.len()];
    let mut allowed = vec![true; ACTIONS.len()];
    environment.reset(seed, &mut state);
    let visit = |step| {
        let before = state.clone();
        if masks {
            environment.mask(&mut allowed);
        }
        let (name, action) = ACTIONS[policy.decide(&state, &allowed)];
        let reward = environment.act(action).reward;
        environment.observe(&mut state);
        Visit { step, state: before, action: name.to_owned(), reward }
    };
    (0..steps).map(visit).collect()
}

/// Sum of the rewards of a trajectory.
pub fn total(trajectory: &[Visit]) -> f64 {
    trajectory.iter().map(|visit| visit.reward).sum()
}

#[test]
fn a_trajectory_begins_with_four_containers_and_depends_on_its_seed_alone() {
    let explore = |seed| {
        let mut policy = Random::new(Seed::new(seed));
        trajectory(Settings::default(), &mut policy, false, 300, Seed::new(seed))
    };
    let visits = explore(3);
    assert_eq!(visits.len(), 300);
    assert_eq!(visits[0].state[4], 0.2);
    assert_eq!(visits, explore(3));
    assert_ne!(visits, explore(4));
    assert!(total(&visits) < 0.8 * 300.0);
}
