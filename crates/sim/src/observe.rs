//! What ticks see and do: the simulator as a platform.

use windfall_core::platform::Capabilities;
use windfall_core::{
    Allocation, ClusterView, Duration, Episodic, FunctionId, FunctionView, Instances, Observation,
    Plan, PlannedTarget, Platform, PlatformError, Receipt, Seed, Setting, Timestamp,
};

use crate::event_queue::{Event, Token};
use crate::function::Window;
use crate::gauges::Gauge;
use crate::run::Count;
use crate::simulator::Simulator;

/// The last picture that telemetry delivered.
#[derive(Debug, Default)]
pub(crate) struct LastObservation {
    picture: Option<Observation>,
    taken_at: Timestamp,
    ticks: u64,
}

impl Platform for Simulator<'_> {
    fn capabilities(&self) -> Capabilities {
        let sizes_calls = self.sizes_calls;
        Capabilities {
            cpu_live: true,
            memory_live: true,
            instances: true,
            concurrency: !sizes_calls,
            per_call: sizes_calls,
        }
    }

    fn observe(&mut self) -> Result<Observation, PlatformError> {
        let tick = self.last_observation.ticks;
        self.last_observation.ticks += 1;
        let loss = self.settings.faults.telemetry_loss;
        // Tick draws are addressed from the far end, away from those of nodes and calls.
        let is_lost = loss > 0.0 && self.fault_noise.uniform(u64::MAX / 2, tick) < loss;
        if is_lost && let Some(mut old) = self.last_observation.picture.clone() {
            old.now = self.now;
            return Ok(old);
        }
        let picture = self.picture();
        if loss > 0.0 {
            self.last_observation.picture = Some(picture.clone());
        }
        Ok(picture)
    }

    fn submit(&mut self, plan: &Plan) -> Result<Receipt, PlatformError> {
        let mut receipt = Receipt::default();
        for target in plan.targets() {
            self.carry_out(target, &mut receipt);
        }
        Ok(receipt)
    }
}

impl Episodic for Simulator<'_> {
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
        }
    }

    fn function_view(&mut self, function: u32, window: Duration) -> FunctionView {
        let kept = self.sizes_calls.then(|| self.memory_kept(function));
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
            kept,
            start_cpu: self.sizes_calls.then_some(state.begun_with),
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

    fn carry_out(&mut self, target: &PlannedTarget, receipt: &mut Receipt) {
        let PlannedTarget { function, instances, cpu, memory, concurrency, keep_alive, worth } =
            *target;
        let Some(state) = self.functions.get_mut(function.index()) else {
            receipt.refused.push(format!("there is no function {}", function.0));
            return;
        };
        if let Setting::Set(keep_alive) = keep_alive {
            state.keep_alive = keep_alive;
            receipt.accepted += 1;
        }
        if let Setting::Set(worth) = worth {
            state.worth = worth;
        }
        if let Setting::Set(count) = instances {
            state.wished = Some(count.get());
            receipt.accepted += 1;
        }
        let resizes = cpu != Setting::Keep || memory != Setting::Keep;
        if self.sizes_calls && (resizes || concurrency != Setting::Keep) {
            receipt.refused.push("calls are sized one by one here".into());
        } else if resizes || concurrency != Setting::Keep {
            let state = &mut self.functions[function.index()];
            let mut allocation = state.allocation;
            allocation.cpu = cpu.value().unwrap_or(allocation.cpu);
            allocation.memory = memory.value().unwrap_or(allocation.memory);
            state.allocation = allocation.min(self.settings.ceiling);
            state.concurrency =
                concurrency.value().map_or(state.concurrency, Instances::get).max(1);
            receipt.accepted += 1;
            self.resize_after_delay(function.0);
        }
        self.follow_wish(function.0);
    }

    /// New instances have the new size at once; those that stand get it after the platform's delay.
    fn resize_after_delay(&mut self, function: u32) {
        let delay = self.settings.actuation_delay;
        if delay.is_zero() {
            return self.resize_instances(function);
        }
        let token = self.queue.push(self.now + delay, Event::InstancesResize(function));
        self.functions[function as usize].resize = token;
    }

    /// A change of size takes effect, unless a later one is on its way.
    pub(crate) fn on_instances_resize(&mut self, function: u32, token: Token) {
        if self.functions[function as usize].resize == token {
            self.resize_instances(function);
        }
    }

    /// Gives the instances of a function its new size, as far as their nodes have room.
    fn resize_instances(&mut self, function: u32) {
        let wanted = self.functions[function as usize].allocation;
        let instances: Vec<u32> = self
            .instances
            .places()
            .filter(|&instance| self.instances[instance].function == function)
            .collect();
        for instance in instances {
            let (node, held) = (self.instances[instance].node, self.instances[instance].held);
            let free = self.nodes[node as usize].book.free();
            let new = wanted.min(held + free);
            if new == held {
                continue;
            }
            let before = Count::of(&self.instances[instance]);
            self.nodes[node as usize].book.release(held);
            self.nodes[node as usize].book.hold(new);
            self.gauges.release(held, held);
            self.gauges.hold(new, new);
            self.hold_in_instance(instance, new);
            self.count_potential(node as usize, instance, Some(before));
            self.settle(node);
        }
    }

    /// The calls of an instance run on its new size from now on.
    fn hold_in_instance(&mut self, instance: u32, held: Allocation) {
        self.instances[instance].held = held;
        let calls = self.instances[instance].calls.to_vec();
        for slot in calls {
            let now = self.now;
            let call = &mut self.calls[slot];
            call.catch_up(now);
            call.account(now);
            call.grant = held;
            call.record.lowest_grant = call.record.lowest_grant.min(held);
            call.record.highest_grant = call.record.highest_grant.max(held);
            call.record.changes += 1;
            self.schedule_turn(slot);
        }
        self.watch_memory(instance);
    }
}
