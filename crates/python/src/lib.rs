//! The Python package `windfall`, as far as it is native.
//!
//! ```text
//!   windfall (Python)                         windfall._native (here)
//!   gym.Env, VectorEnv, ParallelEnv    ──►    Environment, VectorEnvironment, MultiEnvironment
//!   load_policy, export_onnx           ──►    Policy, SizingPolicy, save_network
//!   simulate, compare, capacity        ──►    run_single, run_sweep, run_capacity, with Python policies beside ours
//!   Trace                              ──►    read_trace, write_trace
//! ```
//!
//! The Python half (`crates/python/python/windfall`) holds what Python must see as Python: subclasses of Gymnasium's
//! classes, spaces, arguments with defaults. This half holds everything that takes time. It knows the catalogue of
//! `windfall-studies` and nothing of single environments, so that a new one appears in Python by itself.
//!
//! Rules that every function here keeps:
//!
//! - Nothing panics into Python: what fails is an exception that names the value and what is allowed (`faults`).
//! - Nothing waits for a lock: two threads in one object are an error for the second, also in a forked child.
//! - What takes longer than a microsecond lets other Python threads run, and long calls stop at Ctrl-C (`interrupt`).

mod arrays;
mod call_views;
mod capacity;
mod environment;
mod faults;
mod interrupt;
mod multi_environment;
mod network_files;
mod policy;
mod python_policy;
mod sizing_policy;
mod sweeps;
mod traces;
mod vector_environment;
mod vector_rows;

use pyo3::prelude::*;
use windfall_studies::environments;

/// The native half of the package `windfall`; use `import windfall`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<environment::Environment>()?;
    module.add_class::<vector_environment::VectorEnvironment>()?;
    module.add_class::<multi_environment::MultiEnvironment>()?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<sizing_policy::SizingPolicy>()?;
    module.add_class::<call_views::Call>()?;
    module.add_class::<call_views::RunningCall>()?;
    module.add_class::<call_views::CallOutcome>()?;
    module.add_function(wrap_pyfunction!(environment_list, module)?)?;
    module.add_function(wrap_pyfunction!(policy_list, module)?)?;
    module.add_function(wrap_pyfunction!(network_files::save_network, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::honest_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::run_sweep, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::run_single, module)?)?;
    module.add_function(wrap_pyfunction!(capacity::capacity_worlds, module)?)?;
    module.add_function(wrap_pyfunction!(capacity::run_capacity, module)?)?;
    module.add_function(wrap_pyfunction!(traces::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::write_trace, module)?)?;
    Ok(())
}

/// Ids and summaries of all environments in which one agent acts.
#[pyfunction]
fn environment_list() -> Vec<(&'static str, &'static str)> {
    environments::all().map(|entry| (entry.id, entry.summary)).collect()
}

/// Names and summaries of all built-in policies.
#[pyfunction]
fn policy_list() -> Vec<(&'static str, &'static str)> {
    windfall_registry::REGISTRY.iter().map(|entry| (entry.name, entry.summary)).collect()
}
