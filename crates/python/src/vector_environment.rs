//! Many environments stepped in one call, into NumPy arrays that stay where they are.
//!
//! ```text
//!   actions [N] ─► checked ─► Python's lock is released ─► rows of all arrays, in parallel where it pays ─► taken again
//! ```
//!
//! An environment's rows depend on its own seed and actions alone, so the number of threads cannot be seen in
//! them. The threads belong to the process that made them: a forked child has none and makes its own.

use std::sync::Mutex;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use windfall_rl::{End, Environment as _};
use windfall_studies::environments;

use crate::arrays;
use crate::environment::{Episodes, is_quick};
use crate::faults::{closed, guarded, only_user, refused};

const WHAT: &str = "this vector of environments";

/// When an environment whose episode is over starts the next one; Gymnasium's three ways.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Autoreset {
    NextStep,
    SameStep,
    Disabled,
}

impl Autoreset {
    fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "NextStep" => Ok(Self::NextStep),
            "SameStep" => Ok(Self::SameStep),
            "Disabled" => Ok(Self::Disabled),
            other => Err(PyValueError::new_err(format!(
                "autoreset_mode is {other:?}, allowed is \"NextStep\", \"SameStep\" or \"Disabled\""
            ))),
        }
    }
}

/// `N` environments; `windfall.vector.VectorEnv` puts Gymnasium's class around it.
#[pyclass(frozen, module = "windfall._native")]
pub(crate) struct VectorEnvironment {
    features: usize,
    actions: usize,
    autoreset: Autoreset,
    state: Mutex<Option<State>>,
    arrays: Arrays,
}

/// Where everything is written, made once.
struct Arrays {
    observations: Py<PyArray2<f32>>,
    final_observations: Py<PyArray2<f32>>,
    masks: Py<PyArray2<bool>>,
    rewards: Py<PyArray1<f64>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
}

impl Arrays {
    fn new(py: Python<'_>, count: usize, features: usize, actions: usize) -> Self {
        Self {
            observations: PyArray2::zeros(py, [count, features], false).unbind(),
            final_observations: PyArray2::zeros(py, [count, features], false).unbind(),
            masks: PyArray2::zeros(py, [count, actions], false).unbind(),
            rewards: PyArray1::zeros(py, count, false).unbind(),
            terminated: PyArray1::zeros(py, count, false).unbind(),
            truncated: PyArray1::zeros(py, count, false).unbind(),
        }
    }
}

struct State {
    cells: Vec<Cell>,
    threads: usize,
    pool: Option<Pool>,
    is_begun: bool,
}

/// Threads, and the process that they belong to.
struct Pool {
    threads: rayon::ThreadPool,
    process: u32,
}

/// One environment with its seeds.
struct Cell {
    environment: Box<dyn windfall_rl::Environment>,
    episodes: Episodes,
    is_over: bool,
}

/// The rows of one environment in all arrays.
struct Rows<'a> {
    observation: &'a mut [f32],
    final_observation: &'a mut [f32],
    mask: &'a mut [bool],
    reward: &'a mut f64,
    terminated: &'a mut bool,
    truncated: &'a mut bool,
}

impl Cell {
    fn reset(&mut self, rows: &mut Rows<'_>) {
        self.environment.reset(self.episodes.next(), rows.observation);
        self.is_over = false;
        self.environment.mask(rows.mask);
    }

    #[inline]
    fn step(&mut self, action: i64, autoreset: Autoreset, rows: &mut Rows<'_>) {
        if self.is_over && autoreset == Autoreset::NextStep {
            (*rows.reward, *rows.terminated, *rows.truncated) = (0.0, false, false);
            return self.reset(rows);
        }
        let step = self.environment.step(action as usize, rows.observation);
        *rows.reward = f64::from(step.reward);
        *rows.terminated = step.end == End::Terminated;
        *rows.truncated = step.end == End::Truncated;
        self.is_over = step.end.is_over();
        if self.is_over && autoreset == Autoreset::SameStep {
            rows.final_observation.copy_from_slice(rows.observation);
            return self.reset(rows);
        }
        self.environment.mask(rows.mask);
    }
}

