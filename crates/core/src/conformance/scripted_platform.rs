//! A platform that misbehaves on request: it refuses, delays, applies half, goes away and comes back.

use std::collections::BTreeMap;

use super::samples::function;
use crate::observation::{ClusterView, Observation};
use crate::platform::{
    Answer, Capabilities, Episodic, Outcome, PlanId, Platform, PlatformError, Receipt, Refusal,
    Settled, Support,
};
use crate::safeguard::{Plan, PlannedTarget};
use crate::seed::Seed;
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, Instances, Mebibytes, MilliCpu};
use crate::workload::{ColdStart, FunctionId, FunctionProfile, Trigger};

/// What goes wrong with the next change of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused.
    Refuse(Refusal),
    /// It takes effect, but the answer is lost on its way: as if nobody could be reached.
    AnswerLost,
    /// It settles so much later than usual.
    Late(Duration),
    /// It is accepted, and half of it takes effect.
    Half(Refusal),
    /// It is accepted, and nothing of it takes effect.
    Fail(Refusal),
}

/// What an accepted change will do when it is due.
#[derive(Clone, Debug)]
struct Pending {
    plan: PlanId,
    target: PlannedTarget,
    due: Timestamp,
    fault: Option<Fault>,
}

/// What a function has.
#[derive(Clone, Copy, Debug)]
struct Held {
    size: Allocation,
    instances: u32,
    concurrency: u32,
}

/// The scripted platform. Every function reserves something else, starts at its reservation with one instance, and is
/// never called.
pub struct ScriptedPlatform {
    /// What it says it can do.
    pub capabilities: Capabilities,
    /// How long a change takes that nothing goes wrong with.
    pub delay: Duration,
    /// What goes wrong with the next target of each function; used up by it.
    pub faults: BTreeMap<FunctionId, Fault>,
    /// Whether it does not answer.
    pub is_away: bool,
    profiles: Vec<FunctionProfile>,
    held: Vec<Held>,
    pending: Vec<Pending>,
    settled: Vec<Settled>,
    now: Timestamp,
    observed_at: Timestamp,
}

impl ScriptedPlatform {
    /// A platform with so many functions that can do everything and takes no time to do it.
    pub fn new(functions: u32) -> Self {
        let profile = |id: u32| FunctionProfile {
            name: format!("function-{id}"),
            application: "story".to_owned(),
            trigger: Trigger::Http,
            runtime: "rust".to_owned(),
            reservation: Allocation::new(500 + 100 * id, 256 + 64 * id),
            cold_start: ColdStart { median: Duration::from_millis(500), sigma: 0.0 },
        };
        let mut platform = Self {
            capabilities: Capabilities {
                cpu: Support::Live,
                cpu_ceiling: Support::Live,
                memory: Support::Live,
                concurrency: Support::Live,
                instances: true,
                keep_alive: true,
                per_call: false,
                settles_within: Duration::from_secs(1),
            },
            delay: Duration::ZERO,
            faults: BTreeMap::new(),
            is_away: false,
            profiles: (0..functions).map(profile).collect(),
            held: Vec::new(),
            pending: Vec::new(),
            settled: Vec::new(),
            now: Timestamp::ZERO,
            observed_at: Timestamp::ZERO,
        };
        platform.reset(Seed::new(0));
        platform
    }

    /// What an instance of `function` holds, whatever observations say.
    pub fn in_force(&self, function: FunctionId) -> Allocation {
        self.held[function.index()].size
    }

    /// It is gone, with everything that was under way: those changes settle as failed when it is back.
    pub fn goes_away_and_forgets(&mut self) {
        self.is_away = true;
        for one in std::mem::take(&mut self.pending) {
            self.end(one.plan, one.target.function, Outcome::Failed(Refusal::Unreachable));
        }
    }

    fn end(&mut self, plan: PlanId, function: FunctionId, outcome: Outcome) {
        self.settled.push(Settled { plan, function, at: self.now, outcome });
    }

