//! A ring of past steps to learn from again.

use crate::random::Draw;

/// Steps in preallocated columns; the oldest are overwritten.
#[derive(Clone, Debug)]
pub struct Replay {
    pub(crate) capacity: usize,
    pub(crate) features: usize,
    pub(crate) actions: usize,
    pub(crate) observations: Vec<f32>,
    pub(crate) next_observations: Vec<f32>,
    pub(crate) next_allowed: Vec<bool>,
    pub(crate) chosen: Vec<usize>,
    pub(crate) rewards: Vec<f32>,
    /// Whether the task ended there; a truncated step did not.
    pub(crate) terminated: Vec<bool>,
    pub(crate) pushed: u64,
}

/// One step as the ring takes it.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'a> {
    /// What was seen.
    pub observation: &'a [f32],
    /// What was done.
    pub action: usize,
    /// What it paid.
    pub reward: f32,
    /// What was seen next, before any reset.
    pub next_observation: &'a [f32],
    /// What could be done next.
    pub next_allowed: &'a [bool],
    /// Whether the task ended, so that nothing of value follows.
    pub terminated: bool,
}

impl Replay {
    /// Room for `capacity` steps.
    pub fn new(capacity: usize, features: usize, actions: usize) -> Self {
        Self {
            capacity,
            features,
            actions,
            observations: vec![0.0; capacity * features],
            next_observations: vec![0.0; capacity * features],
            next_allowed: vec![true; capacity * actions],
            chosen: vec![0; capacity],
            rewards: vec![0.0; capacity],
            terminated: vec![false; capacity],
            pushed: 0,
        }
    }

    /// How many steps it holds.
    pub fn len(&self) -> usize {
        usize::try_from(self.pushed).map_or(self.capacity, |pushed| pushed.min(self.capacity))
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.pushed == 0
    }

    /// Takes in a step, in place of the oldest if there is no room.
    pub fn push(&mut self, step: Transition<'_>) {
        let at = usize::try_from(self.pushed % self.capacity as u64)
            .expect("the remainder is below the capacity, which is a usize");
        let row = at * self.features;
        self.observations[row..row + self.features].copy_from_slice(step.observation);
        self.next_observations[row..row + self.features].copy_from_slice(step.next_observation);
        let row = at * self.actions;
        self.next_allowed[row..row + self.actions].copy_from_slice(step.next_allowed);
        self.chosen[at] = step.action;
        self.rewards[at] = step.reward;
        self.terminated[at] = step.terminated;
        self.pushed += 1;
    }

    /// The step at a place.
    pub fn transition(&self, place: usize) -> Transition<'_> {
        let features = place * self.features..(place + 1) * self.features;
        Transition {
            observation: &self.observations[features.clone()],
            action: self.chosen[place],
            reward: self.rewards[place],
            next_observation: &self.next_observations[features],
            next_allowed: &self.next_allowed[place * self.actions..(place + 1) * self.actions],
            terminated: self.terminated[place],
        }
    }

    /// A place drawn uniformly among the steps held.
    pub fn draw(&self, draw: &mut Draw) -> usize {
        draw.below(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(replay: &mut Replay, number: f32, terminated: bool) {
        replay.push(Transition {
            observation: &[number, 0.0],
            action: 1,
            reward: number,
            next_observation: &[number + 1.0, 0.0],
            next_allowed: &[true, false],
            terminated,
        });
    }

    #[test]
    fn the_oldest_step_makes_room() {
        let mut replay = Replay::new(3, 2, 2);
        assert!(replay.is_empty());
        for number in [1.0, 2.0, 3.0, 4.0] {
            push(&mut replay, number, number > 3.0);
        }
        assert_eq!(replay.len(), 3);
        let first = replay.transition(0);
        assert_eq!(
            (first.observation, first.reward, first.terminated),
            (&[4.0, 0.0][..], 4.0, true)
        );
        assert_eq!(replay.transition(1).next_observation, [3.0, 0.0]);
        assert_eq!(replay.transition(1).next_allowed, [true, false]);
    }

    #[test]
    fn only_what_was_pushed_is_drawn() {
        let mut replay = Replay::new(100, 2, 2);
        push(&mut replay, 1.0, false);
        push(&mut replay, 2.0, false);
        let mut draw = Draw::new(windfall_core::Seed::new(1));
        assert!((0..100).all(|_| replay.draw(&mut draw) < 2));
    }
}
