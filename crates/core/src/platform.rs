//! Where functions run: the simulator, a machine, a cluster. The trait is synchronous: a driver keeps its own tasks,
//! answers `observe` from its last complete picture and queues what `submit` asks for, so network time never stalls a
//! decision. The price is staleness, which shows as the observation's age.
//!
//! A change has three stages, and each is reported exactly once:
//!
//! ```text
//!   plan ─► submit ─► Refused(why)                                        nothing changes
//!                 └─► Queued ─► Observation.settled: Applied              all of it is in force
//!                                                    Partly, Failed       in force is what it says, or what was before
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::record::Resource;
use crate::safeguard::{Plan, PlannedTarget};
use crate::seed::Seed;
use crate::time::{Duration, Timestamp};
use crate::units::Allocation;
use crate::workload::{FunctionId, FunctionProfile};

/// When a setting can be made.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// Never.
    #[default]
    Absent,
    /// For instances that start from now on; those that run keep what they have.
    AtStart,
    /// For running instances too.
    Live,
}

/// What a platform can change. Read by the last rule of the tick chain, so a setting that cannot be made is dropped
/// with an amendment instead of being refused over and over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The CPU that an instance is guaranteed while cores are short: a weight, a request.
    pub cpu: Support,
    /// The CPU that an instance can use at most: a quota, a limit.
    pub cpu_ceiling: Support,
    /// Memory of an instance.
    pub memory: Support,
    /// Calls per instance.
    pub concurrency: Support,
    /// Whether the number of instances can be set.
    pub instances: bool,
    /// Whether the time that an idle instance stays can be set.
    pub keep_alive: bool,
    /// Whether every call is sized on its own. Then CPU and memory above are those of calls, and a tick cannot set them.
    pub per_call: bool,
    /// How long an accepted change takes at most until it is reported as settled. Later than that its outcome is in
    /// doubt.
    pub settles_within: Duration,
}

impl Capabilities {
    /// Whether a tick can set `resource`.
    pub fn can_set(&self, resource: Resource) -> bool {
        let of_instance = |support: Support| support != Support::Absent && !self.per_call;
        match resource {
            Resource::Cpu => of_instance(self.cpu),
            Resource::CpuCeiling => of_instance(self.cpu_ceiling),
            Resource::Memory => of_instance(self.memory),
            Resource::Concurrency => of_instance(self.concurrency),
            Resource::Instances => self.instances,
            Resource::KeepAlive => self.keep_alive,
            Resource::All => Resource::SETTABLE.iter().all(|one| self.can_set(*one)),
        }
    }

    /// The first setting of `target` that a tick cannot make here.
    pub fn missing_for(&self, target: &PlannedTarget) -> Option<Resource> {
        Resource::SETTABLE.into_iter().find(|one| one.is_set_by(target) && !self.can_set(*one))
    }
}

/// A plan's number in order of submission, given by the control loop.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PlanId(pub u64);

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The platform has no such setting.
    Unsupported(Resource),
    /// The cluster or the node is full.
    NoRoom,
    /// The machine or the control plane did not answer; whether anything changed is unknown.
    Unreachable,
    /// A later plan for the same function took its place.
    Superseded,
    /// The operating system or the control plane refused, in its own words.
    System(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(resource) => write!(f, "this platform cannot set {resource}"),
            Self::NoRoom => write!(f, "there is no room for it"),
            Self::Unreachable => write!(f, "the platform did not answer"),
            Self::Superseded => write!(f, "a later plan for the function took its place"),
            Self::System(problem) => write!(f, "the system refused: {problem}"),
        }
    }
}

/// What a platform says to one target of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Under way; how it ends is reported in [`Observation::settled`], exactly once.
    Queued,
    /// Not possible; nothing of the target changes and nothing further is reported.
    Refused(Refusal),
}

/// The answer to the target of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetAnswer {
    /// Which function.
    pub function: FunctionId,
    /// What the platform says.
    pub answer: Answer,
}

/// What the platform says to a plan: one answer per target, in the order of the targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Receipt {
    /// Which plan.
    pub plan: PlanId,
    /// One per target.
    pub answers: Vec<TargetAnswer>,
}

