//! Why a built-in function did not answer.

use thiserror::Error;

/// An error of the function itself, reported to the caller as `{"error": ...}`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
}

impl Failure {
    /// The failure that `message` describes.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}
