//! One environment and its place in the sequence of its episodes.

use windfall_core::Seed;

use crate::env::{Environment, Step};

/// Plays episode after episode of one environment and can say, and find again, where it is.
///
/// Episode `k` starts from the `k`-th member of the player's seed. A place is kept as what the
/// environment remembered when the episode began and the actions since: environments are deterministic,
/// so replaying them leads back to the same state without asking every environment for a copy of itself.
#[derive(Clone, Debug)]
pub struct Player<E> {
    environment: E,
    seed: Seed,
    place: Place,
    observation: Vec<f32>,
    allowed: Vec<bool>,
    total: f64,
}

/// Where a player is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Episodes begun.
    pub episodes: u64,
    /// What the environment remembered when the present one began.
    pub memory: Vec<i64>,
    /// What was done since.
    pub actions: Vec<usize>,
}

impl<E: Environment> Player<E> {
    /// Begins the first episode.
    pub fn new(environment: E, seed: Seed) -> Self {
        let spec = environment.spec();
        let (observation, allowed) =
            (vec![0.0; spec.features.len()], vec![true; spec.actions.len()]);
        let place = Place::default();
        let mut player = Self { environment, seed, place, observation, allowed, total: 0.0 };
        player.begin();
        player
    }

    /// Goes to a place. Returns whether there is such a place: an episode can be over before the actions
    /// are.
    #[must_use]
    pub fn restore(&mut self, place: Place) -> bool {
        self.environment.remember(&place.memory);
        self.place.episodes = place.episodes.saturating_sub(1);
        self.begin();
        let last = place.actions.len();
        for (done, action) in place.actions.into_iter().enumerate() {
            if self.act(action).end.is_over() && done + 1 < last {
                return false;
            }
        }
        true
    }

    /// Begins the next episode.
    pub fn begin(&mut self) {
        self.place.memory = self.environment.memory();
        self.place.actions.clear();
        self.environment.reset(self.seed.member(self.place.episodes), &mut self.observation);
        self.place.episodes += 1;
        self.environment.mask(&mut self.allowed);
        self.total = 0.0;
    }

    /// Acts. If the episode is over, the observation is its last until [`Player::begin`] is called.
    pub fn act(&mut self, action: usize) -> Step {
        let step = self.environment.step(action, &mut self.observation);
        self.environment.mask(&mut self.allowed);
        self.place.actions.push(action);
        self.total += f64::from(step.reward);
        step
    }

    /// What is seen now.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// What may be done now.
    pub fn allowed(&self) -> &[bool] {
        &self.allowed
    }

    /// Rewards of this episode so far.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its environment.
    pub fn environment(&self) -> &E {
        &self.environment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Corridor;

    #[test]
    fn a_restored_player_goes_on_as_the_first_would_have() {
        let mut first = Player::new(Corridor::new(), Seed::new(3));
        let mut record = Vec::new();
        let mut second = Player::new(Corridor::new(), Seed::new(3));
        for step in 0..40 {
            if step == 17 {
                assert!(second.restore(first.place().clone()));
            }
            let action = usize::from(step % 3 != 0);
            let taken = first.act(action);
            record.push((first.observation().to_vec(), taken));
            if step >= 17 {
                assert_eq!(second.act(action), taken);
                assert_eq!(second.observation(), first.observation());
                assert_eq!(second.total(), first.total());
            }
            if taken.end.is_over() {
                first.begin();
                if step >= 17 {
                    second.begin();
                }
            }
        }
        assert!(first.place().episodes > 2);
        let beyond = Place { actions: vec![1; 3], ..Place::default() };
        assert!(!second.restore(beyond));
    }
}
