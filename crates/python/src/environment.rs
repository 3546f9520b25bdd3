//! One environment, stepped from Python.
//!
//! A step costs about half a microsecond, of which the environment of a table takes a tenth: the rest is building
//! what Gymnasium returns. So nothing is looked up by name twice, and environments that answer within a
//! microsecond keep Python's lock, because letting go of it and taking it again would double their time.

use std::sync::Mutex;

use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use windfall_core::Seed;
use windfall_rl::catalogue::Entry;
use windfall_rl::{End, Environment as _, Step};
use windfall_studies::environments;

use crate::arrays;
use crate::faults::{closed, guarded, only_user, refused};

const WHAT: &str = "this environment";

/// One environment without Gymnasium's class around it; `windfall.envs.Environment` is that.
#[pyclass(frozen, module = "windfall._native")]
pub(crate) struct Environment {
    entry: &'static Entry,
    actions: usize,
    is_quick: bool,
    /// Names in `info` by their place in what the environment reports, and the mask's.
    names: Vec<Py<PyString>>,
    mask_name: Py<PyString>,
    state: Mutex<Option<State>>,
}

struct State {
    environment: Box<dyn windfall_rl::Environment>,
    row: Vec<f32>,
    allowed: Vec<bool>,
    episodes: Episodes,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotBegun,
    Running,
    Over,
}

/// Seeds of episodes: the one that was given, then its first, second, ... member.
#[derive(Clone, Copy)]
pub(crate) struct Episodes {
    seed: Seed,
    since: u64,
}

impl Episodes {
    /// From `seed` on.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: Seed::new(seed), since: 0 }
    }

    /// The seed of the next episode.
    pub(crate) fn next(&mut self) -> Seed {
        let seed = if self.since == 0 { self.seed } else { self.seed.member(self.since) };
        self.since += 1;
        seed
    }
}

/// Whether a step of this environment takes well under a microsecond: the tables of the course and the toys.
pub(crate) fn is_quick(id: &str) -> bool {
    id.starts_with("windfall/Ece471") || id.starts_with("toy/")
}

#[pymethods]
impl Environment {
    #[new]
    #[pyo3(signature = (id, split = "training"))]
    fn new(py: Python<'_>, id: &str, split: &str) -> PyResult<Self> {
        let entry = environments::find(id).map_err(refused)?;
        let split = arrays::split(split)?;
        let environment = guarded(id, || (entry.make)(split))?;
        let spec = environment.spec();
        let (features, actions) = (spec.features.len(), spec.actions.len());
        let names = environment.info();
        let names = names.iter().map(|(name, _)| PyString::intern(py, name).unbind()).collect();
        let state = State {
            environment,
            row: vec![0.0; features],
            allowed: vec![true; actions],
            episodes: Episodes::new(0),
            stage: Stage::NotBegun,
        };
        Ok(Self {
            entry,
            actions,
            is_quick: is_quick(id),
            names,
            mask_name: PyString::intern(py, "action_mask").unbind(),
            state: Mutex::new(Some(state)),
        })
    }

    /// Its description as JSON: id, features with ranges, actions.
    fn spec_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.entry.spec()).map_err(refused)
    }

    /// Starts an episode: of `seed`, or the next after the last seed that was given.
    #[pyo3(signature = (seed = None))]
    fn reset<'py>(&self, py: Python<'py>, seed: Option<u64>) -> PyResult<Bound<'py, PyTuple>> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        if let Some(seed) = seed {
            state.episodes = Episodes::new(seed);
        }
        state.stage = Stage::NotBegun;
        let seed = state.episodes.next();
        let State { environment, row, .. } = &mut *state;
        py.detach(|| guarded("reset", || environment.reset(seed, row)))?;
        state.stage = Stage::Running;
        let observation = PyArray1::from_slice(py, &state.row);
        (observation, self.info(py, state)?).into_pyobject(py)
    }

    /// Acts: observation, reward, terminated, truncated, info.
    fn step<'py>(
        &self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let action = arrays::action(action, self.actions)?;
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        state.check_running()?;
        // If the step panics, what it leaves behind can only be reset.
        state.stage = Stage::NotBegun;
        let State { environment, row, .. } = &mut *state;
        let mut act = || guarded("step", || environment.step(action, row));
        let Step { reward, end } = if self.is_quick { act() } else { py.detach(act) }?;
        state.stage = if end.is_over() { Stage::Over } else { Stage::Running };
        let observation = PyArray1::from_slice(py, &state.row);
        let info = self.info(py, state)?;
        let (terminated, truncated) = (end == End::Terminated, end == End::Truncated);
        (observation, f64::from(reward), terminated, truncated, info).into_pyobject(py)
    }

    /// Which actions make sense now.
    fn action_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        state.environment.mask(&mut state.allowed);
        Ok(PyArray1::from_slice(py, &state.allowed))
    }

    /// Frees everything; twice is as good as once.
    fn close(&self) -> PyResult<()> {
        *only_user(&self.state, WHAT)? = None;
        Ok(())
    }
}

impl State {
    fn check_running(&self) -> PyResult<()> {
        match self.stage {
            Stage::Running => Ok(()),
            Stage::NotBegun => {
                Err(PyRuntimeError::new_err("no episode has begun: call reset() first"))
            }
            Stage::Over => Err(PyRuntimeError::new_err("the episode is over: call reset() first")),
        }
    }
}

impl Environment {
    fn info<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        state.environment.mask(&mut state.allowed);
        let mask = state.allowed.iter().map(|allowed| i8::from(*allowed));
        info.set_item(self.mask_name.bind(py), PyArray1::from_iter(py, mask))?;
        for ((_, value), name) in state.environment.info().into_iter().zip(&self.names) {
            info.set_item(name.bind(py), value)?;
        }
        Ok(info)
    }
}
