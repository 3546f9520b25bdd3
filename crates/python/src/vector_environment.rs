//! Many environments stepped in one call; `vector_rows` is where the results go.
//!
//! ```text
//!   actions [N] ─► checked ─► Python's lock is released ─► rows of all arrays, in parallel where it pays ─► taken again
//! ```
//!
//! An environment's rows depend on its own seed and actions alone, so the number of threads cannot be seen in
//! them. The threads belong to the process that made them: a forked child has none and makes its own.

use std::sync::Mutex;

use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use windfall_rl::{End, Environment as _};
use windfall_studies::environments;

use crate::arrays;
use crate::environment::{Episodes, is_quick};
use crate::faults::{closed, guarded, only_user, refused};
use crate::sweeps::all_threads;
use crate::vector_rows::{Arrays, Kept, Lines, Returned, Rows, Shape};

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
    shape: Shape,
    autoreset: Autoreset,
    state: Mutex<Option<State>>,
    /// Where everything is written if the same arrays are returned each time.
    arrays: Option<Arrays>,
}

struct State {
    cells: Vec<Cell>,
    /// Where everything is written if new arrays are returned each time.
    kept: Kept,
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
        let Rows { observation, mask, .. } = rows;
        let step = self.environment.step_and_mask(action as usize, observation, mask);
        *rows.reward = f64::from(step.reward);
        *rows.terminated = step.end == End::Terminated;
        *rows.truncated = step.end == End::Truncated;
        self.is_over = step.end.is_over();
        if self.is_over && autoreset == Autoreset::SameStep {
            rows.final_observation.copy_from_slice(rows.observation);
            self.reset(rows);
        }
    }
}

#[pymethods]
impl VectorEnvironment {
    #[new]
    #[pyo3(signature = (id, count, split = "training", autoreset = "NextStep", threads = None, copy = true))]
    fn new(
        py: Python<'_>,
        id: &str,
        count: usize,
        split: &str,
        autoreset: &str,
        threads: Option<usize>,
        copy: bool,
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
        let shape = Shape { count, features: spec.features.len(), actions: spec.actions.len() };
        let (kept, arrays) = match copy {
            true => (Kept::new(shape), None),
            false => (Kept::default(), Some(Arrays::new(py, shape)?)),
        };
        // A step of a table takes 20 ns: 256 of them are done before a second thread has woken up.
        let usual = if is_quick(id) { 1 } else { all_threads().min(count) };
        let threads = threads.unwrap_or(usual).clamp(1, count);
        let state = State { cells, kept, threads, pool: None, is_begun: false };
        Ok(Self { shape, autoreset, arrays, state: Mutex::new(Some(state)) })
    }

    /// Last observations of the episodes that ended in the last step, where resets happen in the same step.
    fn final_observations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if let Some(arrays) = &self.arrays {
            return Ok(arrays.finals.bind(py).clone());
        }
        let guard = only_user(&self.state, WHAT)?;
        guard.as_ref().ok_or_else(|| closed(WHAT))?.kept.finals(py, self.shape)
    }

    /// Starts an episode of the environments that `chosen` says, all without it; seeds are given for all or none.
    #[pyo3(signature = (seeds = None, chosen = None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seeds: Option<Vec<Option<u64>>>,
        chosen: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<Returned<'py>> {
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
        self.returned(py, state)
    }

    /// Steps all environments.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Returned<'py>> {
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
        arrays::check_actions(actions, self.shape.count, self.shape.actions)?;
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
        self.each(py, state, "step", step)?;
        self.returned(py, state)
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
        if state.threads > 1 {
            state.wake_threads()?;
        }
        let State { cells, kept, threads, pool, .. } = state;
        let (shape, threads) = (self.shape, *threads);
        let serial = |cells: &mut [Cell], first: usize, lines: Lines<'_>| {
            lines.for_each(shape, |place, mut rows| {
                work(&mut cells[place], first + place, &mut rows);
            });
        };
        let pool = pool.as_ref().filter(|_| threads > 1);
        let mut all = |lines: Lines<'_>| match pool {
            None => serial(cells, 0, lines),
            Some(pool) => {
                let chunk = cells.len().div_ceil(threads);
                let parts = lines.parts(chunk, shape);
                pool.threads.install(|| {
                    let chunks = cells.par_chunks_mut(chunk).zip(parts).enumerate();
                    chunks.for_each(|(place, (cells, lines))| serial(cells, place * chunk, lines));
                });
            }
        };
        match &self.arrays {
            None => py.detach(|| guarded(what, || all(kept.lines()))),
            Some(arrays) => {
                arrays.with_lines(py, |lines| py.detach(|| guarded(what, || all(lines))))
            }
        }
    }

    fn returned<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Returned<'py>> {
        match &self.arrays {
            None => state.kept.returned(py, self.shape),
            Some(arrays) => Ok(arrays.returned(py)),
        }
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
