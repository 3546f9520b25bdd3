//! Why a child could not become an instance.

use std::fmt;
use std::io;

/// A step that failed before the program ran.
#[derive(Debug)]
pub(super) struct Failure {
    step: String,
    error: io::Error,
}

impl Failure {
    /// `step` as in "binding /usr".
    pub(super) fn new(step: impl Into<String>, error: io::Error) -> Self {
        Self { step: step.into(), error }
    }
}

/// For use with `map_err`.
pub(super) fn at<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::new(step, error.into())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}
