//! What the agent thread is sent, and what it answers.

use std::sync::Arc;
use std::sync::mpsc;

use tokio::sync::oneshot;
use windfall_core::{
    Allocation, CallId, FunctionId, FunctionProfile, MilliCpu, Observation, Plan, Receipt,
    Timestamp,
};
use windfall_sandbox::Exit;

use super::machine::Worker;
use crate::function::FunctionSpec;
use crate::link::Link;
use crate::pool::{CallFinish, InstanceId, PoolCounters, ReplyReason, StartKind};

/// A message to the agent thread.
pub(crate) enum Message {
    /// A function is there, or has another version. Ids are given in the order of these messages.
    Deploy { function: FunctionId, spec: Arc<FunctionSpec> },
    /// A function is gone.
    Remove { function: FunctionId },
    /// A call came.
    Arrive(Arrive),
    /// A process was started, or could not be.
    Launched { instance: InstanceId, result: Result<Box<dyn Worker>, String> },
    /// The code of an instance is loaded, or could not be.
    Initialised { instance: InstanceId, is_fine: bool },
    /// A call that was dispatched is over.
    Finished(Finished),
    /// A process may have ended by itself.
    MayHaveExited { instance: InstanceId },
    /// A process has ended.
    Exited { instance: InstanceId, exit: Exit },
    /// A tick wants a picture.
    Observe { now: Timestamp, reply: mpsc::SyncSender<Observation> },
    /// A tick wants something done.
    Submit { now: Timestamp, plan: Plan, reply: mpsc::SyncSender<Receipt> },
    /// Someone wants to know what running calls hold.
    Levels { reply: mpsc::SyncSender<NodeLevels> },
    /// Someone wants to know how it goes.
    Status { reply: mpsc::SyncSender<Status> },
    /// Where the instances of a function accept connections.
    Addresses { function: FunctionId, reply: mpsc::SyncSender<Vec<std::net::SocketAddr>> },
    /// Throw away what instances of a function print to nobody.
    DiscardOutput { function: FunctionId },
    /// The functions that are known.
    Functions { from: usize, reply: mpsc::SyncSender<Vec<FunctionProfile>> },
    /// End every instance and then the thread.
    Stop,
}

/// A call that came.
pub(crate) struct Arrive {
    pub(crate) call: CallId,
    pub(crate) function: FunctionId,
    /// Its visible input size.
    pub(crate) input: Option<f32>,
    /// The size it has to run at, where someone asked for one; no policy is asked then.
    pub(crate) size: Option<Allocation>,
    pub(crate) arrived_at: Timestamp,
    /// When this message was sent: the decision's deadline counts from here.
    pub(crate) asked_at: Timestamp,
    /// Not worth starting after this.
    pub(crate) deadline: Timestamp,
    pub(crate) reply: oneshot::Sender<Verdict>,
}

/// A call that was dispatched is over.
pub(crate) struct Finished {
    pub(crate) call: CallId,
    pub(crate) instance: InstanceId,
    pub(crate) finish: CallFinish,
    /// When `/run` was sent; nothing if it was not.
    pub(crate) run_began_at: Option<Timestamp>,
    pub(crate) at: Timestamp,
    /// For a connection that broke: where to answer what becomes of the call.
    pub(crate) reply: Option<oneshot::Sender<Verdict>>,
}

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It runs.
    Go(Go),
    /// It does not, or no longer.
    No(No),
}

/// Where a call runs.
#[derive(Debug)]
pub(crate) struct Go {
    pub(crate) instance: InstanceId,
    pub(crate) link: Arc<Link>,
    pub(crate) spec: Arc<FunctionSpec>,
    pub(crate) start: StartKind,
    pub(crate) granted: Allocation,
    /// When it got its instance.
    pub(crate) placed_at: Timestamp,
    /// Why the user's own size was used instead of a decision of the policy.
    pub(crate) fallback: Option<String>,
    /// Attempts before this one that were killed for memory.
    pub(crate) memory_kills: u8,
}

/// Why a call does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum No {
    /// The pool says so.
    Pool(ReplyReason),
    /// It waited longer than it is worth.
    WaitedTooLong,
    /// The platform is being ended.
    Stopping,
}

/// What the calls of the node hold, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLevels {
    /// What may be granted.
    pub capacity: Allocation,
    /// What is granted.
    pub granted: Allocation,
    /// What the users of running calls reserve.
    pub reserved: MilliCpu,
    /// What running calls hold less than reserved.
    pub harvested: MilliCpu,
    /// What running calls hold more than reserved.
    pub lent: MilliCpu,
    /// What is free and kept for calls that may want it back.
    pub held_back: MilliCpu,
    /// Calls that have an instance.
    pub calls: u32,
}

/// How it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What the pool counted.
    pub pool: PoolCounters,
    /// Instances there are.
    pub instances: u32,
    /// Calls that have not ended.
    pub open_calls: u64,
    /// Decisions that came too late or not at all, so that the user's size was used.
    pub late_decisions: u64,
    /// Times sensors were read.
    pub sensor_reads: u64,
    /// Memory limits that the kernel refused to lower when a warm instance took a smaller call.
    pub kept_memory: u64,
}
