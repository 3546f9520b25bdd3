//! What came of every call.

use windfall_core::Duration;

/// Results of a whole run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Names of the targets, in the order of the schedule's numbers.
    pub targets: Vec<String>,
    /// One for every call that was due before the run ended, in the order in which they were due.
    pub samples: Vec<Sample>,
    /// Time from the beginning to the last answer.
    pub total: Duration,
}

/// One call. Times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Place of its target.
    pub target: u32,
    /// When it was due.
    pub due: Duration,
    /// When it was sent; later than it was due only by what the generator itself is late.
    pub sent: Duration,
    /// When its answer was complete, or it was given up.
    pub ended: Duration,
    /// Bytes of the answer's body.
    pub bytes_in: u64,
    /// Bytes of the request's body.
    pub bytes_out: u64,
    /// How it ended.
    pub result: CallResult,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// With an answer.
    Status(u16),
    /// Without one, for this reason.
    Failed(String),
}

impl Sample {
    /// Time from the moment it was due to its end.
    pub fn latency(&self) -> Duration {
        Duration::from_nanos(self.ended.as_nanos().saturating_sub(self.due.as_nanos()))
    }

    /// Time by which it was sent too late.
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.sent.as_nanos().saturating_sub(self.due.as_nanos()))
    }

    /// Whether it was answered with a status of 200 to 399.
    pub fn is_success(&self) -> bool {
        matches!(self.result, CallResult::Status(200..=399))
    }
}
