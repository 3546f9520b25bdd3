//! Tabular Q-learning (Watkins, 1989).
//!
//! ```text
//! each step: act by epsilon-greedy on Q, then
//!   Q(s, a) += rate (r + discount max_a' Q(s', a') - Q(s, a))     without the max if the task ended
//! ```
//!
//! States are cells of a grid over the features; cells appear in the table when they are first seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use crate::categorical::best;
use crate::checkpoint::{Checkpoint, CheckpointError, Header, Tensor};
use crate::env::{End, Environment};
use crate::learner::{IterationReport, Learner, Tally};
use crate::player::Player;
use crate::policy::{Decide, Grid, TablePolicy};
use crate::random::Draw;
use crate::schedule::Schedule;

const NAME: &str = "q-learning";

/// Settings of [`QLearning`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QLearningSettings {
    /// Iterations of the whole training; schedules end with it.
    pub iterations: u64,
    /// Environment steps per iteration.
    pub steps: usize,
    /// What a reward one step later is worth.
    pub discount: f32,
    /// Probability of a random action.
    pub epsilon: Schedule,
    /// Learning rate.
    pub learning_rate: Schedule,
    /// Value of what has not been tried; a high one makes the learner curious.
    pub initial: f32,
    /// Forbidden actions are neither explored nor valued.
    pub masks: bool,
    /// Levels of each feature, its ends included; 1 ignores the feature.
    pub levels: Vec<u32>,
}

/// Q-learning at work in one environment.
#[derive(Debug)]
pub struct QLearning<E> {
    settings: QLearningSettings,
    seed: Seed,
    table: TablePolicy,
    player: Player<E>,
    iteration: u64,
    steps: u64,
}

impl<E: Environment> QLearning<E> {
    /// Starts training.
    ///
    /// # Panics
    ///
    /// If there is not one number of levels per feature.
    pub fn new(settings: QLearningSettings, environment: E, seed: Seed) -> Self {
        let features = environment.spec().features.len();
        assert_eq!(settings.levels.len(), features, "one number of levels per feature");
        let grid = Grid::new(environment.spec(), &settings.levels);
        Self {
            table: TablePolicy { grid, values: BTreeMap::new() },
            player: Player::new(environment, seed.stream("episodes").member(0)),
            iteration: 0,
            steps: 0,
            settings,
            seed,
        }
    }

    /// Goes on from a checkpoint.
    pub fn resume(checkpoint: &Checkpoint, environment: E) -> Result<Self, CheckpointError> {
        let header = &checkpoint.header;
        let settings: QLearningSettings = header.settings_for(NAME, environment.spec())?;
        let actions = environment.spec().actions.len();
        let mut own = Self::new(settings, environment, header.seed);
        (own.iteration, own.steps) = (header.iteration, header.steps);
        checkpoint.take_player(0, &mut own.player)?;
        let cells = checkpoint.integers("table.cells")?;
        let values = checkpoint.floats("table.values", &[cells.len(), actions])?;
        let rows = cells.iter().zip(values.chunks_exact(actions));
        own.table.values = rows.map(|(cell, row)| (cell.cast_unsigned(), row.to_vec())).collect();
        Ok(own)
    }

    /// The values of all states seen so far.
    pub fn table(&self) -> &TablePolicy {
        &self.table
    }

    fn values(&mut self, cell: u64) -> &mut Vec<f32> {
        let (actions, initial) = (self.player.allowed().len(), self.settings.initial);
        self.table.values.entry(cell).or_insert_with(|| vec![initial; actions])
    }

    fn allowed(&self) -> Vec<bool> {
        let masks = self.settings.masks;
        self.player.allowed().iter().map(|allowed| *allowed || !masks).collect()
    }

