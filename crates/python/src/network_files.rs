//! Networks that were trained elsewhere, as checkpoints of ours.

use std::path::PathBuf;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use windfall_core::Seed;
use windfall_rl::checkpoint::{FORMAT, Header, Tensor};
use windfall_rl::net::{Activation, Shape};
use windfall_rl::{Checkpoint, Kind};
use windfall_studies::environments;

use crate::faults::refused;
use crate::policy::explained;

/// One dense layer: a weight of `outputs x inputs` and a bias.
type Layer<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>);

/// What observations are normalised by: mean and variance of so many; a count of 0 is no normalisation.
type Normalisation = (Vec<f64>, Vec<f64>, f64);

/// Writes the checkpoint of a policy network of the environment `id`.
#[pyfunction]
pub(crate) fn save_network(
    path: PathBuf,
    id: &str,
    algorithm: &str,
    activation: &str,
    layers: Vec<Layer<'_>>,
    normalisation: Normalisation,
    steps: u64,
) -> PyResult<()> {
    let entry = environments::find(id).map_err(refused)?;
    let spec = entry.spec();
    let kind = Kind::from_name(algorithm).ok_or_else(|| {
        PyValueError::new_err(format!(
            "algorithm is {algorithm:?}, allowed is \"ppo\", \"dqn\" or \"reinforce\""
        ))
    })?;
    let shape = shape_of(&layers, spec.features.len(), activation)?;
    let mut settings = serde_json::to_value(entry.settings(kind, 1)).map_err(refused)?;
    // It was trained without masks and is evaluated without them.
    settings["masks"] = false.into();
    let width = shape.inputs;
    let mut checkpoint = Checkpoint::new(Header {
        format: FORMAT.to_owned(),
        algorithm: algorithm.to_owned(),
        environment: spec,
        network: Some(shape),
        seed: Seed::new(0),
        iteration: 0,
        steps,
        settings,
    });
    for (place, (weight, bias)) in layers.iter().enumerate() {
        let (weight, bias) = (weight.as_array(), bias.as_array());
        let (shape, numbers) = (weight.shape().to_vec(), weight.iter().copied().collect());
        checkpoint.put(&format!("actor.{place}.weight"), Tensor::F32(shape, numbers));
        let bias = Tensor::F32(vec![bias.len()], bias.to_vec());
        checkpoint.put(&format!("actor.{place}.bias"), bias);
    }
    put_normalisation(&mut checkpoint, normalisation, width)?;
    // Refuses shapes that do not fit before anything is written.
    checkpoint.policy().map_err(|error| explained(&path, &error))?;
    checkpoint.save(&path).map_err(|error| explained(&path, &error))
}

fn shape_of(layers: &[Layer<'_>], inputs: usize, activation: &str) -> PyResult<Shape> {
    let activation = match activation {
        "tanh" => Activation::Tanh,
        "relu" => Activation::Relu,
        other => {
            return Err(PyValueError::new_err(format!(
                "the activation is {other:?}, allowed is \"tanh\" or \"relu\""
            )));
        }
    };
    let Some(((last, _), before)) = layers.split_last() else {
        return Err(PyValueError::new_err("the network has no layer"));
    };
    Ok(Shape {
        inputs,
        hidden: before.iter().map(|(weight, _)| weight.as_array().nrows()).collect(),
        outputs: last.as_array().nrows(),
        activation,
    })
}

fn put_normalisation(
    checkpoint: &mut Checkpoint,
    (mean, variance, count): Normalisation,
    width: usize,
) -> PyResult<()> {
    if mean.len() != width || variance.len() != width {
        return Err(PyValueError::new_err(format!(
            "mean and variance have {} and {} numbers, expected {width}",
            mean.len(),
            variance.len()
        )));
    }
    let is_normalised = count > 0.0;
    let mean = if is_normalised { mean } else { vec![0.0; width] };
    let spread = variance.iter().map(|it| if is_normalised { it * count } else { 1.0 }).collect();
    checkpoint.put("observations.count", Tensor::F64(vec![count.max(1.0)]));
    checkpoint.put("observations.mean", Tensor::F64(mean));
    checkpoint.put("observations.spread", Tensor::F64(spread));
    Ok(())
}
