//! Experience gathered with one fixed policy: what on-policy algorithms learn from.
//!
//! Every environment has its own player, its own random stream per iteration and its own record, so
//! players can run on any number of threads and write the same bytes.

use windfall_core::Seed;

use crate::categorical::Choice;
use crate::env::{End, Environment};
use crate::net::{Activations, Mlp};
use crate::normalise::Scaling;
use crate::parallel::Workers;
use crate::player::Player;
use crate::random::Draw;

/// Who chooses while experience is gathered.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour<'a> {
    /// Outputs one weight per action.
    pub actor: &'a Mlp,
    /// Normalisation of observations, frozen for the whole rollout.
    pub scaling: &'a Scaling,
    /// Whether forbidden actions have probability zero.
    pub masks: bool,
}

/// What one player did, step after step.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Observations as the environment gave them.
    pub observations: Vec<f32>,
    /// Which actions the policy could choose from.
    pub allowed: Vec<bool>,
    /// What it chose.
    pub actions: Vec<usize>,
    /// With which log-probability.
    pub log_probabilities: Vec<f32>,
    /// What it was paid.
    pub rewards: Vec<f32>,
    /// How each step ended.
    pub ends: Vec<End>,
    /// Last observations of truncated episodes, in order.
    pub finals: Vec<f32>,
    /// What is seen after the last step.
    pub last: Vec<f32>,
    /// Sums of rewards of the episodes that ended.
    pub returns: Vec<f64>,
}

impl Record {
    fn clear(&mut self) {
        self.observations.clear();
        self.allowed.clear();
        self.actions.clear();
        self.log_probabilities.clear();
        self.rewards.clear();
        self.ends.clear();
        self.finals.clear();
        self.last.clear();
        self.returns.clear();
    }
}

/// A player with its record.
#[derive(Clone, Debug)]
pub(crate) struct Track<E> {
    pub(crate) player: Player<E>,
    pub(crate) record: Record,
    actions: Seed,
    row: Vec<f32>,
    choice: Choice,
    room: Activations,
}

impl<E: Environment> Track<E> {
    fn play(&mut self, behaviour: Behaviour<'_>, steps: usize, iteration: u64) {
        let mut draw = Draw::new(self.actions.member(iteration));
        let record = &mut self.record;
        record.clear();
        for _ in 0..steps {
            behaviour.scaling.apply(self.player.observation(), &mut self.row);
            behaviour.actor.forward(&self.row, &mut self.room);
            record.observations.extend_from_slice(self.player.observation());
            let first = record.allowed.len();
            if behaviour.masks {
                record.allowed.extend_from_slice(self.player.allowed());
            } else {
                record.allowed.resize(first + self.player.allowed().len(), true);
            }
            let allowed = &record.allowed[first..];
            self.choice.set(self.room.output(0), allowed);
            let action = self.choice.sample(&mut draw);
            let step = self.player.act(action);
            record.actions.push(action);
            record.log_probabilities.push(self.choice.log_probabilities()[action]);
            record.rewards.push(step.reward);
            record.ends.push(step.end);
            if step.end == End::Truncated {
                record.finals.extend_from_slice(self.player.observation());
            }
            if step.end.is_over() {
                record.returns.push(self.player.total());
                self.player.begin();
            }
        }
        record.last.extend_from_slice(self.player.observation());
    }
}

/// One track per environment.
///
/// The `i`-th plays the episodes of `seed.stream("episodes").member(i)` and draws its actions in
/// iteration `k` from `seed.stream("actions").member(i).member(k)`.
pub(crate) fn tracks<E: Environment>(
    environments: Vec<E>,
    actor: &Mlp,
    seed: Seed,
) -> Vec<Track<E>> {
    let (episodes, actions) = (seed.stream("episodes"), seed.stream("actions"));
    let track = |(index, environment)| Track {
        player: Player::new(environment, episodes.member(index as u64)),
        record: Record::default(),
        actions: actions.member(index as u64),
        row: vec![0.0; actor.shape().inputs],
        choice: Choice::new(actor.shape().outputs),
        room: actor.activations(1),
    };
    environments.into_iter().enumerate().map(track).collect()
}

/// Plays `steps` steps on every track.
pub(crate) fn collect<E: Environment>(
    tracks: &mut [Track<E>],
    behaviour: Behaviour<'_>,
    steps: usize,
    iteration: u64,
    workers: &Workers,
) {
    workers.each(tracks, |track| track.play(behaviour, steps, iteration));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Activation, Initial, Shape};
    use crate::toy::{Corridor, Identity};

    fn actor(inputs: usize, outputs: usize) -> Mlp {
        let shape = Shape { inputs, hidden: vec![8], outputs, activation: Activation::Tanh };
        Mlp::new(shape, Initial::PerInput, Seed::new(1))
    }

    #[test]
    fn one_thread_and_three_write_the_same_bytes() {
        let record = |threads| {
            let (actor, scaling) = (actor(3, 3), Scaling::identity(3));
            let mut tracks = tracks(vec![Identity::new(); 7], &actor, Seed::new(5));
            let behaviour = Behaviour { actor: &actor, scaling: &scaling, masks: true };
            let workers = Workers::new(threads);
            collect(&mut tracks, behaviour, 50, 0, &workers);
            collect(&mut tracks, behaviour, 50, 1, &workers);
            format!("{:?}", tracks.iter().map(|track| &track.record).collect::<Vec<_>>())
        };
        assert_eq!(record(1), record(3));
    }

    #[test]
    fn a_record_keeps_what_each_end_needs() {
        let (actor, scaling) = (actor(1, 2), Scaling::identity(1));
        let mut tracks = tracks(vec![Corridor::new()], &actor, Seed::new(6));
        let behaviour = Behaviour { actor: &actor, scaling: &scaling, masks: true };
        collect(&mut tracks, behaviour, 500, 0, &Workers::new(1));
        let record = &tracks[0].record;
        let count = |end| record.ends.iter().filter(|e| **e == end).count();
        assert!(count(End::Terminated) > 10);
        assert_eq!(record.finals.len(), count(End::Truncated));
        assert_eq!(record.returns.len(), count(End::Truncated) + count(End::Terminated));
        assert_eq!((record.observations.len(), record.last.len()), (500, 1));
    }
}
