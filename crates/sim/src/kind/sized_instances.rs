//! Instances are sized by ticks and hold their size from start to stop. Calls share them and wait in the queue of their
//! function for a free place.

use windfall_core::{
    Allocation, CallDecision, CallSafeguardChain, CpuCeiling, FunctionId, Outcome, Refusal, Start,
    Timestamp,
};

use super::Behaviour;
use crate::event_queue::{Event, Token};
use crate::function::{Waiting, remove_item};
use crate::run::Count;
use crate::settings::ScaleOut;
use crate::simulator::Simulator;

/// The kind.
pub(crate) struct SizedInstances;

impl Behaviour for SizedInstances {
    fn arrive(sim: &mut Simulator<'_>, function: u32, waiting: Waiting) {
        match sim.free_place(function) {
            Some(instance) => {
                sim.start_in(function, instance, waiting);
                let node = sim.instances[instance].node;
                sim.reshare_if_needed(node);
            }
            None => {
                sim.enqueue(function, waiting);
                sim.start_missing(function);
            }
        }
    }

    fn use_room(sim: &mut Simulator<'_>, _: u32) {
        for place in 0..sim.heads.len() {
            sim.start_missing(sim.heads[place].function);
        }
    }

    fn in_need(sim: &Simulator<'_>, function: u32) -> u32 {
        let state = &sim.functions[function as usize];
        state.running + state.queue.len() as u32
    }

    /// The instance holds on; its calls share the account of it.
    fn give_back(sim: &mut Simulator<'_>, slot: u32) {
        let call = &mut sim.calls[slot];
        let places = sim.functions[call.record.function.index()].concurrency.max(1);
        call.record.cpu_granted /= u64::from(places);
        call.record.memory_granted /= u64::from(places);
        let instance = call.instance;
        sim.watch_memory(instance);
    }

    /// The next call in the queue takes it, else it is idle.
    fn place_is_free(sim: &mut Simulator<'_>, function: u32, instance: u32) {
        sim.serve_queue(function, instance);
    }

    fn after_kill(sim: &mut Simulator<'_>, function: u32) {
        sim.start_missing(function);
    }

