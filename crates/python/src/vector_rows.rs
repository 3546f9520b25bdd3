//! Where the results of many environments are written: one row of every array for each.
//!
//! ```text
//!   copy=False   Arrays   NumPy's memory, written in place; every step returns the same objects
//!   copy=True    Kept     our memory, written in place; every step returns arrays made of it, one copy each
//! ```
//!
//! Kept rows need no agreement with NumPy about who writes where, but a copy; for 256 tables the two cost about the
//! same.

use numpy::ndarray::ArrayView2;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadwriteArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::faults::refused;

/// How many environments, what each shows and what it accepts.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    pub(crate) features: usize,
    pub(crate) actions: usize,
}

/// The rows of one environment in all arrays.
pub(crate) struct Rows<'a> {
    pub(crate) observation: &'a mut [f32],
    pub(crate) final_observation: &'a mut [f32],
    pub(crate) mask: &'a mut [bool],
    pub(crate) reward: &'a mut f64,
    pub(crate) terminated: &'a mut bool,
    pub(crate) truncated: &'a mut bool,
}

/// Some rows of all arrays.
pub(crate) struct Lines<'a> {
    observations: &'a mut [f32],
    finals: &'a mut [f32],
    masks: &'a mut [bool],
    rewards: &'a mut [f64],
    terminated: &'a mut [bool],
    truncated: &'a mut [bool],
}

impl<'a> Lines<'a> {
    #[inline]
    pub(crate) fn for_each(self, shape: Shape, mut work: impl FnMut(usize, Rows<'_>)) {
        let observations = self.observations.chunks_exact_mut(shape.features);
        let finals = self.finals.chunks_exact_mut(shape.features);
        let rows = observations.zip(finals).zip(self.masks.chunks_exact_mut(shape.actions));
        let ends = self.rewards.iter_mut().zip(self.terminated).zip(self.truncated);
        for (
            place,
            (((observation, final_observation), mask), ((reward, terminated), truncated)),
        ) in rows.zip(ends).enumerate()
        {
            let rows = Rows { observation, final_observation, mask, reward, terminated, truncated };
            work(place, rows);
        }
    }

    /// The same in parts of `rows` rows; the last may be shorter.
    pub(crate) fn parts(self, rows: usize, shape: Shape) -> Vec<Lines<'a>> {
        let observations = self.observations.chunks_mut(rows * shape.features);
        let finals = self.finals.chunks_mut(rows * shape.features);
        let masks = self.masks.chunks_mut(rows * shape.actions);
        let ends = self.terminated.chunks_mut(rows).zip(self.truncated.chunks_mut(rows));
        let ends = self.rewards.chunks_mut(rows).zip(ends);
        let all = observations.zip(finals).zip(masks).zip(ends);
        all.map(|(((observations, finals), masks), (rewards, (terminated, truncated)))| Lines {
            observations,
            finals,
            masks,
            rewards,
            terminated,
            truncated,
        })
        .collect()
    }
}

/// What a step returns: observations, rewards, terminated, truncated, masks as the numbers that `Discrete.sample`
/// takes.
pub(crate) type Returned<'py> = (
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyAny>,
);

/// Rows in our own memory.
#[derive(Default)]
pub(crate) struct Kept {
    observations: Vec<f32>,
    finals: Vec<f32>,
    masks: Vec<bool>,
    numbers: Vec<i8>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl Kept {
    pub(crate) fn new(Shape { count, features, actions }: Shape) -> Self {
        Self {
            observations: vec![0.0; count * features],
            finals: vec![0.0; count * features],
            masks: vec![false; count * actions],
            numbers: vec![0; count * actions],
            rewards: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
        }
    }

    pub(crate) fn lines(&mut self) -> Lines<'_> {
        Lines {
            observations: &mut self.observations,
            finals: &mut self.finals,
            masks: &mut self.masks,
            rewards: &mut self.rewards,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
        }
    }

