//! The per-call loop as a platform sees it.
//!
//! ```text
//!   size ─► start ─► look ─► look ─► .. ─► close(Measured)      the attempt ended and was measured
//!                     │       ▲       └──► close(Lost)          the call is gone: node lost, driver restarted
//!                     ▼       │
//!                  change ─► resized                            in force, in part, late, or not at all
//! ```
//!
//! What a platform owes the control, whatever goes wrong (`conformance::call_platform_suite` checks it):
//!
//! - Every [`start`](CallControl::start) is closed exactly once, also if the call is lost before it ran. A killed call
//!   that is tried again is closed and started again.
//! - A *change* is a look's grant or a [`GrantChange`] that differs from what the call is heading for: from the change
//!   under way if there is one, else from what is in force. Each is answered by exactly one
//!   [`resized`](CallControl::resized), when all of it is in force or the platform has given up on the rest. A raise that
//!   is owed is not given up. No answer is needed for a change that the call does not outlive, nor for one that a later one
//!   replaces; the latter may still be answered once, if it came into force first, or with [`Refusal::Superseded`].
//! - No look comes earlier than asked for, and nothing comes after the close.
//! - What is in force on a node never exceeds what the node may grant.

use serde::{Deserialize, Serialize};

use crate::call::{CallId, CallOutcome, CallView, NodeId, RunningCall};
use crate::call_safeguard::CallPlan;
use crate::platform::Refusal;
use crate::record::Amendment;
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, CpuCeiling, MilliCpu};

/// What a platform can set for single calls. The last rule of the chain cuts what it cannot.
///
/// | platform                                | weight | ceiling | a decision of 500m, `Unlimited`, becomes |
/// | --------------------------------------- | ------ | ------- | ---------------------------------------- |
/// | cgroups, Kubernetes                     | yes    | yes     | 500m, `Unlimited`                        |
/// | quotas alone, the simulator's fluid CPU | no     | yes     | 500m, `AtGrant`                          |
/// | shares alone                            | yes    | no      | 500m, `Unlimited`, as everything there   |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCapabilities {
    /// CPU can be guaranteed by weight, beside a ceiling that is higher.
    pub cpu_weight: bool,
    /// CPU use can be limited.
    pub cpu_ceiling: bool,
    /// The CPU of a running call can be changed.
    pub cpu_live: bool,
    /// The memory of a running call can be changed.
    pub memory_live: bool,
}

impl CallCapabilities {
    /// Everything: a machine of one's own.
    pub const ALL: Self =
        Self { cpu_weight: true, cpu_ceiling: true, cpu_live: true, memory_live: true };

    /// CPU by quota alone: what is granted is guarantee and ceiling in one.
    pub const QUOTA: Self = Self { cpu_weight: false, ..Self::ALL };

    /// The ceiling that comes closest to `asked` here.
    #[inline]
    pub fn nearest_ceiling(self, asked: CpuCeiling) -> CpuCeiling {
        match (self.cpu_weight, self.cpu_ceiling) {
            (true, true) => asked,
            (false, true) => CpuCeiling::AtGrant,
            (_, false) => CpuCeiling::Unlimited,
        }
    }
}

/// What a call starts with on the node that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its first grant: at least the plan's least, at most what the node has. Its CPU is the guarantee.
    pub grant: Allocation,
    /// The most CPU it may use.
    pub cpu_ceiling: CpuCeiling,
    /// When to look at it.
    pub look_after: Option<Duration>,
}

/// What a running call holds from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Its new grant. What the node lacks of it is owed and paid before any new call starts there.
    pub grant: Allocation,
    /// The most CPU it may use.
    pub cpu_ceiling: CpuCeiling,
    /// When to look again.
    pub look_after: Option<Duration>,
    /// CPU that the node keeps out of new calls' reach, because this call may want it back at any moment.
    pub held_back: MilliCpu,
    /// Where safeguards stepped in.
    pub amendments: Vec<Amendment>,
    /// One short phrase for the journal.
    pub why: &'static str,
}

/// A change to a running call on the same node: a loan that is called back, or a refused raise that is asked for once
/// more because there is room now. The rule for its CPU ceiling stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantChange {
    /// Whose grant.
    pub call: CallId,
    /// Its new grant. A loan that is called back never takes a call below its own reservation.
    pub grant: Allocation,
    /// One short phrase for the journal.
    pub why: &'static str,
}

