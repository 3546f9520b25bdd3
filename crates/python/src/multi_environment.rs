//! `windfall/MultiScaling-v0` and `-v1` stepped from Python: every function has an agent.

use std::sync::Mutex;

use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use windfall_core::Seed;
use windfall_gym::multi::{AgentStep, FEATURES, MultiScaling, MultiSettings};
use windfall_gym::{SharedScaling, SharedSettings};

use crate::arrays;
use crate::environment::Episodes;
use crate::faults::{closed, guarded, only_user};

const WHAT: &str = "this environment";

/// Agents that share nodes; `windfall.multi.MultiScaling` puts PettingZoo's class around it.
#[pyclass(frozen, module = "windfall._native")]
pub(crate) struct MultiEnvironment {
    actions: Vec<String>,
    state: Mutex<Option<State>>,
}

/// Both versions take the same steps.
enum World {
    Sized(Box<MultiScaling>),
    Shared(Box<SharedScaling>),
}

impl World {
    fn reset(&mut self, seed: Seed) {
        match self {
            Self::Sized(world) => world.reset(seed),
            Self::Shared(world) => world.reset(seed),
        }
    }

    fn agents(&self) -> usize {
        match self {
            Self::Sized(world) => world.agents(),
            Self::Shared(world) => world.agents(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Sized(world) => world.is_over(),
            Self::Shared(world) => world.is_over(),
        }
    }

    fn step(&mut self, chosen: &[Option<usize>]) -> &[AgentStep] {
        match self {
            Self::Sized(world) => world.step(chosen),
            Self::Shared(world) => world.step(chosen),
        }
    }

    fn write(&self, agent: usize, row: &mut [f32], mask: &mut [bool]) {
        match self {
            Self::Sized(world) => {
                world.write_row(agent, row);
                world.write_mask(agent, mask);
            }
            Self::Shared(world) => {
                world.write_row(agent, row);
                world.write_mask(agent, mask);
            }
        }
    }
}

struct State {
    environment: World,
    episodes: Episodes,
    is_running: bool,
}

/// One number per agent.
type Column<'py, T> = Bound<'py, PyArray1<T>>;

/// Observations and masks of all agents.
type Seen<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<bool>>);

#[pymethods]
impl MultiEnvironment {
    #[new]
    #[pyo3(signature = (functions = 5, split = "training", load = 0.6, ticks = 200, world_seed = 0, version = 0))]
    fn new(
        functions: usize,
        split: &str,
        load: f64,
        ticks: u64,
        world_seed: u64,
        version: u32,
    ) -> PyResult<Self> {
        if !(1..=1000).contains(&functions) {
            return Err(PyValueError::new_err(format!(
                "functions is {functions}, allowed is 1 to 1000"
            )));
        }
        if !(0.01..=10.0).contains(&load) {
            return Err(PyValueError::new_err(format!("load is {load}, allowed is 0.01 to 10")));
        }
        if ticks == 0 {
            return Err(PyValueError::new_err("ticks is 0, allowed is 1 or more"));
        }
        let (split, seed) = (arrays::split(split)?, Seed::new(world_seed));
        let (environment, actions) = match version {
            0 => {
                let usual = MultiSettings::new(functions, seed);
                let settings = MultiSettings { split, load, ticks, ..usual };
                let actions = settings.moves.names();
                let world = guarded("MultiScaling", || MultiScaling::new(settings, seed))?;
                (World::Sized(Box::new(world)), actions)
            }
            1 => {
                let usual = SharedSettings::new(functions, seed);
                let settings = SharedSettings { split, load, ticks, ..usual };
                let actions = settings.moves.names();
                let world = guarded("MultiScaling", || SharedScaling::new(settings, seed))?;
                (World::Shared(Box::new(world)), actions)
            }
            other => {
                return Err(PyValueError::new_err(format!(
                    "version is {other}, allowed is 0 (nodes as the functions need) or 1 (fixed nodes)"
                )));
            }
        };
        let state = State { environment, episodes: Episodes::new(0), is_running: false };
        Ok(Self { actions, state: Mutex::new(Some(state)) })
    }

    /// Names of the numbers that an agent sees.
    #[getter]
    fn features(&self) -> Vec<&'static str> {
        FEATURES.to_vec()
    }

    /// Names of the moves.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.actions.clone()
    }

    /// Starts an episode: of `seed`, or the next after the last seed that was given.
    #[pyo3(signature = (seed = None))]
    fn reset<'py>(&self, py: Python<'py>, seed: Option<u64>) -> PyResult<Seen<'py>> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        state.episodes = seed.map_or(state.episodes, Episodes::new);
        state.is_running = false;
        let seed = state.episodes.next();
        let environment = &mut state.environment;
        py.detach(|| guarded("reset", || environment.reset(seed)))?;
        state.is_running = true;
        Ok(self.seen(py, state))
    }

    /// Every agent moves: observations, masks, rewards, whose move was not allowed (it held), whether the episode
    /// is over.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<(Seen<'py>, Column<'py, f64>, Column<'py, bool>, bool)> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        let actions = actions.as_array().to_vec();
        arrays::check_actions(&actions, state.environment.agents(), self.actions.len())?;
        if !state.is_running {
            return Err(PyRuntimeError::new_err("no episode is running: call reset() first"));
        }
        let chosen: Vec<Option<usize>> = actions.iter().map(|it| Some(*it as usize)).collect();
        state.is_running = false;
        let environment = &mut state.environment;
        let (rewards, illegal): (Vec<f64>, Vec<bool>) = py.detach(|| {
            guarded("step", || {
                let steps = environment.step(&chosen).iter();
                steps.map(|step| (step.paid.total(), step.is_illegal)).unzip()
            })
        })?;
        let is_over = state.environment.is_over();
        state.is_running = !is_over;
        let rewards = PyArray1::from_vec(py, rewards);
        Ok((self.seen(py, state), rewards, PyArray1::from_vec(py, illegal), is_over))
    }

    /// Frees everything; twice is as good as once.
    fn close(&self) -> PyResult<()> {
        *only_user(&self.state, WHAT)? = None;
        Ok(())
    }
}

impl MultiEnvironment {
    fn seen<'py>(&self, py: Python<'py>, state: &State) -> Seen<'py> {
        let agents = state.environment.agents();
        let mut rows = Array2::<f32>::zeros([agents, FEATURES.len()]);
        let mut masks = Array2::from_elem([agents, self.actions.len()], false);
        for agent in 0..agents {
            let (mut row, mut mask) = (rows.row_mut(agent), masks.row_mut(agent));
            if let (Some(row), Some(mask)) = (row.as_slice_mut(), mask.as_slice_mut()) {
                state.environment.write(agent, row, mask);
            }
        }
        (PyArray2::from_owned_array(py, rows), PyArray2::from_owned_array(py, masks))
    }
}
