//! The second decision point: one call. It is sized at dispatch, looked at while it runs, and closed at
//! its end. Here is what a policy sees of it and answers; what a platform asks is in [`crate::call_control`].

use serde::{Deserialize, Serialize};

use crate::call_control::CallCapabilities;
use crate::demand::CallDemand;
use crate::policy::PolicyError;
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, CpuCeiling, Mebibytes, MilliCpu, Nonsense, PlainSize};
use crate::workload::FunctionId;

/// A call's number in order of arrival.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CallId(pub u64);

/// A node's place in the cluster.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The place as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallEnd {
    /// With an answer.
    #[default]
    Completed,
    /// Killed at the user's own size: no size of ours could have saved it.
    OutOfMemory,
    /// Lost with its node.
    NodeLost,
    /// Turned away: the queue was full.
    Rejected,
}

/// Knowledge of the future, handed to the oracle alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foresight {
    /// What the call will need.
    pub demand: CallDemand,
}

/// What is free, in real numbers: a sum over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Room {
    /// CPU, cores.
    pub cores: f64,
    /// Memory, MiB.
    pub mib: f64,
}

/// A call about to start, as a policy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallView {
    /// Which call.
    pub id: CallId,
    /// Of which function.
    pub function: FunctionId,
    /// When the policy is asked.
    pub now: Timestamp,
    /// When the call came.
    pub arrived_at: Timestamp,
    /// Its input size, where the function has one that can be seen.
    pub input: Option<f32>,
    /// What the user reserves for it; restored whenever anything is in doubt.
    pub reservation: Allocation,
    /// The most that one call may be granted.
    pub ceiling: Allocation,
    /// What is free on all nodes together.
    pub free_in_cluster: Room,
    /// Calls waiting in the cluster.
    pub waiting: u64,
    /// What the platform can set for it; read by the last rule of the chain.
    pub capabilities: CallCapabilities,
    /// The future; empty for everyone but the oracle.
    pub foresight: Option<Foresight>,
}

/// Where the part of a grant above the reservation may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// Whatever is free on the node; kept until the call ends.
    #[default]
    FreeCapacity,
    /// Only what other calls have left in the harvest pool; given back when they need it.
    HarvestPool,
}

/// How much CPU a call is expected to use while it runs, for the decision whether a node can take it beside others.
///
/// A call that works on 2 cores for half of its time and waits for the other half has a mean of 1 core and a variance
/// of 0.5 x 2^2 - 1^2 = 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuDemand {
    /// Mean over its run, cores.
    pub mean_cores: f64,
    /// Variance over its run, cores squared.
    pub variance: f64,
}

impl CpuDemand {
    /// Always exactly so many cores.
    pub const fn constant(mean_cores: f64) -> Self {
        Self { mean_cores, variance: 0.0 }
    }

    /// Whether both numbers can be used.
    pub fn is_valid(&self) -> bool {
        let usable = |number: f64| number.is_finite() && number >= 0.0;
        usable(self.mean_cores) && usable(self.variance)
    }
}

/// What a policy decides for one call. Plain numbers: a learned policy can answer with anything.
#[derive(Clone, Debug, PartialEq)]
pub struct CallDecision {
    /// CPU that the call is guaranteed, cores: its weight while cores are short.
    pub cpu_cores: f64,
    /// The most CPU it may use, cores; no more than is guaranteed by default.
    pub cpu_ceiling: CpuCeiling<f64>,
    /// Memory, MiB.
    pub memory_mib: f64,
    /// Where the part above the reservation may come from.
    pub beyond: Beyond,
    /// What it is expected to use; what it is guaranteed, if nothing is said. Only counts where an admission rule asks.
    pub demand: Option<CpuDemand>,
    /// How long the call is expected to run, for the harvest pool.
    pub expected_run: Option<Duration>,
    /// When to look at it next; never, if nothing is said.
    pub look_after: Option<Duration>,
    /// One short phrase for the journal.
    pub why: &'static str,
}

impl CallDecision {
    /// The guaranteed CPU and the memory as amounts, unless a number in them is nonsense.
    #[inline]
    pub fn grant(&self) -> Result<Allocation, Nonsense> {
        Ok(Allocation {
            cpu: MilliCpu::from_cores(self.cpu_cores)?,
            memory: Mebibytes::from_mib(self.memory_mib)?,
        })
    }

    /// The guaranteed CPU and the memory as they were decided, checked or not.
    pub fn size(&self) -> PlainSize {
        PlainSize { cores: self.cpu_cores, mib: self.memory_mib }
    }

    /// Exactly `grant` and no more, unsupervised.
    pub fn exactly(grant: Allocation, why: &'static str) -> Self {
        Self {
            cpu_cores: grant.cpu.cores(),
            cpu_ceiling: CpuCeiling::AtGrant,
            memory_mib: grant.memory.mib(),
            beyond: Beyond::FreeCapacity,
            demand: None,
            expected_run: None,
            look_after: None,
            why,
        }
    }
}

