//! A deployed function as the agent needs it.

use std::time::Duration;

use bytes::Bytes;
use windfall_core::{ColdStart, FunctionProfile, Mebibytes, Trigger};
use windfall_sandbox::{Isolation, Program};

use crate::pool::FunctionSettings;

/// Everything needed to start and call instances of a function.
#[derive(Clone, Debug)]
pub struct FunctionSpec {
    /// What the pool needs.
    pub settings: FunctionSettings,
    /// What an instance executes.
    pub program: Program,
    /// Environment of the program.
    pub environment: Vec<(String, String)>,
    /// How strictly instances are isolated.
    pub isolation: Isolation,
    /// Size of the writable folder of an instance.
    pub scratch: Mebibytes,
    /// Body of `/init`.
    pub init: Bytes,
    /// The longest `/init` and the longest `/run`.
    pub timeout: Duration,
    /// The longest log of a call, bytes.
    pub log_bytes: usize,
    /// The parameter that is its visible input size.
    pub input: Option<String>,
}

impl FunctionSpec {
    /// The function as policies know it.
    pub fn profile(&self) -> FunctionProfile {
        let name = self.settings.name.clone();
        FunctionProfile {
            application: name.clone(),
            name,
            trigger: Trigger::Http,
            runtime: self.settings.kind.clone(),
            reservation: self.settings.reservation,
            // What a built-in function in a sandbox takes; interpreters take ten times as long.
            cold_start: ColdStart { median: windfall_core::Duration::from_millis(5), sigma: 0.5 },
        }
    }
}
