//! The pieces of a learner, into a checkpoint and out of it.

use super::{Checkpoint, CheckpointError, Tensor};
use crate::env::Environment;
use crate::net::{Adam, Mlp};
use crate::normalise::Moments;
use crate::player::{Place, Player};
use crate::rollout::Track;

impl Checkpoint {
    /// Stores numbers under a name.
    pub fn put(&mut self, name: &str, tensor: Tensor) {
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// Counters stored under a name.
    pub fn integers(&self, name: &str) -> Result<&[i64], CheckpointError> {
        match self.tensors.get(name) {
            Some(Tensor::I64(data)) => Ok(data),
            other => Err(absent(name, "integers", other)),
        }
    }

    /// Statistics stored under a name, `len` of them.
    pub fn doubles(&self, name: &str, len: usize) -> Result<&[f64], CheckpointError> {
        match self.tensors.get(name) {
            Some(Tensor::F64(data)) if data.len() == len => Ok(data),
            other => Err(absent(name, &format!("{len} doubles"), other)),
        }
    }

    /// Numbers stored under a name, of this shape.
    pub fn floats(&self, name: &str, shape: &[usize]) -> Result<&[f32], CheckpointError> {
        match self.tensors.get(name) {
            Some(Tensor::F32(found, data)) if found == shape => Ok(data),
            other => Err(absent(name, &format!("floats of shape {shape:?}"), other)),
        }
    }

    /// Stores a vector laid out like the parameters of `network`, layer by layer.
    fn put_flat(&mut self, prefix: &str, network: &Mlp, flat: &[f32]) {
        for index in 0..network.depth() {
            let (inputs, outputs) = network.layer_shape(index);
            let (weight, bias) = network.layer_of(flat, index);
            self.put(
                &format!("{prefix}.{index}.weight"),
                Tensor::F32(vec![outputs, inputs], weight),
            );
            self.put(&format!("{prefix}.{index}.bias"), Tensor::F32(vec![outputs], bias));
        }
    }

    fn take_flat(
        &self,
        prefix: &str,
        network: &Mlp,
        flat: &mut [f32],
    ) -> Result<(), CheckpointError> {
        for index in 0..network.depth() {
            let (inputs, outputs) = network.layer_shape(index);
            let weight = self.floats(&format!("{prefix}.{index}.weight"), &[outputs, inputs])?;
            let bias = self.floats(&format!("{prefix}.{index}.bias"), &[outputs])?;
            network.set_layer_of(flat, index, weight, bias);
        }
        Ok(())
    }

    /// Stores a network without an optimiser.
    pub fn put_network(&mut self, name: &str, network: &Mlp) {
        self.put_flat(name, network, network.parameters());
    }

    /// Restores a network without an optimiser.
    pub fn take_network(&self, name: &str, network: &mut Mlp) -> Result<(), CheckpointError> {
        let mut flat = network.parameters().to_vec();
        self.take_flat(name, network, &mut flat)?;
        network.parameters_mut().copy_from_slice(&flat);
        Ok(())
    }

    /// Stores a network and its optimiser.
    pub fn put_learning(&mut self, name: &str, network: &Mlp, adam: &Adam) {
        self.put_network(name, network);
        self.put_flat(&format!("adam.mean.{name}"), network, &adam.mean);
        self.put_flat(&format!("adam.square.{name}"), network, &adam.square);
        self.put(&format!("adam.steps.{name}"), Tensor::I64(vec![adam.steps.cast_signed()]));
    }

    /// Restores a network and its optimiser.
    pub fn take_learning(
        &self,
        name: &str,
        network: &mut Mlp,
        adam: &mut Adam,
    ) -> Result<(), CheckpointError> {
        self.take_network(name, network)?;
        self.take_flat(&format!("adam.mean.{name}"), network, &mut adam.mean)?;
        self.take_flat(&format!("adam.square.{name}"), network, &mut adam.square)?;
        let key = format!("adam.steps.{name}");
        adam.steps = single(&key, self.integers(&key)?)?.cast_unsigned();
        Ok(())
    }

    /// Stores running statistics.
    pub fn put_moments(&mut self, name: &str, moments: &Moments) {
        self.put(&format!("{name}.count"), Tensor::F64(vec![moments.count]));
        self.put(&format!("{name}.mean"), Tensor::F64(moments.mean.clone()));
        self.put(&format!("{name}.spread"), Tensor::F64(moments.spread.clone()));
    }

    /// Restores running statistics.
    pub fn take_moments(&self, name: &str, moments: &mut Moments) -> Result<(), CheckpointError> {
        let width = moments.mean.len();
        moments.count = self.doubles(&format!("{name}.count"), 1)?[0];
        moments.mean = self.doubles(&format!("{name}.mean"), width)?.to_vec();
        moments.spread = self.doubles(&format!("{name}.spread"), width)?.to_vec();
        Ok(())
    }

    /// Stores where a player is.
    pub fn put_player<E: Environment>(&mut self, index: usize, player: &Player<E>) {
        let place = player.place();
        let actions = place.actions.iter().map(|action| *action as i64).collect();
        let name = format!("player.{index}");
        self.put(&format!("{name}.episodes"), Tensor::I64(vec![place.episodes.cast_signed()]));
        self.put(&format!("{name}.memory"), Tensor::I64(place.memory.clone()));
        self.put(&format!("{name}.actions"), Tensor::I64(actions));
    }

    /// Stores where the players of all tracks are.
    pub(crate) fn put_players<E: Environment>(&mut self, tracks: &[Track<E>]) {
        for (index, track) in tracks.iter().enumerate() {
            self.put_player(index, &track.player);
        }
    }

    /// Brings the players of all tracks to where they were.
    pub(crate) fn take_players<E: Environment>(
        &self,
        tracks: &mut [Track<E>],
    ) -> Result<(), CheckpointError> {
        let mut all = tracks.iter_mut().enumerate();
        all.try_for_each(|(index, track)| self.take_player(index, &mut track.player))
    }

    /// Brings a player to where it was.
    pub fn take_player<E: Environment>(
        &self,
        index: usize,
        player: &mut Player<E>,
    ) -> Result<(), CheckpointError> {
        let name = format!("player.{index}");
        let key = format!("{name}.episodes");
        let episodes = single(&key, self.integers(&key)?)?.cast_unsigned();
        let memory = self.integers(&format!("{name}.memory"))?.to_vec();
        let count = player.environment().spec().actions.len();
        let action = |action: &i64| usize::try_from(*action).ok().filter(|action| *action < count);
        let key = format!("{name}.actions");
        let actions: Option<Vec<usize>> = self.integers(&key)?.iter().map(action).collect();
        let actions = actions.ok_or_else(|| CheckpointError::Mismatch {
            what: key.clone(),
            found: "an action that does not exist".to_owned(),
            expected: format!("numbers below {count}"),
        })?;
        if player.restore(Place { episodes, memory, actions }) {
            return Ok(());
        }
        Err(CheckpointError::Mismatch {
            what: key,
            found: "actions after the end of the episode".to_owned(),
            expected: "an episode that goes on".to_owned(),
        })
    }
}

fn single(name: &str, data: &[i64]) -> Result<i64, CheckpointError> {
    match data {
        [one] => Ok(*one),
        _ => Err(absent(name, "one integer", None)),
    }
}

fn absent(name: &str, expected: &str, found: Option<&Tensor>) -> CheckpointError {
    let found = match found {
        None => "missing".to_owned(),
        Some(Tensor::F32(shape, _)) => format!("floats of shape {shape:?}"),
        Some(Tensor::F64(data)) => format!("{} doubles", data.len()),
        Some(Tensor::I64(data)) => format!("{} integers", data.len()),
    };
    CheckpointError::Mismatch { what: format!("`{name}`"), found, expected: expected.to_owned() }
}