    fn begin_idle(_: &mut Simulator<'_>, _: u32) {}

    fn end_idle(_: &mut Simulator<'_>, _: u32) {}

    fn stop(sim: &mut Simulator<'_>, instance: u32) {
        let state = &sim.instances[instance];
        sim.nodes[state.node as usize].release(state.held, sim.now);
        sim.gauges.release(state.held, state.held);
    }

    fn size_ahead(sim: &Simulator<'_>, function: u32) -> Allocation {
        sim.functions[function as usize].allocation
    }

    fn evicts_ahead(_: &Simulator<'_>) -> bool {
        false
    }

    fn hold_ahead(sim: &mut Simulator<'_>, instance: u32) {
        let state = &sim.instances[instance];
        sim.nodes[state.node as usize].hold(state.held, sim.now);
        sim.gauges.hold(state.held, state.held);
    }

    fn stops_idle_for_instances(sim: &Simulator<'_>) -> bool {
        sim.settings.scale_out != ScaleOut::OnTick
    }

    fn start_of_next(_: &Simulator<'_>, _: u32) -> Option<Allocation> {
        None
    }
}

impl Simulator<'_> {
    /// A ready instance with a free place: the oldest that already serves, so that load packs, else
    /// the last used idle one.
    fn free_place(&self, function: u32) -> Option<u32> {
        let state = &self.functions[function as usize];
        state.open.first().copied().or_else(|| state.idle.last(&self.instances))
    }

    /// Starts an instance if the waiting calls need one more than are on their way.
    fn start_missing(&mut self, function: u32) {
        let state = &self.functions[function as usize];
        let coming = state.starting as usize * state.concurrency as usize;
        let is_needed = match self.settings.scale_out {
            ScaleOut::PerCall | ScaleOut::OnMiss => state.queue.len() > coming,
            ScaleOut::OnTick => state.ready + state.starting == 0 && !state.queue.is_empty(),
        };
        if is_needed {
            self.functions[function as usize].window.cold_starts += 1;
            self.start_without_call(function, true);
        }
    }

    /// Fills the free places of an instance from the queue.
    fn serve_queue(&mut self, function: u32, instance: u32) {
        let free = |sim: &Self| {
            let places = sim.functions[function as usize].concurrency as usize;
            sim.instances[instance].calls.len() < places
        };
        self.list_instance(function, instance);
        while free(self) {
            let Some(waiting) = self.dequeue(function) else { break };
            self.start_in(function, instance, waiting);
        }
    }

    /// Starts a call on a ready instance.
    fn start_in(&mut self, function: u32, instance: u32, mut waiting: Waiting) {
        let held = self.instances[instance].held;
        let view = self.view(function, &waiting);
        // Instances are sized by ticks; the plan of a call only puts on record what it got.
        let mut plan = waiting.earlier.is_none().then(|| {
            CallSafeguardChain::default()
                .at_dispatch(&view, &CallDecision::exactly(held, "the instance's size"))
                .expect("an allocation is never nonsense")
        });
        let start = Start { grant: held, cpu_ceiling: CpuCeiling::AtGrant, look_after: None };
        let waited = self.instances[instance].start_waited_for(waiting.arrived_at);
        let call = self.new_call(function, &mut waiting, plan.as_mut(), start, instance);
        self.calls[call].record.cold_start += waited;
        self.join(call, instance);
        self.list_instance(function, instance);
        self.begin_run(call);
        self.watch_memory(instance);
    }

    /// Puts an instance on the list it belongs to by its number of calls.
    fn list_instance(&mut self, function: u32, instance: u32) {
        let calls = self.instances[instance].calls.len();
        let state = &mut self.functions[function as usize];
        let was_idle = self.instances[instance].is_idle();
        let is_open = calls > 0 && calls < state.concurrency as usize;
        if is_open != state.open.contains(&instance) {
            if is_open {
                state.open.push(instance);
                state.open.sort_unstable();
            } else {
                remove_item(&mut state.open, instance);
            }
        }
        match (calls == 0, was_idle) {
            (true, false) => self.begin_idling(instance),
            (false, true) => self.end_idling(instance),
            (true, true) | (false, false) => {}
        }
    }

    /// Sets the reminder of the moment at which the calls of a shared instance outgrow its memory.
    fn watch_memory(&mut self, instance: u32) {
        let state = &self.instances[instance];
        if state.calls.len() < 2 {
            return;
        }
        let limit = state.held.memory;
        let crosses = self.memory_crosses(instance, limit.mib());
        self.instances[instance].kill_token = match crosses {
            Some(at) => self.queue.push(at.max(self.now), Event::InstanceOutgrows(instance)),
            None => Token::NONE,
        };
    }

    /// When the calls of an instance together first use more than `limit` MiB: the sum of their climbs
    /// is a broken line, looked through from corner to corner.
    fn memory_crosses(&self, instance: u32, limit: f64) -> Option<Timestamp> {
        let calls: Vec<_> =
            self.instances[instance].calls.iter().map(|&slot| &self.calls[slot]).collect();
        let peaks: f64 = calls.iter().map(|call| call.demand.memory_peak.mib()).sum();
        if peaks <= limit {
            return None;
        }
        let used = |at: Timestamp| -> f64 {
            calls
                .iter()
                .map(|call| call.demand.memory_at(at.since(call.record.started_at)).mib())
                .sum()
        };
        let mut corners: Vec<Timestamp> = calls
            .iter()
            .map(|call| call.record.started_at + call.demand.rise)
            .filter(|&corner| corner > self.now)
            .collect();
        corners.sort_unstable();
        let (mut from, mut before) = (self.now, used(self.now));
        if before > limit {
            return Some(self.now);
        }
        for corner in corners {
            let after = used(corner);
            if after > limit {
                let share = (limit - before) / (after - before);
                return Some(from + corner.since(from).scaled(share));
            }
            (from, before) = (corner, after);
        }
        None
    }

    /// A change of size takes effect, unless a later one is on its way.
    pub(crate) fn on_instances_resize(&mut self, function: u32, token: Token) {
        if self.functions[function as usize].resize == token {
            self.resize_instances(function);
        }
    }

    /// Gives the instances of a function its new size, as far as their nodes have room.
    pub(crate) fn resize_instances(&mut self, function: u32) {
        let wanted = self.functions[function as usize].allocation;
        let instances: Vec<u32> = self
            .instances
            .places()
            .filter(|&instance| self.instances[instance].function == function)
            .collect();
        let mut least = wanted;
        for instance in instances {
            let (node, held) = (self.instances[instance].node, self.instances[instance].held);
            let free = self.nodes[node as usize].book.free();
            let new = wanted.min(held + free);
            least = least.min(new);
            if new == held {
                continue;
            }
            let before = Count::of(&self.instances[instance]);
            self.nodes[node as usize].release(held, self.now);
            self.nodes[node as usize].hold(new, self.now);
            self.gauges.release(held, held);
            self.gauges.hold(new, new);
            self.hold_in_instance(instance, new);
            self.count_potential(node as usize, instance, Some(before));
            self.settle(node);
        }
        if let Some(plan) = self.functions[function as usize].resized_by.take() {
            let outcome = match least == wanted {
                true => Outcome::Applied,
                false => Outcome::Partly { in_force: least, reason: Refusal::NoRoom },
            };
            self.settle_change(plan, FunctionId(function), outcome);
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
            call.limit_changed(now);
            call.record.lowest_grant = call.record.lowest_grant.min(held);
            call.record.highest_grant = call.record.highest_grant.max(held);
            call.record.changes += 1;
            self.schedule_turn(slot);
        }
        self.watch_memory(instance);
    }
}
