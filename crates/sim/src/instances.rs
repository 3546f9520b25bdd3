//! Instances: how they start, who uses them, and when they go. The second half serves platforms whose
//! instances are sized and shared; there calls wait in the function's queue for a free place.

use windfall_core::{
    Allocation, CallDecision, CallSafeguardChain, CpuCeiling, Duration, Mebibytes, MilliCpu, Start,
    Timestamp, Worth,
};

use crate::event_queue::{Event, Token};
use crate::function::{Waiting, remove_item};
use crate::gauges::Gauge;
use crate::idle::Rest;
use crate::instance::{Instance, Stage};
use crate::node::Node;
use crate::placement::Place;
use crate::settings::{Placement, ScaleOut};
use crate::simulator::Simulator;

/// Compared between idle instances when one must go: the smallest claim goes. What ticks say they are worth,
/// among equals how long they have been idle.
type Claim = (Worth, Rest);

impl Simulator<'_> {
    /// A new instance on its way up. The caller sees to its reminder and to what it holds.
    pub(crate) fn begin_instance(&mut self, function: u32, at: Place, held: Allocation) -> u32 {
        self.functions[function as usize].starting += 1;
        self.gauges.add(Gauge::Instances, 1);
        self.gauges.instance_changes += 1;
        let instance = self.instances.insert(Instance::starting(function, at, held, self.now));
        self.nodes[at.node as usize].instances.push(instance);
        instance
    }

    /// The last used idle instance of `function` so many `steps` from home, taken out of its rest.
    #[inline(always)]
    pub(crate) fn take_idle(&mut self, function: u32, steps: u32) -> Option<u32> {
        let instance = self.functions[function as usize].idle.take_at(&self.instances, steps)?;
        self.leave_node_idle(instance);
        Some(instance)
    }

    fn end_idling(&mut self, instance: u32) {
        let function = self.instances[instance].function;
        self.functions[function as usize].idle.remove(&mut self.instances, instance);
        self.leave_node_idle(instance);
    }

    /// What an instance kept on its node while it rested is no longer idle.
    #[inline(always)]
    fn leave_node_idle(&mut self, instance: u32) {
        let state = &mut self.instances[instance];
        state.rest = Rest::NONE;
        if self.sizes_calls {
            self.nodes[state.node as usize].idle -= state.held;
            self.gauges.sub(Gauge::IdleMemory, state.held.memory.get());
        }
    }

    #[inline(always)]
    fn begin_idling(&mut self, instance: u32) {
        self.rest = self.rest.next();
        let sizes_calls = self.sizes_calls;
        let state = &mut self.instances[instance];
        state.idle_since = self.now;
        state.rest = self.rest;
        if sizes_calls {
            // An idle sandbox keeps its memory and needs no CPU.
            state.held.cpu = MilliCpu::ZERO;
        }
        let (function, node, held) = (state.function, state.node, state.held);
        self.functions[function as usize].idle.push(&mut self.instances, instance);
        if sizes_calls {
            self.nodes[node as usize].idle += held;
            self.gauges.add(Gauge::IdleMemory, held.memory.get());
            // What the call gave back may be needed by others already.
            self.make_room(node, Allocation::ZERO);
        }
        self.watch_keep_alive(function);
    }

    /// Stops idle instances on `node`, longest idle first, until `need` fits beside the rest.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, node: u32, need: Allocation) {
        while !self.nodes[node as usize].fits_beside_idle(need) && self.stop_least_worth(node) {}
    }

    #[cold]
    fn stop_least_worth(&mut self, node: u32) -> bool {
        self.least_worth(node).map(|(_, instance)| self.stop_instance(instance)).is_some()
    }

    /// The idle instance of `node` that goes first, with its claim to stay. Looking at all of them is rare
    /// work, and keeping them in order would be work for every call.
    fn least_worth(&self, node: u32) -> Option<(Claim, u32)> {
        let here = self.nodes[node as usize].instances.iter().copied();
        here.filter(|&instance| self.instances[instance].is_idle())
            .map(|instance| (self.claim_to_stay(instance), instance))
            .min()
    }

    fn claim_to_stay(&self, instance: u32) -> Claim {
        let state = &self.instances[instance];
        (self.functions[state.function as usize].worth, state.rest)
    }

    /// An instance is gone with everything it held; its calls have left before.
    pub(crate) fn stop_instance(&mut self, instance: u32) {
        debug_assert!(self.instances[instance].calls.is_empty());
        let Instance { function, node, stage, rest, held, .. } = self.instances[instance];
        if stage == Stage::Ready {
            if rest != Rest::NONE {
                self.functions[function as usize].kept = held.memory;
                self.end_idling(instance);
            }
            remove_item(&mut self.functions[function as usize].open, instance);
            self.functions[function as usize].ready -= 1;
        } else {
            self.end_prewarming(instance);
            self.functions[function as usize].starting -= 1;
        }
        if !self.sizes_calls {
            self.nodes[node as usize].release(held, self.now);
            self.gauges.release(held, held);
        }
        self.gauges.sub(Gauge::Instances, 1);
        self.gauges.instance_changes += 1;
        remove_item(&mut self.nodes[node as usize].instances, instance);
        self.instances.free(instance);
    }

    /// An instance can serve.
    pub(crate) fn on_ready(&mut self, instance: u32, token: Token) {
        let Some(state) = self.instances.get_mut(instance).filter(|state| state.token == token)
        else {
            return;
        };
        let (function, node) = (state.function, state.node);
        let call = state.calls.first().copied();
        self.end_prewarming(instance);
        self.instances[instance].stage = Stage::Ready;
        self.instances[instance].start.1 = self.now;
        self.functions[function as usize].starting -= 1;
        self.functions[function as usize].ready += 1;
        match call {
            Some(call) => self.begin_run(call),
            None => self.instance_is_free(function, instance),
        }
        self.settle(node);
    }

    /// An instance has a free place: the next call in the queue takes it, else it rests.
    #[inline(always)]
    pub(crate) fn instance_is_free(&mut self, function: u32, instance: u32) {
        if !self.sizes_calls {
            return self.serve_queue(function, instance);
        }
        self.begin_idling(instance);
        if self.functions[function as usize].keep_alive.is_zero() {
            self.stop_instance(instance);
        }
    }

    /// Sets the reminder of the end of the longest idle instance's keep-alive, if none is set.
    #[inline(always)]
    fn watch_keep_alive(&mut self, function: u32) {
        let state = &self.functions[function as usize];
        if state.expiry == Token::NONE && state.keep_alive != Duration::MAX {
            self.remind_of_keep_alive(function);
        }
    }

    fn remind_of_keep_alive(&mut self, function: u32) {
        let state = &self.functions[function as usize];
        if let Some(longest) = state.idle.first(&self.instances) {
            let at = self.instances[longest].idle_since + state.keep_alive;
            let token = self.queue.push(at.max(self.now), Event::KeepAliveEnds(function));
            self.functions[function as usize].expiry = token;
        }
    }

    /// Idle instances whose keep-alive has passed go, down to the number that is to stand ready.
    pub(crate) fn on_keep_alive_end(&mut self, function: u32, token: Token) {
        if self.functions[function as usize].expiry != token {
            return;
        }
        self.functions[function as usize].expiry = Token::NONE;
        self.stop_expired(function);
        if self.functions[function as usize].idle.len() > self.kept(function) {
            self.watch_keep_alive(function);
        }
    }

    /// Idle instances that stay whatever their age, because a tick wants them.
    fn kept(&self, function: u32) -> u32 {
        let state = &self.functions[function as usize];
        let busy = state.ready - state.idle.len();
        state.target_instances.unwrap_or(0).saturating_sub(busy + state.starting)
    }

    fn stop_expired(&mut self, function: u32) {
        let keep_alive = self.functions[function as usize].keep_alive;
        while self.functions[function as usize].idle.len() > self.kept(function) {
            let Some(longest) = self.functions[function as usize].idle.first(&self.instances)
            else {
                return;
            };
            let (since, node) = (self.instances[longest].idle_since, self.instances[longest].node);
            if since + keep_alive > self.now {
                return;
            }
            self.stop_instance(longest);
            self.settle(node);
        }
    }

    /// Brings the number of instances to the target of the last tick.
    pub(crate) fn follow_wish(&mut self, function: u32) {
        let Some(target_instances) = self.functions[function as usize].target_instances else {
            return;
        };
        let present = |state: &crate::function::Function| state.ready + state.starting;
        while present(&self.functions[function as usize]) < target_instances {
            if !self.start_without_call(function, false) {
                break;
            }
        }
        if self.settings.scale_out == ScaleOut::OnTick {
            while present(&self.functions[function as usize]) > target_instances {
                let Some(longest) = self.functions[function as usize].idle.first(&self.instances)
                else {
                    break;
                };
                let node = self.instances[longest].node;
                self.stop_instance(longest);
                self.settle(node);
            }
        }
        self.watch_keep_alive(function);
    }

    /// Starts an instance that no call is bound to; false if no node has room. Idle instances give way
    /// to one that a call waits for. One that is only expected to be needed must not push out what
    /// another function needs a second later: pre-warming that evicts feeds on itself.
    fn start_without_call(&mut self, function: u32, is_awaited: bool) -> bool {
        let sizes_calls = self.sizes_calls;
        let held = if sizes_calls {
            let cpu = self.functions[function as usize].begun_with;
            Allocation { cpu, memory: self.memory_kept(function) }
        } else {
            self.functions[function as usize].allocation
        };
        let evicts = is_awaited || (sizes_calls && self.settings.prewarm_evicts);
        let Some(node) = self.node_for_instance(function, held, evicts) else { return false };
        let at = self.place_of(function, node);
        let instance = self.begin_instance(function, at, held);
        self.instances[instance].prewarms = sizes_calls;
        if sizes_calls {
            self.make_room(node, held);
            let (cpu, memory) = held.apart();
            self.nodes[node as usize].idle += memory;
            self.gauges.add(Gauge::IdleMemory, memory.memory.get());
            self.nodes[node as usize].hold(cpu, self.now);
            self.gauges.hold(cpu, cpu);
            self.gauges.add(Gauge::StartingCpu, cpu.cpu.get());
        } else {
            self.nodes[node as usize].hold(held, self.now);
            self.gauges.hold(held, held);
        }
        let cold = self.cold_start_of(function);
        let token = self.queue.push(self.now + cold, Event::InstanceReady(instance));
        self.instances[instance].token = token;
        true
    }

    /// What an instance of `function` keeps without a call, where calls are sized one by one: what the last one kept,
    /// the user's reservation until there was one. One that is started ahead starts with as much as the last call's, as
    /// it does when a call waits for it; the call that takes it brings its own size.
    pub(crate) fn memory_kept(&self, function: u32) -> Mebibytes {
        let state = &self.functions[function as usize];
        let last = state.idle.last(&self.instances);
        last.map_or(state.kept, |instance| self.instances[instance].held.memory)
    }

    /// What an instance that was started ahead of any call holds until it is ready is let go.
    fn end_prewarming(&mut self, instance: u32) {
        let state = &mut self.instances[instance];
        if std::mem::take(&mut state.prewarms) {
            let (cpu, memory) = state.held.apart();
            let node = state.node as usize;
            state.held = memory;
            self.nodes[node].idle -= memory;
            self.gauges.sub(Gauge::IdleMemory, memory.memory.get());
            self.nodes[node].release(cpu, self.now);
            self.gauges.release(cpu, cpu);
            self.gauges.sub(Gauge::StartingCpu, cpu.cpu.get());
        }
    }

    fn cold_start_of(&mut self, function: u32) -> Duration {
        if !self.settings.cold_starts {
            return Duration::ZERO;
        }
        // Numbers far above any call's, so that the draws differ from those of calls.
        self.prewarmed += 1;
        let law = self.functions[function as usize].cold_start;
        self.cold_noise.cold_start(law, u64::MAX - self.prewarmed)
    }

    fn node_for_instance(&mut self, function: u32, held: Allocation, evicts: bool) -> Option<u32> {
        loop {
            let node = match self.settings.placement {
                Placement::LeastLoaded => self.least_loaded(held),
                Placement::WarmFirst => self.node_without_idle(function, held, evicts),
                Placement::HomeInvoker | Placement::CoverageAware => {
                    self.home_walk(function, held).map(|place| place.node)
                }
            };
            if !evicts {
                return node.filter(|&node| self.nodes[node as usize].fits_beside_idle(held));
            }
            // Idle instances of calls that are sized one by one are in nobody's way: room is counted without them.
            if node.is_some() || self.sizes_calls || self.settings.scale_out == ScaleOut::OnTick {
                return node;
            }
            let nodes = 0..self.nodes.len() as u32;
            let (_, least) = nodes.filter_map(|node| self.least_worth(node)).min()?;
            self.stop_instance(least);
        }
    }

    /// The least loaded node with room for one more instance, one on which no other of the function rests if there
    /// is such a node: what a full node keeps from calls two instances there are kept from alike.
    fn node_without_idle(&self, function: u32, held: Allocation, evicts: bool) -> Option<u32> {
        let idle = &self.functions[function as usize].idle;
        let has_idle = |node| idle.tops().any(|top| self.instances[top].node == node);
        let all = || 0..self.nodes.len() as u32;
        let fits =
            |node: &Node| node.book.has_room(held) && (evicts || node.fits_beside_idle(held));
        let others = all().filter(|&node| !has_idle(node));
        self.least_loaded_of(others, fits).or_else(|| self.least_loaded_of(all(), fits))
    }

    // ---- Platforms whose instances are sized and shared -------------------------------------------

    /// A call comes to a platform whose instances are sized and shared.
    pub(crate) fn arrive_at_instances(&mut self, function: u32, waiting: Waiting) {
        match self.free_place(function) {
            Some(instance) => {
                self.start_in(function, instance, waiting);
                let node = self.instances[instance].node;
                self.reshare_if_needed(node);
            }
            None => {
                self.enqueue(function, waiting);
                self.start_missing(function);
            }
        }
    }

    /// A ready instance with a free place: the oldest that already serves, so that load packs, else
    /// the last used idle one.
    fn free_place(&self, function: u32) -> Option<u32> {
        let state = &self.functions[function as usize];
        state.open.first().copied().or_else(|| state.idle.last(&self.instances))
    }

    /// Starts an instance if the waiting calls need one more than are on their way.
    pub(crate) fn start_missing(&mut self, function: u32) {
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

    /// After a kill the calls wait again, and an instance may be missing.
    pub(crate) fn after_kill(&mut self, function: u32) {
        if !self.sizes_calls {
            self.start_missing(function);
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
    pub(crate) fn watch_memory(&mut self, instance: u32) {
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
}
