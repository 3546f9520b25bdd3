//! What happened, in the form every reader shares: journal, metrics, reports, `explain`, learning.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{CallEnd, CallId, NodeId};
use crate::decision::{Decision, Setting};
use crate::observation::Observation;
use crate::platform::Receipt;
use crate::safeguard::{Plan, PlannedTarget};
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, CpuCeiling, PlainSize};
use crate::workload::{FunctionId, FunctionProfile};

/// A knob that can be held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// CPU that is guaranteed, in cores.
    Cpu,
    /// CPU that may be used at most, in cores.
    CpuCeiling,
    /// Memory, in MiB.
    Memory,
    /// Number of instances.
    Instances,
    /// Calls per instance.
    Concurrency,
    /// How long an idle instance stays, in seconds.
    KeepAlive,
    /// All of them: the target was refused whole.
    All,
}

impl Resource {
    /// Every setting that a target can make.
    pub const SETTABLE: [Self; 6] = [
        Self::Cpu,
        Self::CpuCeiling,
        Self::Memory,
        Self::Instances,
        Self::Concurrency,
        Self::KeepAlive,
    ];

    /// Whether `target` sets it.
    pub fn is_set_by(self, target: &PlannedTarget) -> bool {
        match self {
            Self::Cpu => !target.cpu.is_keep(),
            Self::CpuCeiling => !target.cpu_ceiling.is_keep(),
            Self::Memory => !target.memory.is_keep(),
            Self::Instances => !target.instances.is_keep(),
            Self::Concurrency => !target.concurrency.is_keep(),
            Self::KeepAlive => !target.keep_alive.is_keep(),
            Self::All => !target.is_keep(),
        }
    }

    /// This knob of `target` as a number, if it is to be turned to one.
    pub fn of(self, target: &PlannedTarget) -> Option<f64> {
        match self {
            Self::Cpu => target.cpu.value().map(|cpu| cpu.cores()),
            Self::CpuCeiling => match target.cpu_ceiling {
                Setting::Set(CpuCeiling::At(most)) => Some(most.cores()),
                Setting::Set(CpuCeiling::AtGrant | CpuCeiling::Unlimited) | Setting::Keep => None,
            },
            Self::KeepAlive => target.keep_alive.value().map(Duration::as_secs_f64),
            Self::Memory => target.memory.value().map(|memory| memory.mib()),
            Self::Instances => target.instances.value().map(|count| f64::from(count.get())),
            Self::Concurrency => target.concurrency.value().map(|limit| f64::from(limit.get())),
            Self::All => None,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "CPU",
            Self::CpuCeiling => "the CPU ceiling",
            Self::Memory => "memory",
            Self::Instances => "instances",
            Self::Concurrency => "concurrency",
            Self::KeepAlive => "keep-alive",
            Self::All => "everything",
        })
    }
}

/// A place where a safeguard stepped in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Amendment {
    /// The safeguard.
    pub rule: Cow<'static, str>,
    /// The function concerned.
    pub function: FunctionId,
    /// The knob that was held back.
    pub resource: Resource,
    /// What was proposed; nothing if the knob was to stay.
    pub proposed: Option<f64>,
    /// What was allowed; nothing if the knob stays.
    pub allowed: Option<f64>,
    /// One sentence with the numbers.
    pub reason: Cow<'static, str>,
}

/// Who made a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The policy itself.
    #[default]
    Policy,
    /// The fallback, because the policy failed in this way.
    Fallback(String),
}

/// One tick: what was seen, wanted, allowed and done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TickRecord {
    /// What was seen.
    pub observation: Observation,
    /// What was wanted.
    pub decision: Decision,
    /// By whom.
    pub decided_by: DecidedBy,
    /// What was allowed.
    pub plan: Plan,
    /// What the platform accepted and refused.
    pub receipt: Receipt,
    /// What a second policy would have wanted; never obeyed.
    pub shadow: Option<Decision>,
    /// Why there was no observation at this tick. Then the one above is the last that there was, and the policy was not
    /// asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TickRecord {
    /// The targets that the platform accepted. A policy that keeps track of what it has set goes by these.
    pub fn accepted(&self) -> impl Iterator<Item = &PlannedTarget> {
        self.receipt.accepted(&self.plan)
    }
}

/// A change of a running call's grant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrantStep {
    /// When it took effect.
    pub at: Timestamp,
    /// To what.
    pub grant: Allocation,
    /// One short phrase.
    pub why: Cow<'static, str>,
}

/// The largest use of a call that sensors saw, in any of their windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenPeaks {
    /// Cores.
    pub cpu_cores: f32,
    /// Memory, MiB.
    pub memory_mib: f32,
}

