//! The nouns and the joints of Windfall. Everything here is pure: no clock, no generator of its own,
//! no I/O, no async.
//!
//! ```text
//!  trace ─► PLATFORM ─► observation ─► POLICY ─► decision ─► SAFEGUARDS ─► plan ─► PLATFORM
//!                                                                                   │
//!             feedback, journal ◄───────────────── receipt, record ◄────────────────┘
//! ```
//!
//! The picture is walked at two decision points. Per **tick** a [`Policy`] sees an [`Observation`] of all
//! functions and answers with a [`Decision`]; the [`SafeguardChain`] turns it into a [`Plan`], which a
//! [`Platform`] carries out. Per **call** a [`CallPolicy`] sees one call at its dispatch and while it
//! runs; the [`CallSafeguardChain`] turns its decision into a [`CallPlan`].
//!
//! Decisions are plain numbers, because a learned policy can return anything, NaN included. Plans are
//! typed, bounded, and can be made by the chains alone.

pub mod call;
pub mod call_control;
pub mod call_safeguard;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod decision;
pub mod demand;
pub mod observation;
pub mod peak_range;
pub mod platform;
pub mod policy;
pub mod quantile_window;
pub mod queue_order;
pub mod record;
pub mod safeguard;
pub mod seed;
pub mod statistics;
pub mod time;
pub mod units;
pub mod workload;

pub use call::{
    CallDecision, CallEnd, CallId, CallOutcome, CallPolicy, CallView, CpuDemand, Foresight, NodeId,
    Room, RunningCall, Sensed,
};
pub use call_control::{
    AdmitBy, CallCapabilities, CallClose, CallControl, CallHints, GrantChange, Look, NodeOffer,
    Resized, Start,
};
pub use call_safeguard::{CallPlan, CallSafeguard, CallSafeguardChain, Proposal};
pub use decision::{Decision, Setting, Target};
pub use demand::CallDemand;
pub use observation::{ClusterView, FunctionView, Observation, PresenceStep};
pub use peak_range::{PeakRange, PeakSettings};
pub use platform::{
    Answer, Capabilities, Episodic, Outcome, PlanId, Platform, PlatformError, Receipt, Refusal,
    Settled, Support, TargetAnswer,
};
pub use policy::{Needs, Policy, PolicyError};
pub use quantile_window::QuantileWindow;
pub use queue_order::QueueOrder;
pub use record::{
    Amendment, CallRecord, DecidedBy, IntervalRecord, Resource, SeenPeaks, TelemetrySink,
    TickRecord,
};
pub use safeguard::{Plan, PlannedTarget, Safeguard, SafeguardChain, Verdict};
pub use seed::Seed;
pub use time::{Duration, Timestamp};
pub use units::{
    Allocation, CpuCeiling, Instances, Mebibytes, MilliCpu, Nonsense, PlainSize, Worth,
};
pub use workload::{Arrival, ColdStart, FunctionId, FunctionProfile, Trigger, Workload};