/// The answer to a change: what is in force now.
///
/// A kernel refuses to lower memory below what is in use, a cluster may have no room for a raise, and either may take
/// its time. What is in force is what counts: asked 128 MiB, in force 200 MiB means that 72 MiB of what was to be
/// harvested are not there. A start can be answered as well, before the first look: where a warm process keeps more memory
/// than the call was to start with.
#[derive(Clone, Debug, PartialEq)]
pub struct Resized {
    /// Which call.
    pub call: CallId,
    /// Where it runs.
    pub node: NodeId,
    /// When it took effect, or when the platform gave up.
    pub at: Timestamp,
    /// What the user reserves for it: as much of it as is missing is the call's right.
    pub reservation: Allocation,
    /// What was asked.
    pub asked: Allocation,
    /// What the call holds now.
    pub in_force: Allocation,
    /// Why that is not what was asked; nothing if it is.
    pub refused: Option<Refusal>,
}

/// How a call that was started leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallClose<'a> {
    /// The attempt has ended and was measured.
    Measured(&'a CallOutcome),
    /// The call is gone and nothing can be said about its run: its node or its driver was lost. Nobody learns from it.
    Lost {
        /// Which call.
        call: CallId,
        /// Where it ran or was about to.
        node: NodeId,
    },
}

impl CallClose<'_> {
    /// Which call.
    pub fn call(&self) -> CallId {
        match self {
            Self::Measured(outcome) => outcome.id,
            Self::Lost { call, .. } => *call,
        }
    }

    /// Where it ran.
    pub fn node(&self) -> NodeId {
        match self {
            Self::Measured(outcome) => outcome.node,
            Self::Lost { node, .. } => *node,
        }
    }
}

/// A node that could take a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeOffer {
    /// Which node.
    pub node: NodeId,
    /// The cores that do the work there.
    pub cores: f64,
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
}

/// Who decides whether a node can take a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmitBy {
    /// The node's book: what is granted must fit.
    #[default]
    Grants,
    /// [`CallControl::admit`], node by node; the book bounds what may be guaranteed in all.
    Control,
    /// A simulator that knows what every call will use: the highest total must fit. For reports only.
    FuturePeak,
}

/// What a platform may skip. Whoever ignores hints is slower and gets the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHints {
    /// Whether [`CallControl::close`] does anything, now: a policy learns, or something has been lent. If false, a
    /// platform need not measure an attempt that has ended, nor close it.
    pub needs_outcomes: bool,
    /// Whether every call gets exactly what its user reserves, unsupervised, and no rule has a say in it. If true, a
    /// platform may skip `size`, `start` and `look`. Stays as it is for a whole run.
    pub leaves_calls_alone: bool,
    /// Who decides whether a node can take a call. Stays as it is for a whole run.
    pub admit_by: AdmitBy,
    /// How often all calls of a node are to be looked at while calls there wait for CPU; never more often than each
    /// asks for itself, if nothing is said.
    pub looks_while_short: Option<Duration>,
}

impl Default for CallHints {
    /// Nothing may be skipped.
    fn default() -> Self {
        Self {
            needs_outcomes: true,
            leaves_calls_alone: false,
            admit_by: AdmitBy::Grants,
            looks_while_short: None,
        }
    }
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

    /// A change took effect, in part, late, or not at all; `changes` receives what is to be done about it, for the call
    /// itself or for others on its node.
    fn resized(&mut self, _change: &Resized, _changes: &mut Vec<GrantChange>) {}

    /// A call that was started has left its node; `changes` receives what its borrowers must give back.
    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>);

    /// How full a node would be with the call, if it may take it: 1 is full, and the emptiest one is best. Asked only
    /// where the hints say so.
    fn admit(&self, _call: &CallView, _plan: &CallPlan, _offer: &NodeOffer) -> Option<f64> {
        Some(0.0)
    }

    /// What a platform may skip.
    fn hints(&self) -> CallHints {
        CallHints::default()
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
    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        (**self).resized(change, changes);
    }
    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        (**self).close(end, changes);
    }
    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        (**self).admit(call, plan, offer)
    }
    fn hints(&self) -> CallHints {
        (**self).hints()
    }
    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        (**self).coverage(node, plan, now)
    }
}
