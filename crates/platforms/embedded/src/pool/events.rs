//! What the pool is informed of, and what it asks for.

use windfall_core::{Allocation, CallId, FunctionId};

use super::InstanceId;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call came.
    Arrived {
        /// The call.
        call: CallId,
        /// Its function.
        function: FunctionId,
    },
    /// The process of an instance exists and takes connections.
    Launched {
        /// The instance.
        instance: InstanceId,
    },
    /// The process could not be started.
    LaunchFailed {
        /// The instance.
        instance: InstanceId,
        /// What the operating system said.
        problem: String,
    },
    /// The function's code is loaded; the instance can serve.
    Initialised {
        /// The instance.
        instance: InstanceId,
    },
    /// A call that was dispatched is over.
    Finished {
        /// The call.
        call: CallId,
        /// The instance it was dispatched to. A report about an earlier attempt is ignored.
        instance: InstanceId,
        /// How.
        finish: CallFinish,
    },
    /// A process is gone.
    Exited {
        /// The instance.
        instance: InstanceId,
        /// How it ended.
        exit: Exit,
    },
    /// Whoever asked for a call that has not been dispatched yet is gone.
    Abandoned {
        /// The call.
        call: CallId,
    },
    /// The time of [`super::Pool::next_alarm`] has come.
    Timer,
}

/// How a dispatched call ended, as the gateway saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFinish {
    /// With an answer; the instance can serve the next one.
    Answered,
    /// With an answer or a time-out, after which the instance must not serve again.
    Unusable,
    /// The connection broke. Whether the process crashed or ran out of memory shows when it has exited.
    Broken,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The kernel killed it because memory crossed the limit.
    OutOfMemory,
    /// Any other way, in words.
    Ended(String),
}

/// How the instance of a call came to be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    /// It was, or another call waited for it.
    Warm,
    /// It was a spare process of the right kind without code.
    Prewarmed,
    /// It was started for this call.
    Cold,
}

/// Why a call is answered by the pool and not by its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyReason {
    /// The queue of the function is full.
    QueueFull {
        /// Calls that may wait.
        most: usize,
    },
    /// It needs more than the whole node may grant.
    TooLarge {
        /// What it needs at least.
        needs: Allocation,
        /// What the node has.
        limit: Allocation,
    },
    /// The process could not be started.
    LaunchFailed(String),
    /// The instance ended while the call ran.
    Crashed(String),
    /// Memory crossed the limit at the user's own size.
    OutOfMemory,
    /// The function was removed while the call waited.
    Removed,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a process and report [`Event::Launched`] or [`Event::LaunchFailed`].
    Launch {
        /// The instance.
        instance: InstanceId,
        /// Of which function; nothing for a spare.
        function: Option<FunctionId>,
        /// Which runtime.
        kind: String,
        /// What it begins with.
        size: Allocation,
        /// The call it is started for; nothing if it starts ahead of any.
        call: Option<CallId>,
    },
    /// Load the function's code into an instance that no call waits for, and report [`Event::Initialised`].
    Initialise {
        /// The instance.
        instance: InstanceId,
    },
    /// Send a call to an instance. If its start is not [`StartKind::Warm`], load the code first and report it.
    Dispatch {
        /// The call.
        call: CallId,
        /// The instance.
        instance: InstanceId,
        /// How the instance came to be ready.
        start: StartKind,
    },
    /// Change the size of an instance that ticks size, and report what is in force by [`super::Pool::set_held`].
    Resize {
        /// The instance.
        instance: InstanceId,
        /// To this.
        to: Allocation,
    },
    /// Pause the processes of an instance.
    Freeze {
        /// The instance.
        instance: InstanceId,
    },
    /// Let them go on.
    Thaw {
        /// The instance.
        instance: InstanceId,
    },
    /// End the processes of an instance and report [`Event::Exited`].
    Kill {
        /// The instance.
        instance: InstanceId,
        /// Whether it may be about to end by itself for a reason that should be found out first.
        may_be_ending: bool,
    },
    /// Answer a call; nothing more is reported about it.
    Reply {
        /// The call.
        call: CallId,
        /// Why.
        reason: ReplyReason,
    },
}
