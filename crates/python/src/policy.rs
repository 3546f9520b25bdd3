//! A checkpoint that decides in an environment.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windfall_rl::checkpoint::Tensor;
use windfall_rl::{Checkpoint, CheckpointError, Decide, NetworkPolicy};

use crate::faults::{guarded, only_user, refused};

const WHAT: &str = "this policy";

/// A trained policy of an environment; `windfall.load_policy` returns it.
#[pyclass(frozen, module = "windfall._native")]
pub(crate) struct Policy {
    checkpoint: Checkpoint,
    decider: Mutex<Decider>,
    features: usize,
    actions: usize,
}

enum Decider {
    Network(Box<NetworkPolicy>),
    Table(Box<dyn Decide>),
}

pub(crate) fn explained(path: &std::path::Path, error: &CheckpointError) -> PyErr {
    refused(format!("{}: {error}; {}", path.display(), error.hint()))
}

#[pymethods]
impl Policy {
    /// Reads a checkpoint.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let opened = Checkpoint::open(&path);
        let checkpoint = opened.map_err(|error| explained(&path, &error))?;
        let decider = if checkpoint.header.network.is_some() {
            checkpoint.policy().map(|network| Decider::Network(Box::new(network)))
        } else {
            checkpoint.decider().map(Decider::Table)
        };
        let decider = decider.map_err(|error| explained(&path, &error))?;
        let spec = &checkpoint.header.environment;
        let (features, actions) = (spec.features.len(), spec.actions.len());
        Ok(Self { checkpoint, decider: Mutex::new(decider), features, actions })
    }

    /// What the file says about itself, as JSON.
    fn header_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.checkpoint.header).map_err(refused)
    }

    /// Whether it was trained with the mask of allowed actions.
    #[getter]
    fn masks(&self) -> bool {
        self.checkpoint.header.masks()
    }

    /// Everything in the file, by name; weights are `outputs x inputs`.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (name, tensor) in &self.checkpoint.tensors {
            match tensor {
                Tensor::F32(shape, data) => {
                    let flat = PyArray1::from_slice(py, data);
                    tensors.set_item(name, flat.reshape(shape.clone())?)?;
                }
                Tensor::F64(data) => tensors.set_item(name, PyArray1::from_slice(py, data))?,
                Tensor::I64(data) => tensors.set_item(name, PyArray1::from_slice(py, data))?,
            }
        }
        Ok(tensors)
    }

    /// One action for each row; `masks` leaves actions out.
    #[pyo3(signature = (rows, masks = None))]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f32>,
        masks: Option<PyReadonlyArray2<'py, bool>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let rows = self.checked_rows(&rows)?;
        let count = rows.len() / self.features;
        let masks = match &masks {
            None => vec![true; count * self.actions],
            Some(masks) => masks.as_array().iter().copied().collect(),
        };
        if masks.len() != count * self.actions {
            return Err(PyValueError::new_err(format!(
                "the masks have {} values, expected {count} rows of {}",
                masks.len(),
                self.actions
            )));
        }
        if let Some(row) = masks.chunks_exact(self.actions).position(|row| !row.contains(&true)) {
            return Err(PyValueError::new_err(format!("the mask of row {row} allows no action")));
        }
        let mut decider = only_user(&self.decider, WHAT)?;
        let decider = &mut *decider;
        let chosen: Vec<i64> = py.detach(|| {
            guarded("decide", || {
                let masks = masks.chunks_exact(self.actions);
                let decide = |(row, mask): (&[f32], &[bool])| match decider {
                    Decider::Network(network) => network.decide(row, mask) as i64,
                    Decider::Table(table) => table.decide(row, mask) as i64,
                };
                rows.chunks_exact(self.features).zip(masks).map(decide).collect()
            })
        })?;
        Ok(PyArray1::from_vec(py, chosen))
    }

    /// One number per action and row; the largest is chosen. Only networks have them.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let rows = self.checked_rows(&rows)?;
        let mut decider = only_user(&self.decider, WHAT)?;
        let Decider::Network(network) = &mut *decider else {
            return Err(PyValueError::new_err("this policy is a table and has no scores"));
        };
        let scores: Vec<Vec<f32>> =
            rows.chunks_exact(self.features).map(|row| network.scores(row).to_vec()).collect();
        PyArray2::from_vec2(py, &scores).map_err(refused)
    }
}

impl Policy {
    fn checked_rows(&self, rows: &PyReadonlyArray2<'_, f32>) -> PyResult<Vec<f32>> {
        let array = rows.as_array();
        if array.ncols() != self.features {
            return Err(PyValueError::new_err(format!(
                "observations have {} numbers, expected {}",
                array.ncols(),
                self.features
            )));
        }
        let rows: Vec<f32> = array.iter().copied().collect();
        match rows.iter().position(|number| number.is_nan()) {
            None => Ok(rows),
            Some(place) => Err(PyValueError::new_err(format!(
                "number {} of observation {} is NaN",
                place % self.features,
                place / self.features
            ))),
        }
    }
}
