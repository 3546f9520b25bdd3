//! What a simulated cluster is made of. All values are believed: the scenario crate has checked them.

use serde::{Deserialize, Serialize};
use windfall_core::{Allocation, CallCapabilities, Duration, QueueOrder};

use crate::cpu_model::CpuModel;

/// Where a call goes when several nodes could take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// OpenWhisk's: start at the function's home node, step on until one has room.
    #[default]
    HomeInvoker,
    /// A node with a warm instance, else the one with the smallest share of its CPU granted.
    LeastLoaded,
    /// Of the nodes with a warm instance, else of all, the one with the smallest share of its CPU granted; a warm
    /// one even if the call gets less than its plan there.
    WarmFirst,
    /// For calls that would like more than their reservation, the node whose harvest pool covers most
    /// of it; for the others as with the home invoker.
    CoverageAware,
}

/// What makes the platform start instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleOut {
    /// Every call that finds no warm instance starts one, as OpenWhisk does; idle instances give way
    /// when a node needs their room. A tick's number of instances is a floor of warm ones.
    #[default]
    PerCall,
    /// A call that finds no free place waits for the first one there is; an instance starts for it
    /// unless one that is on its way will do. Instances hold their size from start to stop, as in Azure
    /// Functions. A tick's number of instances is a floor of warm ones.
    OnMiss,
    /// Only ticks start and stop instances (and the first call of a function at zero), as Knative
    /// does; calls wait for a free place. Instances hold their size from start to stop.
    OnTick,
}

/// The machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// How many.
    pub nodes: u32,
    /// What each has.
    pub node: Allocation,
    /// How much CPU may be granted for each core there is; above 1 calls compete.
    pub over_commit_cpu: f64,
    /// How much memory may be granted for each MiB there is.
    pub over_commit_memory: f64,
}

/// How well sensors see.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensors {
    /// Standard deviation of mean CPU use over a window, as a share of it.
    pub cpu_noise: f64,
    /// CPU time that a window may be off by, whatever its length: short windows are noisier.
    pub cpu_jitter: Duration,
    /// Standard deviation of the CPU peak reported at the end, as a share of it.
    pub peak_noise: f64,
    /// Standard deviation of the memory peak reported at the end, as a share of it.
    pub memory_noise: f64,
}

/// What goes wrong, all of it drawn from the run's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// Mean time between losses of one node; none if nothing is said.
    pub node_loss_every: Option<Duration>,
    /// How long a lost node stays away.
    pub node_away: Duration,
    /// Share of looks and ticks whose measurements are lost.
    pub telemetry_loss: f64,
    /// Share of changes that take ten times as long to have effect.
    pub slow_actuation: f64,
}

/// Everything about a simulated platform but its workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The machines.
    pub cluster: Cluster,
    /// How a node's CPU is shared.
    #[serde(default, skip_serializing_if = "CpuModel::is_fluid")]
    pub cpu: CpuModel,
    /// The most one call or instance may be granted.
    pub ceiling: Allocation,
    /// Where calls go.
    pub placement: Placement,
    /// What makes the platform start instances.
    pub scale_out: ScaleOut,
    /// Calls that one instance serves at once. With 1, every call is sized on its own.
    pub concurrency: u32,
    /// Whether a call's CPU is a weight beside which its ceiling may lie higher; else it is a quota, guarantee and
    /// ceiling in one.
    pub cpu_weights: bool,
    /// The most CPU that may be guaranteed for each core where admission goes by expected use: a call never gets less
    /// than its guarantee divided by this.
    pub guarantee_bound: f64,
    /// Which of the waiting calls starts first.
    pub queue_order: QueueOrder,
    /// Whether a call waits for a warm instance of its function as long as it is on time, where starting one takes longer
    /// than its run. Only with shortest first.
    pub waits_for_warm: bool,
    /// How long an idle instance stays.
    pub keep_alive: Duration,
    /// Whether a new instance takes time to start.
    pub cold_starts: bool,
    /// Calls of one function that may wait; more are turned away. No limit if nothing is said.
    pub queue_limit: Option<u32>,
    /// How long a change to a running call takes to have effect.
    pub actuation_delay: Duration,
    /// How well sensors see.
    pub sensors: Sensors,
    /// What goes wrong.
    pub faults: Faults,
    /// Length of the intervals reported to telemetry.
    pub interval: Duration,
    /// Whether every change of a call's grant is kept for the journal.
    pub keep_steps: bool,
    /// Whether the policy receives foresight: for the oracle only.
    pub foresight: bool,
    /// Whether observations list every change of the number of calls in the system.
    pub tells_presence: bool,
    /// Whether an instance that is started ahead of any call may push out idle ones where calls are
    /// sized one by one. Elsewhere it never does.
    pub prewarm_evicts: bool,
}

impl Settings {
    /// A cluster of `nodes` like `node`, everything else as usual.
    pub fn new(nodes: u32, node: Allocation) -> Self {
        Self {
            cluster: Cluster { nodes, node, over_commit_cpu: 1.0, over_commit_memory: 1.0 },
            cpu: CpuModel::Fluid,
            ceiling: node.min(Allocation::new(8000, u32::MAX)),
            placement: Placement::default(),
            scale_out: ScaleOut::default(),
            concurrency: 1,
            cpu_weights: false,
            guarantee_bound: 8.0,
            queue_order: QueueOrder::default(),
            waits_for_warm: false,
            keep_alive: Duration::from_mins(10),
            cold_starts: true,
            queue_limit: None,
            actuation_delay: Duration::ZERO,
            sensors: Sensors {
                cpu_noise: 0.02,
                cpu_jitter: Duration::from_millis(1),
                peak_noise: 0.03,
                memory_noise: 0.01,
            },
            faults: Faults::default(),
            interval: Duration::from_mins(1),
            keep_steps: false,
            foresight: false,
            tells_presence: false,
            prewarm_evicts: true,
        }
    }

    /// What can be set for single calls.
    pub fn call_capabilities(&self) -> CallCapabilities {
        match (self.cpu, self.cpu_weights) {
            (CpuModel::Fluid, false) => CallCapabilities::QUOTA,
            (CpuModel::Fluid, true) | (CpuModel::Kernel(_), _) => CallCapabilities::ALL,
        }
    }

    /// Whether calls are sized one by one; otherwise instances are, and calls share them.
    pub fn sizes_calls(&self) -> bool {
        self.concurrency == 1 && self.scale_out == ScaleOut::PerCall
    }
}