    /// Arrays of what was written.
    pub(crate) fn returned<'py>(
        &mut self,
        py: Python<'py>,
        shape: Shape,
    ) -> PyResult<Returned<'py>> {
        let Shape { count, features, actions } = shape;
        for (number, allowed) in self.numbers.iter_mut().zip(&self.masks) {
            *number = i8::from(*allowed);
        }
        Ok((
            table(py, &self.observations, (count, features))?,
            PyArray1::from_slice(py, &self.rewards),
            PyArray1::from_slice(py, &self.terminated),
            PyArray1::from_slice(py, &self.truncated),
            table(py, &self.numbers, (count, actions))?.into_any(),
        ))
    }

    /// Last observations of episodes that ended.
    pub(crate) fn finals<'py>(
        &self,
        py: Python<'py>,
        shape: Shape,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        table(py, &self.finals, (shape.count, shape.features))
    }
}

fn table<'py, T: Element + Clone>(
    py: Python<'py>,
    numbers: &[T],
    shape: (usize, usize),
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let view = ArrayView2::from_shape(shape, numbers).map_err(refused)?;
    Ok(PyArray2::from_array(py, &view))
}

/// Rows in NumPy's memory, made once.
pub(crate) struct Arrays {
    observations: Py<PyArray2<f32>>,
    pub(crate) finals: Py<PyArray2<f32>>,
    masks: Py<PyArray2<bool>>,
    /// The bytes of the masks, as numbers.
    numbers: Py<PyAny>,
    rewards: Py<PyArray1<f64>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
}

impl Arrays {
    pub(crate) fn new(py: Python<'_>, Shape { count, features, actions }: Shape) -> PyResult<Self> {
        let masks = PyArray2::<bool>::zeros(py, [count, actions], false);
        Ok(Self {
            observations: PyArray2::zeros(py, [count, features], false).unbind(),
            finals: PyArray2::zeros(py, [count, features], false).unbind(),
            numbers: masks.call_method1("view", ("int8",))?.unbind(),
            masks: masks.unbind(),
            rewards: PyArray1::zeros(py, count, false).unbind(),
            terminated: PyArray1::zeros(py, count, false).unbind(),
            truncated: PyArray1::zeros(py, count, false).unbind(),
        })
    }

    /// Hands the rows to `work`; refused if somebody else writes them.
    pub(crate) fn with_lines<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Lines<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut observations = writable(self.observations.bind(py))?;
        let mut finals = writable(self.finals.bind(py))?;
        let mut masks = writable(self.masks.bind(py))?;
        let mut rewards = writable(self.rewards.bind(py))?;
        let mut terminated = writable(self.terminated.bind(py))?;
        let mut truncated = writable(self.truncated.bind(py))?;
        work(Lines {
            observations: observations.as_slice_mut().map_err(refused)?,
            finals: finals.as_slice_mut().map_err(refused)?,
            masks: masks.as_slice_mut().map_err(refused)?,
            rewards: rewards.as_slice_mut().map_err(refused)?,
            terminated: terminated.as_slice_mut().map_err(refused)?,
            truncated: truncated.as_slice_mut().map_err(refused)?,
        })
    }

    /// The arrays themselves.
    pub(crate) fn returned<'py>(&self, py: Python<'py>) -> Returned<'py> {
        (
            self.observations.bind(py).clone(),
            self.rewards.bind(py).clone(),
            self.terminated.bind(py).clone(),
            self.truncated.bind(py).clone(),
            self.numbers.bind(py).clone(),
        )
    }
}

fn writable<'py, T: Element, D: numpy::ndarray::Dimension>(
    array: &Bound<'py, numpy::PyArray<T, D>>,
) -> PyResult<PyReadwriteArray<'py, T, D>> {
    array
        .try_readwrite()
        .map_err(|_| PyRuntimeError::new_err("an array of this vector is in use elsewhere"))
}
