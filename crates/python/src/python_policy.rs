//! A policy written in Python, behind the trait that ours implement.
//!
//! A NaN or a negative size is treated as anyone's: the call runs at the user's size and the run counts a fallback.
//! An exception is a mistake of the program and no decision: it stops all runs and is raised where they were started.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use windfall_core::{
    self as core, CallDecision, CallPolicy, CallView, CpuCeiling, Duration, PolicyError,
    SafeguardChain,
};
use windfall_registry::Assembled;

use crate::call_views::{Call, CallOutcome, RunningCall};

/// What all runs of one call of `compare` share: whether they are to stop, and the first exception.
#[derive(Default)]
pub(crate) struct Failures {
    pub(crate) stop: AtomicBool,
    first: Mutex<Option<PyErr>>,
}

impl Failures {
    fn record(&self, error: PyErr) {
        self.stop.store(true, Ordering::Relaxed);
        let mut first = self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(error);
    }

    /// The first exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// An object with `size`, perhaps `supervise` and `learn`.
struct PythonPolicy {
    name: String,
    size: Py<PyAny>,
    supervise: Option<Py<PyAny>>,
    learn: Option<Py<PyAny>>,
    failures: std::sync::Arc<Failures>,
}

/// A fresh policy for one run: `factory(seed)` returns the object.
pub(crate) fn assemble(
    name: &str,
    factory: &Py<PyAny>,
    seed: u64,
    failures: &std::sync::Arc<Failures>,
) -> Assembled {
    let made = Python::attach(|py| {
        let object = factory.bind(py).call1((seed,))?;
        let method = |name: &str| object.getattr_opt(name).map(|it| it.map(Bound::unbind));
        let size = method("size")?.ok_or_else(|| {
            PyTypeError::new_err(format!("policy {name} has no method size(call)"))
        })?;
        PyResult::Ok((size, method("supervise")?, method("learn")?))
    });
    let call: Box<dyn CallPolicy> = match made {
        Ok((size, supervise, learn)) => {
            let (name, failures) = (name.to_owned(), failures.clone());
            Box::new(PythonPolicy { name, size, supervise, learn, failures })
        }
        Err(error) => {
            failures.record(error);
            Box::new(Absent)
        }
    };
    Assembled {
        call,
        call_safeguards: Vec::new(),
        tick: None,
        tick_safeguards: SafeguardChain::default(),
        foresight: false,
        admission: None,
        looks_while_short: None,
        by_weight: false,
        ticks_resize_only: false,
    }
}

/// Stands in for a policy that could not be made, until the runs have stopped.
struct Absent;

impl CallPolicy for Absent {
    fn name(&self) -> &str {
        "absent"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision::exactly(call.reservation, "no policy"))
    }
}

/// What a policy answers: nothing for the user's size, or cores, MiB and perhaps seconds until the next sample.
#[derive(FromPyObject)]
enum Answer {
    Sampled(f64, f64, f64),
    Size(f64, f64),
}

impl PythonPolicy {
    /// Calls `method` with what the policy may see.
    fn ask<T>(&self, method: &Py<PyAny>, seen: T) -> PyResult<Option<Answer>>
    where
        T: Into<PyClassInitializer<T>> + PyClass,
    {
        Python::attach(|py| self.understood(&method.bind(py).call1((Py::new(py, seen)?,))?))
    }

    fn understood(&self, answer: &Bound<'_, PyAny>) -> PyResult<Option<Answer>> {
        if answer.is_none() {
            return Ok(None);
        }
        answer.extract().map(Some).map_err(|_| {
            let shown = answer.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "policy {} returned {shown}, allowed is None, (cores, mib) or (cores, mib, seconds until the next \
                 sample)",
                self.name
            ))
        })
    }

    fn failed(&self, error: PyErr) -> PolicyError {
        let problem = error.to_string();
        self.failures.record(error);
        PolicyError { policy: self.name.clone(), problem }
    }
}

fn decision(answer: Option<Answer>, otherwise: core::Allocation) -> CallDecision {
    let (cpu_cores, memory_mib, after) = match answer {
        None => (otherwise.cpu.cores(), otherwise.memory.mib(), None),
        Some(Answer::Size(cores, mib)) => (cores, mib, None),
        Some(Answer::Sampled(cores, mib, after)) => (cores, mib, Some(after)),
    };
    // A millisecond at least: a policy that asks to be asked all the time would never let time pass.
    let after = after.filter(|seconds| seconds.is_finite());
    let look_after = after.map(|seconds| Duration::from_secs_f64(seconds.clamp(1e-3, 1e6)));
    CallDecision {
        cpu_cores,
        cpu_ceiling: CpuCeiling::AtGrant,
        memory_mib,
        look_after,
        ..CallDecision::exactly(otherwise, "a Python policy")
    }
}

impl CallPolicy for PythonPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let answer = self.ask(&self.size, Call::of(call));
        answer.map(|it| decision(it, call.reservation)).map_err(|error| self.failed(error))
    }

    fn supervise(&mut self, running: &core::RunningCall) -> Result<CallDecision, PolicyError> {
        let Some(supervise) = &self.supervise else {
            return Ok(CallDecision::exactly(running.grant, "as it is"));
        };
        let answer = self.ask(supervise, RunningCall::of(running));
        answer.map(|it| decision(it, running.grant)).map_err(|error| self.failed(error))
    }

    fn learn(&mut self, outcome: &core::CallOutcome) {
        let Some(learn) = &self.learn else { return };
        let learned = Python::attach(|py| learn.call1(py, (CallOutcome::of(outcome),)));
        if let Err(error) = learned {
            self.failures.record(error);
        }
    }

    fn learns(&self) -> bool {
        self.learn.is_some()
    }
}
