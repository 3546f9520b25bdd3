//! What runs actions: a trait with one call, and the values that go in and come out.
//!
//! ```text
//!  client ─► router ─► Call ─► Runner::run ─► Ran ─► record ─► client
//!                                                      └─► Store, after the answer
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windfall_core::{Mebibytes, MilliCpu};

use crate::action::Action;
use crate::activation_id::ActivationId;
use crate::identity::Identity;
use crate::key_values::KeyValues;
use crate::name::FullName;

/// Runs actions. The API calls `deployed` for every action with code: at start for those in the store, then at each
/// create and update.
pub trait Runner: Send + Sync + 'static {
    /// An action is there or has a new version. Calls of an older version may still be running.
    fn deployed(&self, action: &Arc<Action>);

    /// An action is gone. Running calls end as they would have.
    fn removed(&self, name: &FullName);

    /// Runs one call to its end. The future is never dropped before it is ready, whether or not the client waits: an action
    /// that exceeds its timeout has to be ended here.
    fn run(&self, call: Call) -> impl Future<Output = Ran> + Send;
}

/// One call of an action with code.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its identifier, for the record and for `__OW_ACTIVATION_ID`.
    pub activation: ActivationId,
    /// What to run.
    pub action: Arc<Action>,
    /// A JSON object: bound parameters with the caller's on top. Checked, so it can be passed on as it is.
    pub parameters: Bytes,
    /// When the request was read.
    pub arrived: Arrival,
    /// A call that has not begun to run by then is not worth starting: its runner ends it with
    /// [`Outcome::SystemError`]. The time limit of the run itself is `action.limits.timeout`.
    pub deadline: Instant,
    /// Who called, for `__OW_NAMESPACE` and `__OW_API_KEY`.
    pub caller: Arc<Identity>,
}

/// A moment on both clocks: one for people, one for differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of day.
    pub wall: SystemTime,
    /// The clock that never jumps.
    pub monotonic: Instant,
}

impl Arrival {
    /// This moment.
    pub fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its result or its error.
    pub outcome: Outcome,
    /// Where the time went.
    pub times: Times,
    /// Whether an instance was there.
    pub start_kind: StartKind,
    /// Lines in OpenWhisk's form, e.g. `2026-01-02T03:04:05.678901234Z stdout: hello`.
    pub logs: Vec<String>,
    /// What the call was granted, if it got that far.
    pub granted: Option<Granted>,
    /// More annotations for the record.
    pub annotations: KeyValues,
}

impl Ran {
    /// A call that never ran: no instance, no time but the waiting.
    pub fn not_started(why: impl Into<String>, waited: Duration) -> Self {
        Self {
            outcome: Outcome::SystemError(why.into()),
            times: Times { wait: waited, ..Times::default() },
            start_kind: StartKind::Cold,
            logs: Vec::new(),
            granted: None,
            annotations: KeyValues::default(),
        }
    }
}

/// CPU and memory of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// CPU at the start of the call.
    pub cpu: MilliCpu,
    /// Memory at the start of the call.
    pub memory: Mebibytes,
}

/// Where the time of a call went; the parts follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From arrival until an instance was chosen or began to start.
    pub wait: Duration,
    /// Start of a new instance; zero if one was there.
    pub start: Duration,
    /// `/init`, if this call had to wait for one.
    pub init: Option<Duration>,
    /// `/run`.
    pub run: Duration,
}

/// What a call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartKind {
    /// An instance that had run this action before.
    Warm,
    /// A started instance that had still to be initialised.
    Prewarmed,
    /// Nothing: an instance was started for it.
    Cold,
}

impl StartKind {
    /// `warm`, `prewarmed` or `cold`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Prewarmed => "prewarmed",
            Self::Cold => "cold",
        }
    }
}

/// Result or error, in OpenWhisk's four classes.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// 0: a JSON object (or array).
    Success(Bytes),
    /// 1: the action returned an error on purpose. A JSON object with the key `error` alone.
    ApplicationError(Bytes),
    /// 2: the action failed: an exception, a timeout, no memory, no valid answer. Text or any JSON.
    DeveloperError(Value),
    /// 3: the platform failed.
    SystemError(String),
}

impl Outcome {
    /// The code in records.
    pub const fn status_code(&self) -> u8 {
        match self {
            Self::Success(_) => 0,
            Self::ApplicationError(_) => 1,
            Self::DeveloperError(_) => 2,
            Self::SystemError(_) => 3,
        }
    }

    /// The outcome of a `/run` that was answered with this status and body.
    ///
    /// | status | body | outcome |
    /// |---|---|---|
    /// | 200 | object with `error` | application error, the rest of the object is dropped |
    /// | 200 | any other object, or an array | success |
    /// | other | object with `error` | developer error |
    /// | any | anything else | developer error |
    pub fn of_run(status: u16, body: Bytes) -> Self {
        crate::run_answer::outcome(status, body)
    }

    /// The outcome of a failed `/init`.
    pub fn of_failed_init(body: &[u8]) -> Self {
        crate::run_answer::failed_init(body)
    }

    /// The action took longer than its timeout, in `/init` or in `/run`.
    pub fn timed_out(timeout: Duration, is_init: bool) -> Self {
        let millis = timeout.as_millis();
        let end = if is_init { " during initialization." } else { "." };
        Self::DeveloperError(
            format!("The action exceeded its time limits of {millis} milliseconds{end}").into(),
        )
    }

    /// Whether this is what [`Outcome::timed_out`] makes.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::DeveloperError(Value::String(text)) if text.starts_with("The action exceeded its time limits"))
    }

    /// The action used more memory than its limit and was ended by the kernel.
    pub fn out_of_memory() -> Self {
        Self::DeveloperError("The action exhausted its memory and was aborted.".into())
    }

    /// The process of the action ended before it answered, in `/init` or in `/run`.
    pub fn exited(is_init: bool) -> Self {
        Self::DeveloperError(if is_init {
            "The action did not initialize and exited unexpectedly.".into()
        } else {
            "The action did not produce a valid response and exited unexpectedly.".into()
        })
    }

    /// The result is longer than allowed.
    pub fn too_long(length: usize, allowed: usize) -> Self {
        Self::DeveloperError(
            format!("The action produced a response that exceeded the allowed length: {length} > {allowed} bytes.")
                .into(),
        )
    }
}
