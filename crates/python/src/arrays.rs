//! From Python's numbers and arrays to ours, with messages that name what is wrong.

use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use windfall_rl::Split;

/// The part of an environment's world that `name` means.
pub(crate) fn split(name: &str) -> PyResult<Split> {
    match name {
        "training" => Ok(Split::Training),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        other => Err(PyValueError::new_err(format!(
            "split is {other:?}, allowed is \"training\", \"validation\" or \"test\""
        ))),
    }
}

/// One action: a whole number below `count`, as Python or NumPy have them.
pub(crate) fn action(given: &Bound<'_, PyAny>, count: usize) -> PyResult<usize> {
    let Ok(number) = given.extract::<i64>() else {
        let shown = given.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        return Err(PyTypeError::new_err(format!(
            "action is {shown}, allowed is one whole number from 0 to {}",
            count - 1
        )));
    };
    usize::try_from(number).ok().filter(|place| *place < count).ok_or_else(|| {
        PyValueError::new_err(format!("action is {number}, allowed is 0 to {}", count - 1))
    })
}

/// Refuses `actions` before anything has happened, if one of them does not exist.
pub(crate) fn check_actions(actions: &[i64], expected: usize, count: usize) -> PyResult<()> {
    if actions.len() != expected {
        return Err(PyValueError::new_err(format!(
            "actions have length {}, expected {expected}, one for each",
            actions.len()
        )));
    }
    let is_wrong = |action: &i64| usize::try_from(*action).map_or(true, |place| place >= count);
    match actions.iter().position(is_wrong) {
        None => Ok(()),
        Some(place) => Err(PyValueError::new_err(format!(
            "actions[{place}] is {}, allowed is 0 to {}; nothing was stepped",
            actions[place],
            count - 1
        ))),
    }
}

/// An array of one dimension, one type and one length.
pub(crate) fn column<'py, T: numpy::Element>(
    given: &Bound<'py, PyAny>,
    name: &str,
    length: usize,
) -> PyResult<PyReadonlyArray1<'py, T>> {
    let array = given.extract::<PyReadonlyArray1<'py, T>>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{name} is {}, expected a NumPy array of one dimension and type {}",
            described(given),
            T::get_dtype(given.py())
        ))
    })?;
    match array.len() {
        found if found == length => Ok(array),
        found => {
            Err(PyValueError::new_err(format!("{name} has length {found}, expected {length}")))
        }
    }
}

/// What an object is, for messages: type and shape of an array, otherwise its class.
fn described(given: &Bound<'_, PyAny>) -> String {
    match given.cast::<PyUntypedArray>() {
        Ok(array) => format!("an array of shape {:?} and type {}", array.shape(), array.dtype()),
        Err(_) => given.get_type().to_string(),
    }
}
