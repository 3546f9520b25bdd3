//! What ticks see and do: the simulator as a platform.

use windfall_core::{
    Answer, Capabilities, ClusterView, Duration, Episodic, FunctionId, FunctionProfile,
    FunctionView, Instances, Observation, Outcome, Plan, PlanId, PlannedTarget, Platform,
    PlatformError, Receipt, Refusal, Seed, Setting, Settled, Support, Timestamp,
};

use crate::event_queue::Event;
use crate::function::Window;
use crate::gauges::Gauge;
use crate::kind::{Kind, by_kind};
use crate::simulator::Simulator;

/// The last picture that telemetry delivered, and what is to be reported with the next one.
#[derive(Debug, Default)]
pub(crate) struct LastObservation {
    picture: Option<Observation>,
    taken_at: Timestamp,
    ticks: u64,
    settled: Vec<Settled>,
}

impl Platform for Simulator<'_> {
    fn functions(&self) -> &[FunctionProfile] {
        self.workload.functions()
    }

    fn capabilities(&self) -> Capabilities {
        let sizes_calls = self.kind == Kind::PerCall;
        Capabilities {
            cpu: Support::Live,
            // A grant is a guarantee and a ceiling in one here.
            cpu_ceiling: Support::Absent,
            memory: Support::Live,
            concurrency: if sizes_calls { Support::Absent } else { Support::Live },
            instances: true,
            keep_alive: true,
            per_call: sizes_calls,
            settles_within: self.settings.actuation_delay,
        }
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        if now != self.now {
            return Err(PlatformError::AnotherTime { now: self.now, asked: now });
        }
        let tick = self.last_observation.ticks;
        self.last_observation.ticks += 1;
        let loss = self.settings.faults.telemetry_loss;
        // Tick draws are addressed from the far end, away from those of nodes and calls.
        let is_lost = loss > 0.0 && self.fault_noise.uniform(u64::MAX / 2, tick) < loss;
        if is_lost && let Some(mut old) = self.last_observation.picture.clone() {
            old.now = self.now;
            return Ok(old);
        }
        let mut picture = self.picture();
        if loss > 0.0 {
            self.last_observation.picture = Some(picture.clone());
        }
        // Not part of what is shown again when a picture is lost: each change is reported once.
        picture.settled = std::mem::take(&mut self.last_observation.settled);
        Ok(picture)
    }

    fn submit(&mut self, _now: Timestamp, plan: &Plan) -> Receipt {
        Receipt::of(plan, |target| self.carry_out(plan.id(), target))
    }
}

impl Episodic for Simulator<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn reset(&mut self, seed: Seed) {
        self.start_over(seed);
    }

    fn advance_to(&mut self, at: Timestamp) -> Result<(), PlatformError> {
        self.run_until(at)
    }
}