/// What sensors report about a window of a running call. They see use, never the call's plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensed {
    /// Length of the window.
    pub window: Duration,
    /// Cores in use, averaged over the window, with noise.
    pub cpu_used_cores: f64,
    /// Share of the window in which the call could have used more CPU than it had.
    pub throttled_share: f64,
    /// Memory in use now, MiB.
    pub memory_mib: f64,
    /// Share of the window by which waiting for CPU set the call back against a run at its reservation: run delay on
    /// Linux. A call that can use its 2 reserved cores and gets 1.5 of them is set back by a quarter of the time.
    #[serde(default)]
    pub delayed_share: f64,
}

impl Sensed {
    /// A window whose measurement was lost: every number is NaN, so that none can be mistaken for one.
    pub fn lost(window: Duration) -> Self {
        Self {
            window,
            cpu_used_cores: f64::NAN,
            throttled_share: f64::NAN,
            memory_mib: f64::NAN,
            delayed_share: f64::NAN,
        }
    }

    /// Whether any number is missing.
    pub fn is_lost(&self) -> bool {
        self.cpu_used_cores.is_nan() || self.throttled_share.is_nan() || self.memory_mib.is_nan()
    }
}

/// A running call at a look.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningCall {
    /// Which call.
    pub id: CallId,
    /// Of which function.
    pub function: FunctionId,
    /// Where it runs.
    pub node: NodeId,
    /// The time of this look.
    pub now: Timestamp,
    /// When it started to run.
    pub started_at: Timestamp,
    /// Its visible input size.
    pub input: Option<f32>,
    /// What the user reserves for it.
    pub reservation: Allocation,
    /// The most that one call may be granted.
    pub ceiling: Allocation,
    /// What it holds: what is in force, not what was asked.
    pub grant: Allocation,
    /// What is still owed to it: raises that found no room.
    pub owed: Allocation,
    /// What is free on its node.
    pub free_on_node: Allocation,
    /// Calls waiting in the cluster.
    pub waiting: u64,
    /// Whether calls on its node wait for CPU at this moment.
    pub node_is_short: bool,
    /// How long a change takes to have effect here.
    pub actuation_delay: Duration,
    /// What the platform can set for it; read by the last rule of the chain.
    pub capabilities: CallCapabilities,
    /// What the sensors say since the last look.
    pub sensed: Sensed,
}

impl RunningCall {
    /// How long it has been running.
    pub fn elapsed(&self) -> Duration {
        self.now.since(self.started_at)
    }
}

/// A finished attempt of a call, as it can be measured from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutcome {
    /// Which call.
    pub id: CallId,
    /// Of which function.
    pub function: FunctionId,
    /// Where it ran.
    pub node: NodeId,
    /// Its visible input size.
    pub input: Option<f32>,
    /// What the user reserves for it.
    pub reservation: Allocation,
    /// What it started with.
    pub first_grant: Allocation,
    /// What it held at the end.
    pub last_grant: Allocation,
    /// When it came.
    pub arrived_at: Timestamp,
    /// When this attempt started to run.
    pub started_at: Timestamp,
    /// When this attempt ended.
    pub ended_at: Timestamp,
    /// Whether memory crossed the limit; the call is tried once more at the user's size.
    pub was_killed: bool,
    /// Highest CPU use, cores, with noise. Censored: it cannot exceed what was granted.
    pub cpu_peak_cores: f64,
    /// Highest memory use, MiB, with noise. Censored at the limit if the call was killed.
    pub memory_peak_mib: f64,
    /// Mean CPU use over the run, cores.
    pub cpu_mean_cores: f64,
    /// Time during which it could have used more CPU than it had.
    pub throttled: Duration,
    /// Time by which waiting for CPU made it longer than at its reservation.
    pub delayed: Duration,
}

impl CallOutcome {
    /// How long the attempt ran.
    pub fn run(&self) -> Duration {
        self.ended_at.since(self.started_at)
    }
}

/// A maker of call decisions, classic or learned.
pub trait CallPolicy: Send {
    /// The name it has in the registry.
    fn name(&self) -> &str;

    /// What a call should start with.
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError>;

    /// What a running call should hold from now on.
    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision::exactly(running.grant, "as it is"))
    }

    /// Learns from an attempt that has ended.
    fn learn(&mut self, _outcome: &CallOutcome) {}

    /// A call that was sized is gone without an outcome: whatever is kept for it can be dropped.
    fn lost(&mut self, _call: CallId) {}

    /// Whether every call is to get exactly what its user reserves, unsupervised. If true, the loop skips
    /// [`Self::size`] and [`Self::supervise`].
    fn leaves_calls_alone(&self) -> bool {
        false
    }

    /// Whether [`Self::learn`] does anything. If false, a platform need not measure for this policy.
    fn learns(&self) -> bool {
        true
    }
}