#[pymethods]
impl VectorEnvironment {
    #[new]
    #[pyo3(signature = (id, count, split = "training", autoreset = "NextStep", threads = None))]
    fn new(
        py: Python<'_>,
        id: &str,
        count: usize,
        split: &str,
        autoreset: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let entry = environments::find(id).map_err(refused)?;
        let split = arrays::split(split)?;
        if !(1..=1 << 20).contains(&count) {
            return Err(PyValueError::new_err(format!(
                "num_envs is {count}, allowed is 1 to 1048576"
            )));
        }
        let autoreset = Autoreset::from_name(autoreset)?;
        let make = || Cell {
            environment: (entry.make)(split),
            episodes: Episodes::new(0),
            is_over: false,
        };
        let cells: Vec<Cell> = guarded(id, || (0..count).map(|_| make()).collect())?;
        let spec = cells[0].environment.spec();
        let (features, actions) = (spec.features.len(), spec.actions.len());
        // A step of a table takes 20 ns: 256 of them are done before a second thread has woken up.
        let usual = if is_quick(id) { 1 } else { all_threads().min(count) };
        let threads = threads.unwrap_or(usual).clamp(1, count);
        Ok(Self {
            features,
            actions,
            autoreset,
            arrays: Arrays::new(py, count, features, actions),
            state: Mutex::new(Some(State { cells, threads, pool: None, is_begun: false })),
        })
    }

    /// The arrays that every call writes into.
    #[getter]
    fn observations(&self, py: Python<'_>) -> Py<PyArray2<f32>> {
        self.arrays.observations.clone_ref(py)
    }

    /// Last observations of the episodes that ended in the last step, where resets happen in the same step.
    #[getter]
    fn final_observations(&self, py: Python<'_>) -> Py<PyArray2<f32>> {
        self.arrays.final_observations.clone_ref(py)
    }

    /// Which actions make sense now.
    #[getter]
    fn masks(&self, py: Python<'_>) -> Py<PyArray2<bool>> {
        self.arrays.masks.clone_ref(py)
    }

    /// What the last step paid.
    #[getter]
    fn rewards(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.arrays.rewards.clone_ref(py)
    }

    /// Whose task ended in the last step.
    #[getter]
    fn terminated(&self, py: Python<'_>) -> Py<PyArray1<bool>> {
        self.arrays.terminated.clone_ref(py)
    }

    /// Whose episode was cut off in the last step.
    #[getter]
    fn truncated(&self, py: Python<'_>) -> Py<PyArray1<bool>> {
        self.arrays.truncated.clone_ref(py)
    }

    /// Starts an episode of the environments that `chosen` says, all without it; seeds are given for all or none.
    #[pyo3(signature = (seeds = None, chosen = None))]
    fn reset(
        &self,
        py: Python<'_>,
        seeds: Option<Vec<Option<u64>>>,
        chosen: Option<PyReadonlyArray1<'_, bool>>,
    ) -> PyResult<()> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        let count = state.cells.len();
        let chosen = match &chosen {
            None => vec![true; count],
            Some(mask) => mask.as_slice().map_err(refused)?.to_vec(),
        };
        let seeds = seeds.unwrap_or_else(|| vec![None; count]);
        if (seeds.len(), chosen.len()) != (count, count) {
            return Err(PyValueError::new_err(format!(
                "there are {} seeds and a reset_mask of {}, expected {count} of each",
                seeds.len(),
                chosen.len()
            )));
        }
        if !state.is_begun && chosen.contains(&false) {
            return Err(PyValueError::new_err(
                "reset_mask leaves environments out that were never reset; call reset() without it first",
            ));
        }
        for (cell, seed) in state.cells.iter_mut().zip(seeds) {
            cell.episodes = seed.map_or(cell.episodes, Episodes::new);
        }
        let reset = |cell: &mut Cell, place: usize, rows: &mut Rows<'_>| {
            if chosen[place] {
                (*rows.reward, *rows.terminated, *rows.truncated) = (0.0, false, false);
                cell.reset(rows);
            }
        };
        self.each(py, state, "reset", reset)?;
        state.is_begun = true;
        Ok(())
    }

    /// Steps all environments.
    fn step(&self, py: Python<'_>, actions: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        let mut guard = only_user(&self.state, WHAT)?;
        let state = guard.as_mut().ok_or_else(|| closed(WHAT))?;
        let owned;
        let actions = match actions.as_slice() {
            Ok(actions) => actions,
            // Every second action of a longer array, for instance.
            Err(_) => {
                owned = actions.as_array().to_vec();
                &owned
            }
        };
        arrays::check_actions(actions, state.cells.len(), self.actions)?;
        if !state.is_begun {
            return Err(PyRuntimeError::new_err("no episode has begun: call reset() first"));
        }
        if self.autoreset == Autoreset::Disabled
            && let Some(place) = state.cells.iter().position(|cell| cell.is_over)
        {
            return Err(PyRuntimeError::new_err(format!(
                "the episode of environment {place} is over and autoreset is disabled: call \
                 reset(options={{\"reset_mask\": ...}}) first; nothing was stepped"
            )));
        }
        let autoreset = self.autoreset;
        let step = |cell: &mut Cell, place: usize, rows: &mut Rows<'_>| {
            cell.step(actions[place], autoreset, rows);
        };
        self.each(py, state, "step", step)
    }

    /// Frees everything; twice is as good as once.
    fn close(&self) -> PyResult<()> {
        *only_user(&self.state, WHAT)? = None;
        Ok(())
    }
}

