//! The second decision point: one call. It is sized at dispatch, looked at while it runs, and closed at
//! its end.

use serde::{Deserialize, Serialize};

use crate::call_safeguard::CallPlan;
use crate::demand::CallDemand;
use crate::policy::PolicyError;
use crate::record::Amendment;
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, Mebibytes, MilliCpu, Nonsense};
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
    /// Cores and MiB free on all nodes together.
    pub free_in_cluster: (f64, f64),
    /// Calls waiting in the cluster.
    pub waiting: u64,
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

/// What a policy wishes for one call. Plain numbers: a learned policy can wish for anything.
#[derive(Clone, Debug, PartialEq)]
pub struct CallDecision {
    /// CPU, cores.
    pub cpu_cores: f64,
    /// Memory, MiB.
    pub memory_mib: f64,
    /// Where the part above the reservation may come from.
    pub beyond: Beyond,
    /// How long the call is expected to run, for the harvest pool.
    pub expected_run: Option<Duration>,
    /// When to look at it next; never, if nothing is said.
    pub look_after: Option<Duration>,
    /// One short phrase for the journal.
    pub why: &'static str,
}

impl CallDecision {
    /// The wish as an amount, unless a number in it is nonsense.
    #[inline]
    pub fn grant(&self) -> Result<Allocation, Nonsense> {
        Ok(Allocation {
            cpu: MilliCpu::from_cores(self.cpu_cores)?,
            memory: Mebibytes::from_mib(self.memory_mib)?,
        })
    }

    /// A wish for exactly `grant`, unsupervised.
    pub fn exactly(grant: Allocation, why: &'static str) -> Self {
        Self {
            cpu_cores: grant.cpu.cores(),
            memory_mib: grant.memory.mib(),
            beyond: Beyond::FreeCapacity,
            expected_run: None,
            look_after: None,
            why,
        }
    }
}

/// What sensors tell of a window of a running call. They see use, never the call's plan.
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
}

impl Sensed {
    /// A window whose measurement was lost: every number is NaN, so that none can be mistaken for one.
    pub fn lost(window: Duration) -> Self {
        Self { window, cpu_used_cores: f64::NAN, throttled_share: f64::NAN, memory_mib: f64::NAN }
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
    /// What it holds.
    pub grant: Allocation,
    /// What is still owed to it: raises that found no room.
    pub owed: Allocation,
    /// What is free on its node.
    pub free_on_node: Allocation,
    /// Calls waiting in the cluster.
    pub waiting: u64,
    /// How long a change takes to have effect here.
    pub actuation_delay: Duration,
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

    /// What came of it.
    fn learn(&mut self, _outcome: &CallOutcome) {}

    /// Whether every call is to get exactly what its user reserves, unsupervised. Who says yes is spared
    /// the questions.
    fn leaves_calls_alone(&self) -> bool {
        false
    }

    /// Whether [`Self::learn`] does anything. Who says no is spared the measuring.
    fn learns(&self) -> bool {
        true
    }
}

/// What a call starts with on the node that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its first grant: at least the plan's least, at most what the node has.
    pub grant: Allocation,
    /// When to look at it.
    pub look_after: Option<Duration>,
}

/// What a running call holds from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Its new grant. What the node lacks of it is owed and paid before any new call starts there.
    pub grant: Allocation,
    /// When to look again.
    pub look_after: Option<Duration>,
    /// CPU that the node keeps out of new calls' reach, because this call may want it back at any moment.
    pub held_back: MilliCpu,
    /// Where safeguards stepped in.
    pub amendments: Vec<Amendment>,
    /// One short phrase for the journal.
    pub why: &'static str,
}

/// A change to another running call on the same node: a loan that is called back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantChange {
    /// Whose grant.
    pub call: CallId,
    /// Its new grant, never below the call's own reservation.
    pub grant: Allocation,
    /// One short phrase for the journal.
    pub why: &'static str,
}

/// The per-call loop as a platform sees it: policy, safeguards, harvest pool and fallback behind one
/// door. It never fails; what is in doubt gets the user's size.
pub trait CallControl: Send {
    /// Sizes a call that is about to start. No node is chosen yet.
    fn size(&mut self, call: &CallView) -> CallPlan;

    /// The call starts on `node`, which has `room` left.
    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start;

    /// A look at a running call; `changes` receives what other calls on the node must give back.
    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look;

    /// An attempt has ended; `changes` receives what its borrowers must give back.
    fn close(&mut self, outcome: &CallOutcome, changes: &mut Vec<GrantChange>);

    /// Whether [`Self::close`] does anything, now: somebody learns or has lent. If not, a platform need
    /// not measure an attempt that has ended, nor tell of it.
    fn needs_outcomes(&self) -> bool {
        true
    }

    /// Whether every call is to get exactly what its user reserves, unsupervised, and nobody has a say in
    /// it. Then a platform need not ask. Stays as it is for a whole run.
    fn leaves_calls_alone(&self) -> bool {
        false
    }

    /// How much of what the call would like beyond its reservation `node`'s harvest pool could cover
    /// for its expected run: 0 nothing, 1 all of it. Guides coverage-aware placement.
    fn coverage(&self, _node: NodeId, _plan: &CallPlan, _now: Timestamp) -> f64 {
        0.0
    }
}

impl<C: CallControl + ?Sized> CallControl for &mut C {
    fn size(&mut self, call: &CallView) -> CallPlan {
        (**self).size(call)
    }
    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        (**self).start(call, plan, node, room)
    }
    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        (**self).look(running, changes)
    }
    fn close(&mut self, outcome: &CallOutcome, changes: &mut Vec<GrantChange>) {
        (**self).close(outcome, changes);
    }
    fn needs_outcomes(&self) -> bool {
        (**self).needs_outcomes()
    }
    fn leaves_calls_alone(&self) -> bool {
        (**self).leaves_calls_alone()
    }
    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        (**self).coverage(node, plan, now)
    }
}
