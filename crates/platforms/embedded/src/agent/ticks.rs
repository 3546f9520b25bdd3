//! The tick side of the agent: pictures for policies, and what their plans set.

use std::collections::HashMap;

use windfall_core::{
    Allocation, Answer, Capabilities, CpuCeiling, Duration, FunctionId, Observation, Outcome, Plan,
    PlanId, PlannedTarget, Receipt, Refusal, Setting, Settled, Support, Timestamp,
};

use super::call_state::mib;
use super::machine::MachineCapabilities;
use super::node::{Employed, Node};
use crate::pool::SizedBy;

/// A change is carried out while `submit` is answered; the first observation after it says how it ended.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// What a tick can set on this platform.
pub(crate) fn tick_capabilities(machine: MachineCapabilities, sized_by: SizedBy) -> Capabilities {
    let per_call = sized_by == SizedBy::Call;
    Capabilities {
        cpu: machine.cpu(),
        cpu_ceiling: machine.cpu_ceiling(),
        memory: machine.memory(),
        concurrency: if per_call { Support::Absent } else { Support::Live },
        instances: true,
        keep_alive: true,
        per_call,
        settles_within: SETTLES_WITHIN,
    }
}

/// What is kept between ticks.
#[derive(Debug, Default)]
pub(super) struct TickSide {
    observed_at: Timestamp,
    settled: Vec<Settled>,
    ceilings: HashMap<FunctionId, CpuCeiling>,
    /// CPU time and peak memory of instances that ended since the last observation.
    ended: HashMap<FunctionId, Used>,
    /// Why the kernel refused part of the resize that is being carried out.
    refused: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    cpu: std::time::Duration,
    memory_mib: f64,
}

impl TickSide {
    pub(super) fn ceiling_of(&self, function: Option<FunctionId>) -> CpuCeiling {
        function.and_then(|function| self.ceilings.get(&function).copied()).unwrap_or_default()
    }

    pub(super) fn note_resize(&mut self, _function: Option<FunctionId>, refused: Option<String>) {
        if refused.is_some() {
            self.refused = refused;
        }
    }

    /// An instance is about to end: what it used since the last observation still counts.
    pub(super) fn count_last(
        &mut self,
        function: Option<FunctionId>,
        employed: Option<&mut Employed>,
    ) {
        // Where nobody observes, nothing is read.
        if self.observed_at == Timestamp::ZERO {
            return;
        }
        if let (Some(function), Some(employed)) = (function, employed)
            && let Some(sensors) = employed.worker.sense()
        {
            let used = self.ended.entry(function).or_default();
            used.cpu += sensors.cpu_time.saturating_sub(employed.observed);
            used.memory_mib = used.memory_mib.max(mib(sensors.memory_rss));
        }
    }
}

impl Node {
    pub(super) fn observe(&mut self, now: Timestamp) -> Observation {
        let taken_at = self.clock.now().min(now).max(self.ticks.observed_at);
        let window = taken_at.since(self.ticks.observed_at);
        let mut used = std::mem::take(&mut self.ticks.ended);
        let instances: Vec<_> = self.employed.keys().copied().collect();
        for id in instances {
            let function = self.pool.function_of(id);
            let Some(employed) = self.employed.get_mut(&id) else { continue };
            self.sensor_reads += 1;
            let (Some(function), Some(sensors)) = (function, employed.worker.sense()) else {
                continue;
            };
            let sum = used.entry(function).or_default();
            sum.cpu += sensors.cpu_time.saturating_sub(employed.observed);
            sum.memory_mib = sum.memory_mib.max(mib(sensors.memory_rss));
            employed.observed = sensors.cpu_time;
        }
        self.ticks.observed_at = taken_at.max(Timestamp::from_nanos(1));
        let mut functions = self.pool.take_views(taken_at, window);
        for (view, spec) in functions.iter_mut().zip(&self.specs) {
            let used = used.get(&view.function).copied().unwrap_or_default();
            view.cpu_used_cores = used.cpu.as_secs_f64() / window.as_secs_f64().max(1e-9);
            view.memory_peak_mib = used.memory_mib;
            view.cold_start = spec.profile().cold_start.median;
        }
        Observation {
            now,
            taken_at,
            window,
            cluster: self.pool.cluster_view(),
            functions,
            settled: std::mem::take(&mut self.ticks.settled),
        }
    }

    pub(super) fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        let receipt = Receipt::of(plan, |target| self.carry_out(now, plan.id(), target));
        self.settle();
        receipt
    }

    fn carry_out(&mut self, now: Timestamp, plan: PlanId, target: &PlannedTarget) -> Answer {
        let sized_by = self.pool.settings().sized_by;
        let capabilities = tick_capabilities(self.capabilities, sized_by);
        if let Some(resource) = capabilities.missing_for(target) {
            return Answer::Refused(Refusal::Unsupported(resource));
        }
        let function = target.function;
        let Some(settings) = self.pool.function(function) else {
            let problem = format!("there is no function {}", function.0);
            return Answer::Refused(Refusal::System(problem));
        };
        let current = self.pool.allocation_of(function).unwrap_or(settings.reservation);
        let (instances, keep_alive) = (target.instances, target.keep_alive);
        let clock_now = self.clock.now();
        self.pool.set_target(clock_now, function, instances, keep_alive, &mut self.actions);
        if let Setting::Set(concurrency) = target.concurrency {
            self.pool.set_concurrency(function, concurrency.get());
        }
        if let Setting::Set(ceiling) = target.cpu_ceiling {
            self.ticks.ceilings.insert(function, ceiling);
        }
        let is_resize = target.is_resize() || !target.cpu_ceiling.is_keep();
        let outcome = if is_resize {
            let to = Allocation {
                cpu: target.cpu.value().unwrap_or(current.cpu),
                memory: target.memory.value().unwrap_or(current.memory),
            };
            self.resize_function(function, to)
        } else {
            Outcome::Applied
        };
        self.ticks.settled.push(Settled { plan, function, at: now, outcome });
        Answer::Queued
    }

    fn resize_function(&mut self, function: FunctionId, to: Allocation) -> Outcome {
        self.ticks.refused = None;
        let gets_all = self.pool.resize(function, to, &mut self.actions);
        let ceiling = self.ticks.ceiling_of(Some(function));
        for id in self.pool.instances_of(function) {
            // A new ceiling alone changes no size, but the limits.
            let limits =
                super::limits_of(self.pool.held(id).unwrap_or(to), ceiling, &self.settings);
            if let Some(employed) = self.employed.get_mut(&id)
                && employed.limits.quota != limits.quota
            {
                employed.limits.quota = limits.quota;
                employed.worker.set(&employed.limits);
            }
        }
        self.settle();
        let least = self.pool.least_held(function).unwrap_or(to);
        match self.ticks.refused.take() {
            Some(problem) => Outcome::Partly { in_force: least, reason: Refusal::System(problem) },
            None if gets_all => Outcome::Applied,
            None => Outcome::Partly { in_force: least, reason: Refusal::NoRoom },
        }
    }
}
