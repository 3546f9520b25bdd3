//! The agent: one small network that scores every size, and one that values the situation.
//!
//! ```text
//!   11 -> 32 tanh -> 16 tanh -> 1        929 parameters, twice = the paper's 1,858
//!   probability of a size = softmax over the scores of the sizes that are allowed
//!   value of a situation  = mean of the critic over its rows
//! ```

use windfall_core::Seed;
use windfall_rl::categorical::Choice;
use windfall_rl::checkpoint::{Checkpoint, CheckpointError};
use windfall_rl::net::{Activation, Activations, Initial, Mlp, Shape};
use windfall_rl::random::Draw;

use super::candidates::{Candidates, ROWS, WIDTH};

/// Shape of actor and critic.
pub fn shape() -> Shape {
    Shape { inputs: WIDTH, hidden: vec![32, 16], outputs: 1, activation: Activation::Tanh }
}

/// Scores sizes and chooses among them.
#[derive(Clone, Debug)]
pub struct ScoreAgent {
    actor: Mlp,
    rows: Vec<f32>,
    room: Activations,
    choice: Choice,
}

impl ScoreAgent {
    /// One that has learned nothing, with PyTorch's default weights as in the original.
    pub fn new(seed: Seed) -> Self {
        Self::from_actor(Mlp::new(shape(), Initial::PerInput, seed.stream("actor")))
    }

    /// One with this network.
    pub fn from_actor(actor: Mlp) -> Self {
        let room = actor.activations(ROWS);
        Self { actor, rows: Vec::with_capacity(ROWS * WIDTH), room, choice: Choice::new(ROWS) }
    }

    /// The one stored in `checkpoint`.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        let expected = shape();
        if checkpoint.header.network.as_ref() != Some(&expected) {
            return Err(CheckpointError::Mismatch {
                what: "network".into(),
                found: format!("{:?}", checkpoint.header.network),
                expected: format!("{expected:?}"),
            });
        }
        let mut actor = Mlp::new(expected, Initial::PerInput, checkpoint.header.seed);
        checkpoint.take_network("actor", &mut actor)?;
        if actor.parameters().iter().any(|weight| !weight.is_finite()) {
            return Err(CheckpointError::Damaged { reason: "a weight is not a number".into() });
        }
        Ok(Self::from_actor(actor))
    }

    /// The network that scores.
    pub fn actor(&self) -> &Mlp {
        &self.actor
    }

    /// Weighs all sizes; needs at least one that is allowed.
    fn weigh(&mut self, seen: &Candidates) {
        self.rows.clear();
        let count = seen.write_allowed(&mut self.rows);
        self.actor.forward(&self.rows, &mut self.room);
        let room = &self.room;
        seen.weigh((0..count).map(|row| room.output(row)[0]), &mut self.choice);
    }

    /// Draws a size by its probability; returns its place and the logarithm of that probability.
    pub fn draw(&mut self, seen: &Candidates, draw: &mut Draw) -> (usize, f32) {
        self.weigh(seen);
        let place = self.choice.sample(draw);
        (place, self.choice.log_probabilities()[place])
    }

    /// The allowed size with the highest score, the first of equals.
    pub fn best(&mut self, seen: &Candidates) -> usize {
        self.weigh(seen);
        let weight = self.choice.probabilities();
        let allowed = (0..ROWS).filter(|place| seen.allows(*place));
        allowed
            .reduce(|best, place| if weight[place] > weight[best] { place } else { best })
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::bits;
    use super::*;

    fn seen() -> Candidates {
        Candidates {
            shared: [0.5; 9],
            cpu: std::array::from_fn(|level| level as f32),
            memory: std::array::from_fn(|level| level as f32),
            cpu_allowed: bits(3, 7),
            memory_allowed: bits(1, 4),
        }
    }

    #[test]
    fn both_networks_together_have_the_published_number_of_parameters() {
        let network = Mlp::new(shape(), Initial::PerInput, Seed::new(1));
        let parameters = |layer: usize| {
            let (inputs, outputs) = network.layer_shape(layer);
            inputs * outputs + outputs
        };
        assert_eq!(2 * (0..network.depth()).map(parameters).sum::<usize>(), 1858);
    }

    #[test]
    fn only_what_is_allowed_is_chosen() {
        let mut agent = ScoreAgent::new(Seed::new(3));
        let mut draw = Draw::new(Seed::new(4));
        for _ in 0..200 {
            let (place, log) = agent.draw(&seen(), &mut draw);
            assert!(seen().allows(place) && log <= 0.0);
        }
        assert!(seen().allows(agent.best(&seen())));
    }
}
