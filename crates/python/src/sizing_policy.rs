//! A policy that sizes calls, one of ours: by its name or from a checkpoint.

use std::collections::BTreeMap;
use std::sync::Mutex;

use pyo3::prelude::*;
use windfall_core::{CallPolicy, Seed};
use windfall_registry::assemble;

use crate::call_views::Call;
use crate::faults::{guarded, only_user, refused};

const WHAT: &str = "this policy";

/// A policy of the registry; `windfall.load_policy` returns it.
#[pyclass(frozen, module = "windfall._native")]
pub(crate) struct SizingPolicy {
    name: String,
    policy: Mutex<Box<dyn CallPolicy>>,
}

#[pymethods]
impl SizingPolicy {
    /// A name of the registry or the path of a checkpoint.
    #[new]
    #[pyo3(signature = (name, seed = 0))]
    fn new(name: String, seed: u64) -> PyResult<Self> {
        let assembled = assemble(&name, &BTreeMap::new(), Seed::new(seed)).map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
            refused(format!("{error}{hint}"))
        })?;
        Ok(Self { name, policy: Mutex::new(assembled.call) })
    }

    /// What it was loaded by.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Cores and MiB that it decides for a call, before any safeguard.
    fn size(&self, call: &Call) -> PyResult<(f64, f64)> {
        let view = call.view()?;
        let mut policy = only_user(&self.policy, WHAT)?;
        let decision = guarded("size", || policy.size(&view))?.map_err(refused)?;
        Ok((decision.cpu_cores, decision.memory_mib))
    }
}
