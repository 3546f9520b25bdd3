//! What a policy sees at a tick: the platform as it was measured, with the age of the measurement.

use serde::{Deserialize, Serialize};

use crate::platform::Settled;
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, Instances, Mebibytes, MilliCpu};
use crate::workload::FunctionId;

/// One function over the last window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionView {
    /// Which function.
    pub function: FunctionId,
    /// What its user reserves per instance; restored whenever anything is in doubt.
    pub reservation: Allocation,
    /// What a new instance gets now.
    pub allocation: Allocation,
    /// Where calls are sized one by one: the memory that an instance keeps when its call is over, as much as the last
    /// call was granted. Nothing where instances are sized and hold the same whether they serve or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Mebibytes>,
    /// Where calls are sized one by one: the CPU that a start takes, as much as the last call began with. Where
    /// instances are sized, a start takes their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_cpu: Option<MilliCpu>,
    /// How many calls one instance serves at once.
    pub concurrency: u32,
    /// Instances that can serve, busy ones included.
    pub ready: Instances,
    /// Instances that have at least one call.
    pub busy: Instances,
    /// Instances on their way up.
    pub starting: Instances,
    /// Calls running now.
    pub in_flight: u32,
    /// Calls waiting now.
    pub queued: u32,
    /// Calls in the system (running and waiting), averaged over the window.
    pub mean_concurrency: f64,
    /// Calls that arrived in the window.
    pub arrivals: u32,
    /// Calls that ended in the window.
    pub completions: u32,
    /// Cold starts that calls waited for in the window.
    pub cold_starts: u32,
    /// Mean run time of the calls that ended in the window.
    pub mean_run: Option<Duration>,
    /// Mean time from arrival to start of the calls that ended in the window.
    pub mean_wait: Option<Duration>,
    /// CPU cores in use, averaged over the window, all instances together.
    pub cpu_used_cores: f64,
    /// Highest memory of one call seen in the window, MiB.
    pub memory_peak_mib: f64,
    /// How long a new instance usually takes.
    pub cold_start: Duration,
    /// Every change of the number of calls in the system inside the window, in order. Present only where
    /// the platform sees single calls and the policy has asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presence: Vec<PresenceStep>,
}

impl FunctionView {
    /// What an instance without a call holds. Where calls are sized one by one it keeps memory and no CPU: the next
    /// call brings its own.
    pub fn idle_size(&self) -> Allocation {
        self.kept.map_or(self.allocation, |memory| Allocation { cpu: MilliCpu::ZERO, memory })
    }

    /// Whether every call that finds no idle instance starts its own and waits for no other call to end.
    pub fn sizes_calls(&self) -> bool {
        self.kept.is_some()
    }
}

/// The number of calls that are in need of an instance, from one moment on: all in the system, or, where calls are
/// sized one by one and those that wait do so for room on a node, the running ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceStep {
    /// From when.
    pub at: Timestamp,
    /// How many calls.
    pub calls: u32,
    /// Nodes with an idle instance on which the call that starts at this moment had no room, so that it starts one
    /// elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passed_over: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The cluster as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Nodes that are up.
    pub nodes: u32,
    /// CPU of all nodes that are up, cores.
    pub capacity_cores: f64,
    /// Memory of all nodes that are up, MiB.
    pub capacity_mib: f64,
    /// CPU granted to running calls, cores.
    pub granted_cores: f64,
    /// Memory granted to running calls, MiB.
    pub granted_mib: f64,
    /// Calls waiting, all functions together.
    pub queued: u64,
}

/// A complete picture of the platform.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// When the policy is asked.
    pub now: Timestamp,
    /// When the numbers were measured; a gap to `now` means that telemetry was lost.
    pub taken_at: Timestamp,
    /// The window that counts and means refer to.
    pub window: Duration,
    /// The cluster as a whole.
    pub cluster: ClusterView,
    /// All functions, in the order of their ids.
    pub functions: Vec<FunctionView>,
    /// How accepted changes ended since the last observation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<Settled>,
}

impl Observation {
    /// The same picture at a later time at which nothing was measured: sizes and instances as they were last seen, and
    /// a window of no length with nothing counted in it.
    pub fn aged_to(&self, now: Timestamp) -> Self {
        let nothing_counted = |view: &FunctionView| FunctionView {
            mean_concurrency: 0.0,
            arrivals: 0,
            completions: 0,
            cold_starts: 0,
            mean_run: None,
            mean_wait: None,
            cpu_used_cores: 0.0,
            memory_peak_mib: 0.0,
            presence: Vec::new(),
            ..view.clone()
        };
        Self {
            now,
            taken_at: self.taken_at,
            window: Duration::ZERO,
            cluster: self.cluster,
            functions: self.functions.iter().map(nothing_counted).collect(),
            settled: Vec::new(),
        }
    }

    /// How old the numbers are.
    pub fn age(&self) -> Duration {
        self.now.since(self.taken_at)
    }

    /// The view of one function, if it was measured.
    pub fn function(&self, id: FunctionId) -> Option<&FunctionView> {
        self.functions
            .get(id.index())
            .filter(|view| view.function == id)
            .or_else(|| self.functions.iter().find(|view| view.function == id))
    }
}