impl Simulator<'_> {
    /// A fresh picture of everything; the counters of the window start again.
    fn picture(&mut self) -> Observation {
        debug_assert!(self.is_observed, "whoever observes lets time pass with `advance_to`");
        let now = self.now;
        let window = now.since(self.last_observation.taken_at);
        self.last_observation.taken_at = now;
        for call in self.calls.iter_mut() {
            call.catch_up(now);
            let used = call.record.cpu_used - call.observed_use;
            call.observed_use = call.record.cpu_used;
            self.functions[call.record.function.index()].window.used += used;
        }
        let functions = (0..self.functions.len() as u32)
            .map(|function| self.function_view(function, window))
            .collect();
        let limit = self.nodes[0].book.limit();
        let up = self.nodes.iter().filter(|node| node.book.is_open()).count() as u32;
        Observation {
            now,
            taken_at: now,
            window,
            cluster: ClusterView {
                nodes: up,
                capacity_cores: f64::from(up) * limit.cpu.cores(),
                capacity_mib: f64::from(up) * limit.memory.mib(),
                granted_cores: self.gauges.level(Gauge::GrantedCpu) * 1e-3,
                granted_mib: self.gauges.level(Gauge::GrantedMemory),
                queued: self.ledger.waiting,
            },
            functions,
            settled: Vec::new(),
        }
    }

    fn function_view(&mut self, function: u32, window: Duration) -> FunctionView {
        let start = by_kind!(self => start_of_next(function));
        let state = &mut self.functions[function as usize];
        let Window { arrivals, completions, cold_starts, run, wait, used, memory_peak, presence } =
            state.take_window(self.now);
        let nanos = window.as_nanos().max(1) as f64;
        let mean = |total: Duration| {
            (completions > 0)
                .then(|| Duration::from_nanos(total.as_nanos() / u64::from(completions.max(1))))
        };
        FunctionView {
            function: FunctionId(function),
            reservation: state.reservation,
            allocation: state.allocation,
            kept: start.map(|size| size.memory),
            start_cpu: start.map(|size| size.cpu),
            concurrency: state.concurrency,
            ready: Instances::new(state.ready),
            busy: Instances::new(state.ready - state.idle.len()),
            starting: Instances::new(state.starting),
            in_flight: state.running,
            queued: state.queue.len() as u32,
            mean_concurrency: presence as f64 / nanos,
            arrivals,
            completions,
            cold_starts,
            mean_run: mean(run),
            mean_wait: mean(wait),
            cpu_used_cores: used as f64 * 1e-3 / nanos,
            memory_peak_mib: f64::from(memory_peak),
            cold_start: state.cold_start.median,
            presence: std::mem::take(&mut state.presence),
        }
    }

    fn carry_out(&mut self, plan: PlanId, target: &PlannedTarget) -> Answer {
        let PlannedTarget { function, instances, keep_alive, worth, .. } = *target;
        if let Some(resource) = self.capabilities().missing_for(target) {
            return Answer::Refused(Refusal::Unsupported(resource));
        }
        let Some(state) = self.functions.get_mut(function.index()) else {
            let problem = format!("there is no function {}", function.0);
            return Answer::Refused(Refusal::System(problem));
        };
        if let Setting::Set(keep_alive) = keep_alive {
            state.keep_alive = keep_alive;
        }
        if let Setting::Set(worth) = worth {
            state.worth = worth;
        }
        if let Setting::Set(count) = instances {
            state.target_instances = Some(count.get());
        }
        if target.is_resize() || target.concurrency != Setting::Keep {
            self.resize_function(plan, target);
        } else {
            // The number of instances is a goal from now on; how far it is reached shows in every observation.
            self.settle_change(plan, function, Outcome::Applied);
        }
        self.follow_target(function.0);
        Answer::Queued
    }

    pub(crate) fn settle_change(&mut self, plan: PlanId, function: FunctionId, outcome: Outcome) {
        let settled = Settled { plan, function, at: self.now, outcome };
        self.last_observation.settled.push(settled);
    }

    /// New instances have the new size from now on; those that stand get it after the platform's delay.
    fn resize_function(&mut self, plan: PlanId, target: &PlannedTarget) {
        let PlannedTarget { function, cpu, memory, concurrency, .. } = *target;
        let state = &mut self.functions[function.index()];
        let mut allocation = state.allocation;
        allocation.cpu = cpu.value().unwrap_or(allocation.cpu);
        allocation.memory = memory.value().unwrap_or(allocation.memory);
        state.allocation = allocation.min(self.settings.ceiling);
        state.concurrency = concurrency.value().map_or(state.concurrency, Instances::get).max(1);
        if let Some(earlier) = state.resized_by.replace(plan) {
            self.settle_change(earlier, function, Outcome::Failed(Refusal::Superseded));
        }
        let delay = self.settings.actuation_delay;
        if delay.is_zero() {
            return self.resize_instances(function.0);
        }
        let token = self.queue.push(self.now + delay, Event::InstancesResize(function.0));
        self.functions[function.index()].resize = token;
    }
}