    /// Lets everything happen that is due by `now`.
    fn pass(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|one| one.due <= now);
        self.pending = later;
        for Pending { plan, target, fault, .. } in due {
            let outcome = self.take_effect(&target, fault.as_ref());
            self.end(plan, target.function, outcome);
        }
    }

    fn take_effect(&mut self, target: &PlannedTarget, fault: Option<&Fault>) -> Outcome {
        let held = &mut self.held[target.function.index()];
        let asked = Allocation {
            cpu: target.cpu.value().unwrap_or(held.size.cpu),
            memory: target.memory.value().unwrap_or(held.size.memory),
        };
        if let Some(Fault::Fail(refusal)) = fault {
            return Outcome::Failed(refusal.clone());
        }
        if let Some(Fault::Half(reason)) = fault {
            held.size = between(held.size, asked);
            return Outcome::Partly { in_force: held.size, reason: reason.clone() };
        }
        held.size = asked;
        held.instances = target.instances.value().map_or(held.instances, Instances::get);
        held.concurrency =
            target.concurrency.value().map_or(held.concurrency, Instances::get).max(1);
        Outcome::Applied
    }

    fn answer(&mut self, plan: PlanId, target: &PlannedTarget) -> Answer {
        if self.is_away {
            return Answer::Refused(Refusal::Unreachable);
        }
        if target.function.index() >= self.held.len() {
            let problem = format!("there is no function {}", target.function.0);
            return Answer::Refused(Refusal::System(problem));
        }
        if let Some(resource) = self.capabilities.missing_for(target) {
            return Answer::Refused(Refusal::Unsupported(resource));
        }
        let fault = self.faults.remove(&target.function);
        if let Some(Fault::Refuse(refusal)) = fault {
            return Answer::Refused(refusal);
        }
        if target.is_resize() {
            self.replace_pending(target.function);
        }
        if fault == Some(Fault::AnswerLost) {
            self.take_effect(target, None);
            return Answer::Refused(Refusal::Unreachable);
        }
        let late = if let Some(Fault::Late(late)) = fault { late } else { Duration::ZERO };
        let due = self.now + self.delay + late;
        self.pending.push(Pending { plan, target: target.clone(), due, fault });
        Answer::Queued
    }

    /// A newer size takes the place of one that is still under way.
    fn replace_pending(&mut self, function: FunctionId) {
        let is_replaced = |one: &Pending| one.target.function == function && one.target.is_resize();
        let (replaced, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(is_replaced);
        self.pending = kept;
        for one in replaced {
            self.end(one.plan, function, Outcome::Failed(Refusal::Superseded));
        }
    }
}

fn between(one: Allocation, other: Allocation) -> Allocation {
    let middle = |a: u32, b: u32| a.midpoint(b);
    Allocation {
        cpu: MilliCpu::new(middle(one.cpu.get(), other.cpu.get())),
        memory: Mebibytes::new(middle(one.memory.get(), other.memory.get())),
    }
}

impl Platform for ScriptedPlatform {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        if now != self.now {
            return Err(PlatformError::AnotherTime { now: self.now, asked: now });
        }
        if self.is_away {
            return Err(PlatformError::Unreachable("it is away".to_owned()));
        }
        let window = now.since(self.observed_at);
        self.observed_at = now;
        let views = (0u32..).zip(&self.profiles).zip(&self.held).map(|((id, profile), held)| {
            let mut view = function(id, profile.reservation, held.instances, 0);
            view.allocation = held.size;
            view.concurrency = held.concurrency;
            view
        });
        Ok(Observation {
            now,
            taken_at: now,
            window,
            cluster: ClusterView {
                nodes: 1,
                capacity_cores: 1000.0,
                capacity_mib: 1e6,
                ..ClusterView::default()
            },
            functions: views.collect(),
            settled: std::mem::take(&mut self.settled),
        })
    }

    fn submit(&mut self, _now: Timestamp, plan: &Plan) -> Receipt {
        Receipt::of(plan, |target| self.answer(plan.id(), target))
    }
}

impl Episodic for ScriptedPlatform {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn reset(&mut self, _seed: Seed) {
        let held =
            |one: &FunctionProfile| Held { size: one.reservation, instances: 1, concurrency: 1 };
        self.held = self.profiles.iter().map(held).collect();
        self.faults.clear();
        self.is_away = false;
        self.pending.clear();
        self.settled.clear();
        self.now = Timestamp::ZERO;
        self.observed_at = Timestamp::ZERO;
    }

    fn advance_to(&mut self, at: Timestamp) -> Result<(), PlatformError> {
        if at < self.now {
            return Err(PlatformError::BackInTime { now: self.now, to: at });
        }
        self.pass(at);
        Ok(())
    }
}
