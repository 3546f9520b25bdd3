//! An action: what runs, with what size, and with which parameters.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windfall_core::Mebibytes;

use crate::key_values::KeyValues;
use crate::name::FullName;
use crate::version::Version;

/// An action as it is deployed. A change makes a new one with a higher version; nothing here changes in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Where it is.
    pub name: FullName,
    /// Raised by every update.
    pub version: Version,
    /// Whether others may see it.
    #[serde(default)]
    pub publish: bool,
    /// What runs.
    pub exec: Exec,
    /// Bound parameters, below those of a call.
    #[serde(default)]
    pub parameters: KeyValues,
    /// Anything worth noting; some change how the action is called (`web-export`, `final`, `raw-http`).
    #[serde(default)]
    pub annotations: KeyValues,
    /// Time, memory, logs, calls at a time.
    #[serde(default)]
    pub limits: ActionLimits,
    /// When it was last changed, in milliseconds since 1970.
    #[serde(default)]
    pub updated: u64,
}

impl Action {
    /// The kind in records and lists: `python:3`, `builtin:primes`, `sequence`.
    pub fn kind(&self) -> &str {
        match &self.exec {
            Exec::Code(code) => &code.kind,
            Exec::Sequence(_) => SEQUENCE_KIND,
        }
    }

    /// What runs, unless it is a sequence. A [`Runner`](crate::Runner) is only ever given actions with code.
    pub fn code(&self) -> Option<&Code> {
        match &self.exec {
            Exec::Code(code) => Some(code),
            Exec::Sequence(_) => None,
        }
    }
}

/// The kind of a sequence.
pub const SEQUENCE_KIND: &str = "sequence";

/// What an action does when it is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exec {
    /// Runs code.
    Code(Code),
    /// Calls these actions one after another, each with the result of the one before.
    Sequence(Vec<FullName>),
}

/// Code and the runtime it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Code {
    /// The runtime: one of [`ApiSettings::kinds`](crate::ApiSettings::kinds).
    pub kind: String,
    /// Source text, or an archive in base64 if `binary`.
    #[serde(default)]
    pub text: String,
    /// Whether `text` is base64.
    #[serde(default)]
    pub binary: bool,
    /// The function to call; nothing means the runtime's default, `main`.
    #[serde(default)]
    pub main: Option<String>,
}

/// What a call may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionLimits {
    /// The longest `/init` and the longest `/run`.
    pub timeout: Duration,
    /// Memory of one instance.
    pub memory: Mebibytes,
    /// The longest log of one call, in MiB.
    pub logs_mib: u32,
    /// Calls in one instance at a time.
    pub concurrency: u32,
    /// The most instances, if there is a bound.
    #[serde(default)]
    pub instances: Option<u32>,
}

impl Default for ActionLimits {
    /// OpenWhisk's: a minute, 256 MiB, 10 MiB of logs, one call at a time.
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            memory: Mebibytes::new(256),
            logs_mib: 10,
            concurrency: 1,
            instances: None,
        }
    }
}
