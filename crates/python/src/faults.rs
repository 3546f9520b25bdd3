//! What goes wrong, as Python exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs `work`; a panic in it becomes a `RuntimeError` that names `what`.
pub(crate) fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(what, panic.as_ref()))
}

/// A panic as an exception.
pub(crate) fn panicked(what: &str, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!(
        "{what} failed inside windfall: {}; this is a defect of windfall, please report it",
        text.unwrap_or("no message")
    ))
}

/// A value that is not allowed.
pub(crate) fn refused(problem: impl ToString) -> PyErr {
    PyValueError::new_err(problem.to_string())
}

/// An object that was closed.
pub(crate) fn closed(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} is closed; make a new one"))
}

/// Takes a lock or fails: whoever waited here could wait for a thread that a fork left behind.
pub(crate) fn only_user<'m, T>(state: &'m Mutex<T>, what: &str) -> PyResult<MutexGuard<'m, T>> {
    match state.try_lock() {
        Ok(guard) => Ok(guard),
        // The panic was reported where it happened; what it left behind is checked by its user.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(format!(
            "{what} is in use by another thread; use one per thread, or make_vec() for many in one call"
        ))),
    }
}