    fn act(&mut self, epsilon: f32, rate: f32, draw: &mut Draw, tally: &mut Tally) {
        let allowed = self.allowed();
        let cell = self.table.grid.cell(self.player.observation());
        tally.rows(self.player.observation());
        let action = if draw.unit_f32() < epsilon {
            draw.among(&allowed)
        } else {
            best(self.values(cell), &allowed)
        };
        let step = self.player.act(action);
        let next = match step.end {
            End::Terminated => 0.0,
            End::Continues | End::Truncated => {
                let allowed = self.allowed();
                let cell = self.table.grid.cell(self.player.observation());
                let values = self.values(cell);
                values[best(values, &allowed)]
            }
        };
        let target = step.reward + self.settings.discount * next;
        let value = &mut self.values(cell)[action];
        *value += rate * (target - *value);
        if step.end.is_over() {
            tally.episode(self.player.total());
            self.player.begin();
        }
        self.steps += 1;
    }
}

impl<E: Environment> Learner for QLearning<E> {
    fn iterate(&mut self) -> IterationReport {
        let (done, all) = (self.iteration, self.settings.iterations);
        let epsilon = self.settings.epsilon.at(done, all);
        let rate = self.settings.learning_rate.at(done, all);
        let mut draw = Draw::new(self.seed.stream("actions").member(done));
        let mut tally = Tally::new(self.player.observation().len());
        for _ in 0..self.settings.steps {
            self.act(epsilon, rate, &mut draw, &mut tally);
        }
        #[expect(clippy::cast_precision_loss, reason = "tables are small")]
        tally.metric("cells", self.table.values.len() as f64);
        tally.metric("epsilon", epsilon);
        tally.metric("learning_rate", rate);
        self.iteration += 1;
        tally.report(self.iteration, self.steps)
    }

    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn policy(&self) -> Box<dyn Decide> {
        Box::new(self.table.clone())
    }

    fn checkpoint(&self) -> Checkpoint {
        let spec = self.player.environment().spec();
        let done = (self.iteration, self.steps);
        let header = Header::new(NAME, spec, None, self.seed, done);
        let mut checkpoint = Checkpoint::new(header.with_settings(&self.settings));
        checkpoint.put_player(0, &self.player);
        let values = &self.table.values;
        let cells = values.keys().map(|cell| cell.cast_signed()).collect();
        checkpoint.put("table.cells", Tensor::I64(cells));
        let shape = vec![values.len(), self.player.allowed().len()];
        let flat = values.values().flatten().copied().collect();
        checkpoint.put("table.values", Tensor::F32(shape, flat));
        checkpoint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::evaluate;
    use crate::toy::Corridor;

    fn learner() -> QLearning<Corridor> {
        let settings = QLearningSettings {
            iterations: 20,
            steps: 100,
            discount: 0.9,
            epsilon: Schedule::constant(0.5),
            learning_rate: Schedule::constant(0.5),
            initial: 0.0,
            masks: true,
            levels: vec![5],
        };
        QLearning::new(settings, Corridor::new(), Seed::new(1))
    }

    #[test]
    fn the_corridor_is_learned_with_its_exact_values() {
        let mut learner = learner();
        (0..20).for_each(|_| drop(learner.iterate()));
        let totals =
            evaluate(&mut [Corridor::new()], learner.policy().as_mut(), true, Seed::new(1));
        assert!((totals[0] - 0.98).abs() < 1e-6);
        // One step from the end: 0.99. Two steps: -0.01 + 0.9 * 0.99.
        assert!((learner.values(3)[1] - 0.99).abs() < 1e-4);
        assert!((learner.values(2)[1] - 0.881).abs() < 1e-4);
    }

    #[test]
    fn resuming_equals_going_on() {
        let mut whole = learner();
        (0..2).for_each(|_| drop(whole.iterate()));
        let kept = Checkpoint::from_bytes(&whole.checkpoint().to_bytes().unwrap()).unwrap();
        let mut resumed = QLearning::resume(&kept, Corridor::new()).unwrap();
        for _ in 0..3 {
            assert_eq!(whole.iterate(), resumed.iterate());
        }
        assert_eq!(whole.checkpoint(), resumed.checkpoint());
    }
}