impl Receipt {
    /// The receipt for `plan` in which `answer` decides about each target.
    pub fn of(plan: &Plan, mut answer: impl FnMut(&PlannedTarget) -> Answer) -> Self {
        let answered = |target: &PlannedTarget| TargetAnswer {
            function: target.function,
            answer: answer(target),
        };
        Self { plan: plan.id(), answers: plan.targets().iter().map(answered).collect() }
    }

    /// The targets of `plan` that are under way.
    pub fn accepted<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a PlannedTarget> {
        self.answered(plan)
            .filter(|(_, answer)| **answer == Answer::Queued)
            .map(|(target, _)| target)
    }

    /// The targets of `plan` with their answers. A target without an answer, which no platform should leave, does not
    /// appear.
    pub fn answered<'a>(
        &'a self,
        plan: &'a Plan,
    ) -> impl Iterator<Item = (&'a PlannedTarget, &'a Answer)> {
        let answer_of = |(place, target): (usize, &'a PlannedTarget)| {
            let in_place = self.answers.get(place).filter(|one| one.function == target.function);
            let found = in_place
                .or_else(|| self.answers.iter().find(|one| one.function == target.function))?;
            Some((target, &found.answer))
        };
        plan.targets().iter().enumerate().filter_map(answer_of)
    }

    /// Every function that was refused, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = (FunctionId, &Refusal)> {
        self.answers.iter().filter_map(|one| match &one.answer {
            Answer::Refused(refusal) => Some((one.function, refusal)),
            Answer::Queued => None,
        })
    }
}

/// How an accepted change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All of it is in force.
    Applied,
    /// Some of it is: a kernel that lowers a memory limit stops at what is in use, a full node raises only so far.
    Partly {
        /// The least that an instance of the function holds now.
        in_force: Allocation,
        /// Why not all.
        reason: Refusal,
    },
    /// Nothing of it is in force.
    Failed(Refusal),
}

/// The end of an accepted change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The plan that asked for it.
    pub plan: PlanId,
    /// For which function.
    pub function: FunctionId,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
}

impl Settled {
    /// Whether nothing of the change took effect and no later plan is the reason.
    pub fn has_failed(&self) -> bool {
        matches!(&self.outcome, Outcome::Failed(refusal) if *refusal != Refusal::Superseded)
    }
}

/// Why a platform has no observation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlatformError {
    /// Retryable: nothing has been measured yet.
    #[error("nothing has been measured yet")]
    NotReady,
    /// Retryable: the other side did not answer.
    #[error("platform unreachable: {0}")]
    Unreachable(String),
    /// Fatal: time was to go backwards.
    #[error("asked to go back to {to} from {now}")]
    BackInTime {
        /// Where the platform is.
        now: Timestamp,
        /// Where it was to go.
        to: Timestamp,
    },
    /// Fatal: a platform that owns its time was asked about another moment.
    #[error(
        "asked for an observation at {asked}, but the platform is at {now}; advance it to that time first"
    )]
    AnotherTime {
        /// Where the platform is.
        now: Timestamp,
        /// The moment asked for.
        asked: Timestamp,
    },
}

/// Something that runs functions. Time is an argument: a platform in wall time takes `now` from its caller's clock, one
/// that owns its time must be at `now` already.
pub trait Platform {
    /// The functions known so far; a [`FunctionId`] is a place in this list. It may grow and never shrinks.
    fn functions(&self) -> &[FunctionProfile];
    /// What can be changed here.
    fn capabilities(&self) -> Capabilities;
    /// The last complete picture, with every change that has settled since the last picture that was handed out.
    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError>;
    /// Sets a plan in motion. Never blocks and never fails as a whole: every target has its own answer.
    ///
    /// A size change replaces one of the same function that is still under way: the older one settles as
    /// [`Refusal::Superseded`] and never takes effect after the newer one.
    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt;
}

/// A platform that owns its time and can start over: the simulator.
pub trait Episodic: Platform {
    /// The time it is at.
    fn now(&self) -> Timestamp;
    /// Starts over with other random draws.
    fn reset(&mut self, seed: Seed);
    /// Lets time pass until `at`.
    fn advance_to(&mut self, at: Timestamp) -> Result<(), PlatformError>;
}