/// One call from arrival to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call's number in order of arrival.
    pub id: CallId,
    /// The function called.
    pub function: FunctionId,
    /// Where it ran last.
    pub node: NodeId,
    /// How it ended.
    pub end: CallEnd,
    /// When it came.
    pub arrived_at: Timestamp,
    /// When its last attempt was dispatched to an instance.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How much of the time before the start was spent on a new instance.
    pub cold_start: Duration,
    /// Time spent running, killed attempts included.
    pub run: Duration,
    /// Run time it would have had alone at the user's size. Only a simulator knows it.
    #[serde(default)]
    pub baseline: Option<Duration>,
    /// Attempts, 1 if nothing was killed.
    pub attempts: u8,
    /// Attempts that were killed because memory crossed the limit.
    pub oom_kills: u8,
    /// Input size that was visible at dispatch.
    pub input: Option<f32>,
    /// What the user reserves.
    pub reservation: Allocation,
    /// What the policy decided at dispatch, unchecked.
    pub wanted: PlainSize,
    /// Who decided it.
    pub decided_by: DecidedBy,
    /// What a second policy would have decided; never obeyed.
    #[serde(default)]
    pub shadow: Option<PlainSize>,
    /// What it started with; its CPU is the guarantee.
    pub first_grant: Allocation,
    /// The most CPU it could use when it started; written only if that is not what was guaranteed.
    #[serde(default, skip_serializing_if = "CpuCeiling::is_at_grant")]
    pub cpu_ceiling: CpuCeiling,
    /// The least of each resource it ever held while running.
    pub lowest_grant: Allocation,
    /// The most of each resource it ever held while running.
    pub highest_grant: Allocation,
    /// Millicore-nanoseconds granted.
    pub cpu_granted: u64,
    /// Millicore-nanoseconds that its node kept out of new calls' reach for it, beside what it held.
    #[serde(default)]
    pub cpu_held_back: u64,
    /// Millicore-nanoseconds used.
    pub cpu_used: u64,
    /// MiB-nanoseconds granted.
    pub memory_granted: u64,
    /// MiB-nanoseconds used.
    pub memory_used: u64,
    /// The largest use that sensors saw. Only a real platform has it; a simulator knows the demand itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenPeaks>,
    /// How often the grant was changed while it ran.
    pub changes: u32,
    /// How often it was looked at while it ran.
    pub looks: u32,
    /// Where safeguards stepped in, at dispatch and while it ran.
    pub amendments: Vec<Amendment>,
    /// Every change of the grant, if the run keeps them.
    pub steps: Vec<GrantStep>,
}

impl CallRecord {
    /// Whether it ever held less than its user reserves, in either resource.
    pub fn is_harvested(&self) -> bool {
        !self.reservation.fits(self.lowest_grant)
    }

    /// Whether it ever held more than its user reserves, in either resource.
    pub fn is_accelerated(&self) -> bool {
        !self.highest_grant.fits(self.reservation)
    }

    /// Execution time relative to the user's allocation (RFET), where that is known; waiting does not count.
    pub fn relative_run(&self) -> Option<f64> {
        Some(self.run.as_nanos_f64() / self.baseline?.as_nanos_f64().max(1.0))
    }

    /// Time from arrival to end over the baseline, where that is known.
    pub fn slowdown(&self) -> Option<f64> {
        let latency = self.ended_at.since(self.arrived_at).as_nanos_f64();
        Some(latency / self.baseline?.as_nanos_f64().max(1.0))
    }

    /// Slowdown with a denominator of at least `floor`, and at least 1: a call of 1 ms that waited 50 ms
    /// has a slowdown of 51, which says little; with a floor of 100 ms it counts as not delayed.
    pub fn bounded_slowdown(&self, floor: Duration) -> Option<f64> {
        let latency = self.ended_at.since(self.arrived_at).as_nanos_f64();
        Some((latency / self.baseline?.max(floor).as_nanos_f64().max(1.0)).max(1.0))
    }
}

/// The cluster over a stretch of time; all amounts are averages over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// From here.
    pub from: Timestamp,
    /// Until here.
    pub until: Timestamp,
    /// Cores of all nodes that are up.
    pub capacity_cores: f64,
    /// Cores that users reserve for the calls in the system, waiting ones included.
    pub demand_cores: f64,
    /// Cores granted to running calls and to instances that start ahead of any.
    pub granted_cores: f64,
    /// The latter alone, where calls are sized one by one.
    #[serde(default)]
    pub starting_cores: f64,
    /// Cores kept out of new calls' reach for running ones, beside what is granted. At most what is free:
    /// a node with 2 cores free that is to keep 3 keeps 2.
    #[serde(default)]
    pub held_back_cores: f64,
    /// Cores in use.
    pub used_cores: f64,
    /// Cores taken from running calls below their reservation.
    pub harvested_cores: f64,
    /// Cores given to running calls above their reservation.
    pub lent_cores: f64,
    /// MiB granted to running calls.
    pub granted_mib: f64,
    /// MiB held by instances without a call.
    pub idle_mib: f64,
    /// Calls running.
    pub running: f64,
    /// Calls waiting.
    pub waiting: f64,
    /// Instances, starting ones included.
    pub instances: f64,
    /// Calls that arrived.
    pub arrivals: u64,
    /// Instances that were started or stopped.
    pub instance_changes: u64,
}

/// A reader of everything that happens. Each method has an empty default: take what you need.
pub trait TelemetrySink: Send {
    /// These functions are known from now on, the first one under the id `first`. Comes before any record that names
    /// them, and again whenever there are more.
    fn functions(&mut self, _first: FunctionId, _functions: &[FunctionProfile]) {}
    /// A tick was carried out.
    fn tick(&mut self, _tick: &TickRecord) {}
    /// A call ended.
    fn call(&mut self, _call: &CallRecord) {}
    /// A stretch of time has passed.
    fn interval(&mut self, _interval: &IntervalRecord) {}
}

impl<S: TelemetrySink + ?Sized> TelemetrySink for &mut S {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        (**self).functions(first, functions);
    }
    fn tick(&mut self, tick: &TickRecord) {
        (**self).tick(tick);
    }
    fn call(&mut self, call: &CallRecord) {
        (**self).call(call);
    }
    fn interval(&mut self, interval: &IntervalRecord) {
        (**self).interval(interval);
    }
}

/// The setting as a value for records: nothing if the knob stays.
impl<T> From<Setting<T>> for Option<T> {
    fn from(setting: Setting<T>) -> Self {
        setting.value()
    }
}