impl VectorEnvironment {
    /// Does `work` for every environment and its rows, without Python's lock.
    fn each<F>(&self, py: Python<'_>, state: &mut State, what: &str, work: F) -> PyResult<()>
    where
        F: Fn(&mut Cell, usize, &mut Rows<'_>) + Sync + Send,
    {
        let Arrays { observations, final_observations, masks, rewards, terminated, truncated } =
            &self.arrays;
        let in_use = |_| PyRuntimeError::new_err("an array of this vector is in use elsewhere");
        let mut observations = observations.bind(py).try_readwrite().map_err(in_use)?;
        let mut finals = final_observations.bind(py).try_readwrite().map_err(in_use)?;
        let mut masks = masks.bind(py).try_readwrite().map_err(in_use)?;
        let mut rewards = rewards.bind(py).try_readwrite().map_err(in_use)?;
        let mut terminated = terminated.bind(py).try_readwrite().map_err(in_use)?;
        let mut truncated = truncated.bind(py).try_readwrite().map_err(in_use)?;
        let observations = observations.as_slice_mut().map_err(refused)?;
        let finals = finals.as_slice_mut().map_err(refused)?;
        let masks = masks.as_slice_mut().map_err(refused)?;
        let rewards = rewards.as_slice_mut().map_err(refused)?;
        let terminated = terminated.as_slice_mut().map_err(refused)?;
        let truncated = truncated.as_slice_mut().map_err(refused)?;
        let (features, actions) = (self.features, self.actions);
        let threads = state.threads;
        if threads > 1 {
            state.wake_threads()?;
        }
        let State { cells, pool, .. } = state;
        let serial = |cells: &mut [Cell], first: usize, lines: Lines<'_>| {
            lines.for_each(features, actions, |place, mut rows| {
                work(&mut cells[place], first + place, &mut rows);
            });
        };
        let lines = Lines { observations, finals, masks, rewards, terminated, truncated };
        py.detach(|| {
            guarded(what, || match pool.as_ref().filter(|_| threads > 1) {
                None => serial(cells, 0, lines),
                Some(pool) => {
                    let chunk = cells.len().div_ceil(threads);
                    let parts = lines.parts(chunk, features, actions);
                    pool.threads.install(|| {
                        let chunks = cells.par_chunks_mut(chunk).zip(parts).enumerate();
                        chunks.for_each(|(place, (cells, lines))| {
                            serial(cells, place * chunk, lines);
                        });
                    });
                }
            })
        })
    }
}

impl State {
    /// Makes the threads, in a forked child anew: those of its parent do not exist there.
    fn wake_threads(&mut self) -> PyResult<()> {
        let process = std::process::id();
        if self.pool.as_ref().is_some_and(|pool| pool.process == process) {
            return Ok(());
        }
        let made = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let threads = made.map_err(|error| {
            PyRuntimeError::new_err(format!(
                "{} threads could not be started: {error}; pass threads=1",
                self.threads
            ))
        })?;
        if let Some(pool) = self.pool.replace(Pool { threads, process }) {
            // To drop it would be to talk to threads that are not there.
            std::mem::forget(pool);
        }
        Ok(())
    }
}

/// Some rows of all arrays.
struct Lines<'a> {
    observations: &'a mut [f32],
    finals: &'a mut [f32],
    masks: &'a mut [bool],
    rewards: &'a mut [f64],
    terminated: &'a mut [bool],
    truncated: &'a mut [bool],
}

impl<'a> Lines<'a> {
    #[inline]
    fn for_each(self, features: usize, actions: usize, mut work: impl FnMut(usize, Rows<'_>)) {
        let observations = self.observations.chunks_exact_mut(features);
        let finals = self.finals.chunks_exact_mut(features);
        let rows = observations.zip(finals).zip(self.masks.chunks_exact_mut(actions));
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
    fn parts(self, rows: usize, features: usize, actions: usize) -> Vec<Lines<'a>> {
        let observations = self.observations.chunks_mut(rows * features);
        let finals = self.finals.chunks_mut(rows * features);
        let masks = self.masks.chunks_mut(rows * actions);
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

fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
