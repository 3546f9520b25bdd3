//! Trivial tasks that every learner must solve from a fixed seed.

use windfall_core::Seed;

use crate::catalogue::{Entry, twenty};
use crate::env::{End, Environment, Spec, Step};
use crate::random::Draw;

/// The two tasks, by their ids.
pub const ENTRIES: [Entry; 2] = [
    Entry {
        id: "toy/Identity-v0",
        summary: "a trivial task: name the action that is asked for",
        make: |_| Box::new(Identity::new()),
        panel: |split| twenty(|_| Box::new(Identity::new()), split),
        suggested: |_, _| None,
        environments: 8,
    },
    Entry {
        id: "toy/Corridor-v0",
        summary: "a trivial task: five places in a row, the far end pays",
        make: |_| Box::new(Corridor::new()),
        panel: |_| vec![Box::new(Corridor::new())],
        suggested: |_, _| None,
        environments: 8,
    },
];

/// Says which of the actions is asked for; one point for each right answer, eight questions an episode.
#[derive(Clone, Debug)]
pub struct Identity {
    spec: Spec,
    draw: Draw,
    asked: usize,
    left: u32,
}

impl Identity {
    /// With three actions.
    #[expect(clippy::new_without_default, reason = "a task is chosen, not defaulted to")]
    pub fn new() -> Self {
        let features = [("first", 0.0, 1.0), ("second", 0.0, 1.0), ("third", 0.0, 1.0)];
        Self {
            spec: Spec::new("toy/Identity-v0", &features, &["first", "second", "third"]),
            draw: Draw::new(Seed::new(0)),
            asked: 0,
            left: 0,
        }
    }

    fn ask(&mut self, observation: &mut [f32]) {
        self.asked = self.draw.below(3);
        observation.fill(0.0);
        observation[self.asked] = 1.0;
    }
}

impl Environment for Identity {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        self.draw = Draw::new(seed);
        self.left = 8;
        self.ask(observation);
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        let reward = if action == self.asked { 1.0 } else { 0.0 };
        self.ask(observation);
        self.left -= 1;
        Step { reward, end: if self.left == 0 { End::Truncated } else { End::Continues } }
    }
}

/// Five places in a row, from the middle: the left end pays a little at once, the right end more. Costs
/// are paid on the way, so the learner must look ahead.
#[derive(Clone, Debug)]
pub struct Corridor {
    spec: Spec,
    place: u8,
    left: u32,
}

impl Corridor {
    /// The right end pays 1, the left 0.1, each step costs 0.01; the horizon is 20 steps.
    #[expect(clippy::new_without_default, reason = "a task is chosen, not defaulted to")]
    pub fn new() -> Self {
        let spec = Spec::new("toy/Corridor-v0", &[("place", 0.0, 1.0)], &["left", "right"]);
        Self { spec, place: 2, left: 0 }
    }
}

impl Environment for Corridor {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, _seed: Seed, observation: &mut [f32]) {
        (self.place, self.left) = (2, 20);
        observation[0] = 0.5;
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        self.place = if action == 1 { self.place + 1 } else { self.place - 1 };
        self.left -= 1;
        observation[0] = f32::from(self.place) / 4.0;
        let (pay, end) = match self.place {
            0 => (0.1, End::Terminated),
            4 => (1.0, End::Terminated),
            _ if self.left == 0 => (0.0, End::Truncated),
            _ => (0.0, End::Continues),
        };
        Step { reward: pay - 0.01, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::check_environment;

    #[test]
    fn toys_are_environments() {
        check_environment(Identity::new, 100);
        check_environment(Corridor::new, 100);
    }

    #[test]
    fn the_long_way_right_pays_more() {
        let mut corridor = Corridor::new();
        let mut seen = [0.0];
        corridor.reset(Seed::new(0), &mut seen);
        assert_eq!(corridor.step(1, &mut seen), Step { reward: -0.01, end: End::Continues });
        assert_eq!(corridor.step(1, &mut seen), Step { reward: 0.99, end: End::Terminated });
    }
}
