//! Trained policies as they are used: no exploration, no allocation.

use std::collections::BTreeMap;

use windfall_core::Seed;

use crate::categorical::best;
use crate::env::{Environment, Spec};
use crate::net::{Activations, Mlp};
use crate::normalise::Scaling;

/// Something that chooses actions.
pub trait Decide: Send {
    /// The action for an observation, among those allowed. Allocates nothing.
    fn decide(&mut self, observation: &[f32], allowed: &[bool]) -> usize;
}

/// The action with the largest output of a network.
#[derive(Clone, Debug)]
pub struct NetworkPolicy {
    network: Mlp,
    scaling: Scaling,
    row: Vec<f32>,
    room: Activations,
}

impl NetworkPolicy {
    /// From a network and the normalisation it was trained with.
    pub fn new(network: Mlp, scaling: Scaling) -> Self {
        let row = vec![0.0; network.shape().inputs];
        let room = network.activations(1);
        Self { network, scaling, row, room }
    }

    /// Its network.
    pub fn network(&self) -> &Mlp {
        &self.network
    }

    /// One number per action; the largest is chosen.
    pub fn scores(&mut self, observation: &[f32]) -> &[f32] {
        self.scaling.apply(observation, &mut self.row);
        self.network.forward(&self.row, &mut self.room);
        self.room.output(0)
    }
}

impl Decide for NetworkPolicy {
    fn decide(&mut self, observation: &[f32], allowed: &[bool]) -> usize {
        best(self.scores(observation), allowed)
    }
}

/// Scores any number of candidates with one network, at most `room` at a time, and chooses the best.
#[derive(Clone, Debug)]
pub struct ScorePolicy {
    network: Mlp,
    /// For all candidates together: one long row is normalised faster than many short ones.
    scaling: Scaling,
    rows: Vec<f32>,
    room: Activations,
}

impl ScorePolicy {
    /// For up to `candidates` candidates.
    pub fn new(network: Mlp, scaling: Scaling, candidates: usize) -> Self {
        let rows = vec![0.0; candidates * network.shape().inputs];
        let room = network.activations(candidates);
        Self { network, scaling: scaling.repeated(candidates), rows, room }
    }

    /// The place of the candidate with the largest score; the first of equals. Allocates nothing.
    ///
    /// # Panics
    ///
    /// If `candidates` holds no row or more rows than there is room for.
    #[inline]
    pub fn best(&mut self, candidates: &[f32]) -> usize {
        let rows = &mut self.rows[..candidates.len()];
        self.scaling.apply_to_start(candidates, rows);
        self.network.forward(rows, &mut self.room);
        let count = candidates.len() / self.network.shape().inputs;
        let score = |place: &usize| self.room.output(*place)[0];
        (1..count).fold(0, |best, place| if score(&place) > score(&best) { place } else { best })
    }
}

/// The action with the largest value in a table of states; the first action in states never seen.
#[derive(Clone, Debug)]
pub struct TablePolicy {
    pub(crate) grid: Grid,
    pub(crate) values: BTreeMap<u64, Vec<f32>>,
}

impl Decide for TablePolicy {
    fn decide(&mut self, observation: &[f32], allowed: &[bool]) -> usize {
        match self.values.get(&self.grid.cell(observation)) {
            Some(values) => best(values, allowed),
            None => allowed.iter().position(|allowed| *allowed).unwrap_or(0),
        }
    }
}

/// Cuts every feature's range into equal steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Smallest value, largest value and number of levels of each feature.
    features: Vec<(f32, f32, u32)>,
}

impl Grid {
    /// `levels[i]` values for feature `i`, its ends included; 1 ignores the feature.
    pub fn new(spec: &Spec, levels: &[u32]) -> Self {
        let features = spec.features.iter().zip(levels);
        Self { features: features.map(|(f, levels)| (f.low, f.high, *levels)).collect() }
    }

    /// The number of the cell an observation lies in.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to its range")]
    #[expect(clippy::cast_precision_loss, reason = "levels are few")]
    pub fn cell(&self, observation: &[f32]) -> u64 {
        let mut cell = 0;
        for (x, (low, high, levels)) in observation.iter().zip(&self.features) {
            let last = levels.saturating_sub(1);
            let share = ((x - low) / (high - low)).clamp(0.0, 1.0);
            cell = cell * u64::from(*levels) + (share * last as f32 + 0.5) as u64;
        }
        cell
    }
}

/// Plays one episode of each environment and returns each one's sum of rewards.
///
/// `masks` says whether the policy receives the mask of allowed actions. The seeds are those of a stream of
/// their own, so that no training episode is ever evaluated.
pub fn evaluate<E: Environment>(
    environments: &mut [E],
    policy: &mut dyn Decide,
    masks: bool,
    seed: Seed,
) -> Vec<f64> {
    let stream = seed.stream("evaluation");
    let mut totals = Vec::with_capacity(environments.len());
    for (index, environment) in environments.iter_mut().enumerate() {
        let spec = environment.spec();
        let mut row = vec![0.0; spec.features.len()];
        let mut allowed = vec![true; spec.actions.len()];
        environment.reset(stream.member(index as u64), &mut row);
        let mut total = 0.0;
        loop {
            if masks {
                environment.mask(&mut allowed);
            }
            let step = environment.step(policy.decide(&row, &allowed), &mut row);
            total += f64::from(step.reward);
            if step.end.is_over() {
                break;
            }
        }
        totals.push(total);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Activation, Initial, Shape};
    use crate::toy::{Corridor, Identity};

    #[test]
    fn cells_are_distinguished_by_the_features_that_count() {
        let grid = Grid::new(Identity::new().spec(), &[2, 3, 1]);
        assert_eq!(grid.cell(&[0.0, 0.0, 0.7]), 0);
        assert_eq!(grid.cell(&[0.0, 0.5, 0.1]), 1);
        assert_eq!(grid.cell(&[1.0, 1.0, 0.0]), 5);
        assert_eq!(grid.cell(&[9.0, 9.0, 9.0]), 5);
    }

    #[test]
    fn the_best_candidate_is_the_one_with_the_largest_score() {
        let shape = Shape { inputs: 2, hidden: vec![8], outputs: 1, activation: Activation::Relu };
        let network = Mlp::new(shape, Initial::PerInput, Seed::new(2));
        let candidates: Vec<f32> = (0..20).map(|i| (i as f32).sin()).collect();
        let mut alone = NetworkPolicy::new(network.clone(), Scaling::identity(2));
        let scores: Vec<f32> = candidates.chunks(2).map(|row| alone.scores(row)[0]).collect();
        let expected = best(&scores, &[true; 10]);
        let mut policy = ScorePolicy::new(network, Scaling::identity(2), 16);
        assert_eq!(policy.best(&candidates), expected);
    }

    #[test]
    fn an_evaluation_adds_up_rewards() {
        struct Right;
        impl Decide for Right {
            fn decide(&mut self, _: &[f32], _: &[bool]) -> usize {
                1
            }
        }
        let totals = evaluate(&mut [Corridor::new()], &mut Right, true, Seed::new(1));
        assert!((totals[0] - 0.98).abs() < 1e-6);
    }
}
