//! The policy inside a checkpoint, checked before anything is allocated for it.

use super::header::expect;
use super::{Checkpoint, CheckpointError};
use crate::any_learner::AnySettings;
use crate::net::{Initial, Mlp, Shape};
use crate::normalise::Moments;
use crate::policy::{Decide, Grid, NetworkPolicy, TablePolicy};

impl Checkpoint {
    /// The network in it, ready to decide.
    pub fn policy(&self) -> Result<NetworkPolicy, CheckpointError> {
        let shape = self.header.network.clone();
        let shape = shape.ok_or_else(|| CheckpointError::Mismatch {
            what: "policy".to_owned(),
            found: "a table".to_owned(),
            expected: "a network".to_owned(),
        })?;
        let spec = &self.header.environment;
        let count = |what, found: usize, expected: usize| {
            expect(what, &found.to_string(), &expected.to_string())
        };
        count("number of inputs of the network", shape.inputs, spec.features.len())?;
        count("number of outputs of the network", shape.outputs, spec.actions.len())?;
        let name = self.deciding();
        self.check_weights(name, &shape)?;
        let mut moments = Moments::new(shape.inputs);
        self.take_moments("observations", &mut moments)?;
        let mut network = Mlp::new(shape, Initial::PerInput, self.header.seed);
        self.take_network(name, &mut network)?;
        Ok(NetworkPolicy::new(network, moments.scaling()))
    }

    /// The network or the table in it, ready to decide.
    pub fn decider(&self) -> Result<Box<dyn Decide>, CheckpointError> {
        if self.header.network.is_some() {
            return Ok(Box::new(self.policy()?));
        }
        let settings = self.header.any_settings()?;
        let spec = &self.header.environment;
        let damaged = |reason: String| CheckpointError::Damaged { reason };
        let AnySettings::QLearning(table) = &settings else {
            return Err(damaged(format!("{} without a network", self.header.algorithm)));
        };
        settings.check_for(spec).map_err(|error| damaged(format!("its settings: {error}")))?;
        let actions = spec.actions.len();
        if actions == 0 {
            return Err(damaged("an environment without actions".to_owned()));
        }
        let cells = self.integers("table.cells")?;
        let values = self.floats("table.values", &[cells.len(), actions])?;
        let rows = cells.iter().zip(values.chunks_exact(actions));
        Ok(Box::new(TablePolicy {
            grid: Grid::new(spec, &table.levels),
            values: rows.map(|(cell, row)| (cell.cast_unsigned(), row.to_vec())).collect(),
        }))
    }

    /// The name of the weights that decide: averaged ones if there are some.
    pub(super) fn deciding(&self) -> &'static str {
        if self.tensors.contains_key("averaged.0.weight") { "averaged" } else { "actor" }
    }

    /// Refuses a shape that the weights do not have. What is there bounds what is allocated.
    fn check_weights(&self, name: &str, shape: &Shape) -> Result<(), CheckpointError> {
        let mut inputs = shape.inputs;
        for (index, &outputs) in shape.hidden.iter().chain([&shape.outputs]).enumerate() {
            if inputs == 0 || outputs == 0 {
                return Err(CheckpointError::Damaged {
                    reason: format!("layer {index} of `{name}` is {inputs} x {outputs}"),
                });
            }
            self.floats(&format!("{name}.{index}.weight"), &[outputs, inputs])?;
            self.floats(&format!("{name}.{index}.bias"), &[outputs])?;
            inputs = outputs;
        }
        Ok(())
    }
}
