//! What the daemon asks of a platform beyond [`Platform`]: the calls that ended, what each node holds, and single calls
//! on request. A driver that implements this is managed, recorded and shown without another line in the daemon.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windfall_core::{Allocation, CallRecord, Platform, Timestamp};

/// Where functions really run. Printed in every summary, so that nobody takes a simulated number for a measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlatformKind {
    /// Real processes under real cgroups.
    Embedded,
    /// Real processes whose limits are imitated, because the kernel or the user's rights permit nothing else.
    Emulated,
    /// The simulator in real time: no function runs.
    Simulated,
}

impl PlatformKind {
    /// The word that scripts see.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Emulated => "emulated",
            Self::Simulated => "simulated",
        }
    }

    /// One sentence for people.
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Embedded => "real functions in cgroups on this machine",
            Self::Emulated => "real functions on this machine, limits imitated without cgroups",
            Self::Simulated => "the simulator in real time: no function runs, no core is measured",
        }
    }
}

/// One node at one moment, cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeBar {
    /// Whether it is up.
    pub is_up: bool,
    /// What it has.
    pub capacity_cores: f64,
    /// What the users of its running calls reserve.
    pub reserved_cores: f64,
    /// What its running calls hold.
    pub granted_cores: f64,
    /// What its running calls use, averaged since the last time it was asked.
    pub used_cores: f64,
    /// What its running calls hold less than reserved.
    pub harvested_cores: f64,
    /// What its running calls hold more than reserved.
    pub lent_cores: f64,
    /// What is free and kept for calls that may want it back.
    pub held_back_cores: f64,
    /// Memory that its running calls hold, MiB.
    pub granted_mib: f64,
    /// Memory it has, MiB.
    pub capacity_mib: f64,
    /// Calls that run or start.
    pub calls: u32,
}

/// A request to run one call, or to run an earlier one again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// The name of the function.
    pub function: String,
    /// The number of an earlier call whose input is used again.
    #[serde(default)]
    pub replay: Option<u64>,
    /// The size to run at; the user's own if nothing is given.
    #[serde(default)]
    pub size: Option<Allocation>,
    /// Parameters for a function that takes some.
    #[serde(default)]
    pub parameters: Option<serde_json::Value>,
}

/// How a requested call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invoked {
    /// The function.
    pub function: String,
    /// What it ran with.
    pub size: Allocation,
    /// How long it ran, milliseconds.
    pub run_ms: f64,
    /// How long an instance took to start, milliseconds; 0 if a warm one was used.
    pub cold_start_ms: f64,
    /// What the same call took at its user's size, where that is known, milliseconds.
    pub own_size_ms: Option<f64>,
    /// How it ended: `completed`, `out-of-memory`, `failed`.
    pub end: String,
    /// What the function answered, where one really ran.
    pub answer: Option<serde_json::Value>,
    /// What kind of run this was, in one sentence.
    pub note: String,
}

/// Why a requested call did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvokeError {
    /// Fatal: no such function.
    #[error("there is no function `{0}`; `GET /api/v1/functions` lists them")]
    UnknownFunction(String),
    /// Fatal: the call to repeat is not remembered.
    #[error("call {0} is not remembered any more; only the most recent calls can be replayed")]
    UnknownCall(u64),
    /// Retryable: the platform did not run it.
    #[error("the platform did not run it: {0}")]
    Platform(String),
}

/// Runs single calls on request. It may block, so it is asked on a thread that may wait.
pub trait Invoker: Send + Sync {
    /// Runs the call and waits for its end.
    fn invoke(&self, invocation: &Invocation) -> Result<Invoked, InvokeError>;
}

/// A platform as the daemon manages it.
pub trait ManagedPlatform: Platform + Send {
    /// Where functions run.
    fn kind(&self) -> PlatformKind;

    /// Lets time pass until `now` where the platform owns its time, and hands out the calls that have ended since the
    /// last time. Called several times a second; must not block.
    fn collect(&mut self, now: Timestamp, calls: &mut Vec<CallRecord>);

    /// Every node as it is now.
    fn nodes(&mut self, now: Timestamp) -> Vec<NodeBar>;

    /// Runs single calls, if the platform can.
    fn invoker(&self) -> Option<Arc<dyn Invoker>>;

    /// The manager stops: gives every running call its user's size and takes its own threads down. What ticks have set
    /// was restored by a last plan before.
    fn release(&mut self, _now: Timestamp) {}
}
