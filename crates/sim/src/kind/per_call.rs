//! Every call brings its own size: it holds its grant from its place to its end, and an idle instance keeps the memory of
//! its last call and no CPU.

use windfall_core::{
    AdmitBy, Allocation, CallPlan, CallSafeguardChain, CpuCeiling, Duration, Mebibytes, MilliCpu,
    NodeId, QueueOrder, Start,
};

use super::Behaviour;
use crate::event_queue::Event;
use crate::function::{Head, Waiting};
use crate::gauges::Gauge;
use crate::instance::Stage;
use crate::placement::Place;
use crate::simulator::Simulator;

/// The kind.
pub(crate) struct PerCall;

impl Behaviour for PerCall {
    #[inline(always)]
    fn arrive(sim: &mut Simulator<'_>, function: u32, mut waiting: Waiting) {
        if !(sim.may_overtake(function) && sim.starts_immediately(function, &mut waiting)) {
            sim.enqueue(function, waiting);
        }
    }

    #[inline]
    fn use_room(sim: &mut Simulator<'_>, node: u32) {
        match sim.settings.queue_order {
            QueueOrder::FirstCome => sim.start_waiting(node),
            QueueOrder::ShortestFirst { starved_after } => sim.start_in_order(node, starved_after),
        }
    }

    /// Calls that wait need room: a hundred idle instances would not start them sooner.
    #[inline(always)]
    fn in_need(sim: &Simulator<'_>, function: u32) -> u32 {
        sim.functions[function as usize].running
    }

    #[inline(always)]
    fn give_back(sim: &mut Simulator<'_>, slot: u32) {
        let call = &sim.calls[slot];
        let (grant, reservation) = (call.grant, call.record.reservation);
        sim.nodes[call.record.node.index()].release(grant, sim.now);
        sim.gauges.release(grant, reservation);
    }

    #[inline(always)]
    fn place_is_free(sim: &mut Simulator<'_>, function: u32, instance: u32) {
        sim.begin_idling(instance);
        if sim.functions[function as usize].keep_alive.is_zero() {
            sim.stop_instance(instance);
        }
    }

    fn after_kill(_: &mut Simulator<'_>, _: u32) {}

    #[inline(always)]
    fn begin_idle(sim: &mut Simulator<'_>, instance: u32) {
        let state = &mut sim.instances[instance];
        // An idle sandbox keeps its memory and needs no CPU.
        state.held.cpu = MilliCpu::ZERO;
        let (node, held) = (state.node, state.held);
        sim.nodes[node as usize].idle += held;
        sim.gauges.add(Gauge::IdleMemory, held.memory.get());
        // What the call gave back may be needed by others already.
        sim.make_room(node, Allocation::ZERO);
    }

    #[inline(always)]
    fn end_idle(sim: &mut Simulator<'_>, instance: u32) {
        let state = &sim.instances[instance];
        sim.nodes[state.node as usize].idle -= state.held;
        sim.gauges.sub(Gauge::IdleMemory, state.held.memory.get());
    }

    fn stop(_: &mut Simulator<'_>, _: u32) {}

    fn size_ahead(sim: &Simulator<'_>, function: u32) -> Allocation {
        let cpu = sim.functions[function as usize].begun_with;
        Allocation { cpu, memory: sim.memory_kept(function) }
    }

    fn evicts_ahead(sim: &Simulator<'_>) -> bool {
        sim.settings.prewarm_evicts
    }

    fn hold_ahead(sim: &mut Simulator<'_>, instance: u32) {
        let state = &mut sim.instances[instance];
        state.prewarms = true;
        let (node, held) = (state.node, state.held);
        sim.make_room(node, held);
        let (cpu, memory) = held.apart();
        sim.nodes[node as usize].idle += memory;
        sim.gauges.add(Gauge::IdleMemory, memory.memory.get());
        sim.nodes[node as usize].hold(cpu, sim.now);
        sim.gauges.hold(cpu, cpu);
        sim.gauges.add(Gauge::StartingCpu, cpu.cpu.get());
    }

    /// Idle instances are in nobody's way: room is counted without them.
    fn stops_idle_for_instances(_: &Simulator<'_>) -> bool {
        false
    }

    fn start_of_next(sim: &Simulator<'_>, function: u32) -> Option<Allocation> {
        Some(Self::size_ahead(sim, function))
    }
}

impl Simulator<'_> {
    /// A call whose function has nobody waiting: it starts immediately if a node has room.
    #[inline(always)]
    fn starts_immediately(&mut self, function: u32, waiting: &mut Waiting) -> bool {
        if self.leaves_calls_alone {
            let start = self.start_as_reserved(function);
            let Some(at) = self.choose_as_reserved(function, start.grant) else { return false };
            if self.waits_for_warm(function, at.node, Duration::ZERO) {
                return false;
            }
            self.place(function, waiting, None, start, at);
            self.reshare_if_needed(at.node);
            return true;
        }
        let view = self.view(function, waiting);
        let mut plan = self.control.size(&view);
        let at = match self.admit_by {
            AdmitBy::Grants => self.choose_place(function, &plan),
            AdmitBy::Control | AdmitBy::FuturePeak => self.choose_admitting(&view, &plan),
        };
        let Some(at) = at else { return false };
        if self.waits_for_warm(function, at.node, Duration::ZERO) {
            return false;
        }
        let room = self.nodes[at.node as usize].book.room();
        let start = self.control.start(&view, &plan, NodeId(at.node), room);
        self.place(function, waiting, Some(&mut plan), start, at);
        self.reshare_if_needed(at.node);
        true
    }

    /// How a call starts that gets the user's size without a plan.
    #[inline(always)]
    fn start_as_reserved(&self, function: u32) -> Start {
        let reservation = self.functions[function as usize].reservation;
        let grant = reservation.min(self.settings.ceiling);
        Start { grant, cpu_ceiling: CpuCeiling::AtGrant, look_after: None }
    }

    fn start_waiting(&mut self, node: u32) {
        let mut place = 0;
        while let Some(&Head { function, least, .. }) = self.heads.get(place) {
            let room = self.nodes[node as usize].book.room();
            if room.cpu.get() == 0 || room.memory.get() == 0 {
                return;
            }
            let least = least.unwrap_or_else(|| self.size_head(function, place));
            if least.fits(room) && self.admits_head(function, node) {
                // Whoever follows in this queue is younger, so nobody before `place` has changed.
                self.start_head(function, node);
            } else {
                place += 1;
            }
        }
    }

    /// Whether the first in a queue may start on `node`, which has room for it.
    #[inline]
    fn admits_head(&mut self, function: u32, node: u32) -> bool {
        if self.admit_by == AdmitBy::Grants {
            return true;
        }
        let state = &self.functions[function as usize];
        let Some(first) = state.queue.front() else { return false };
        let view = self.view(function, first);
        let plan = match (&state.head_plan, first.earlier.is_some()) {
            (Some(plan), false) => plan.clone(),
            (_, true) => CallSafeguardChain::default().as_reserved(&view),
            (None, false) => self.control.size(&view),
        };
        self.admits(node, &view, &plan).is_some()
    }

    /// Starts the call at `place` of a queue on `node` if that takes it.
    pub(crate) fn start_waiting_call(&mut self, function: u32, place: usize, node: u32) -> bool {
        let Some(waiting) = self.functions[function as usize].queue.get(place) else {
            return false;
        };
        if self.leaves_calls_alone {
            let start = self.start_as_reserved(function);
            if !self.nodes[node as usize].book.has_room(start.grant) {
                return false;
            }
            let Some(mut waiting) = self.dequeue_at(function, place) else { return false };
            self.place(function, &mut waiting, None, start, self.place_of(function, node));
            self.record_presence(function);
            return true;
        }
        let view = self.view(function, waiting);
        let is_retry = waiting.earlier.is_some();
        let mut plan = match is_retry {
            true => CallSafeguardChain::default().as_reserved(&view),
            false => self.control.size(&view),
        };
        if self.admits(node, &view, &plan).is_none() {
            return false;
        }
        let Some(mut waiting) = self.dequeue_at(function, place) else { return false };
        let room = self.nodes[node as usize].book.room();
        let start = self.control.start(&view, &plan, NodeId(node), room);
        let plan = if is_retry { None } else { Some(&mut plan) };
        self.place(function, &mut waiting, plan, start, self.place_of(function, node));
        self.record_presence(function);
        true
    }

    /// Sizes the first in a queue and notes the least it can start with.
    fn size_head(&mut self, function: u32, place: usize) -> Allocation {
        let state = &self.functions[function as usize];
        let Some(first) = state.queue.front() else { return Allocation::ZERO };
        let least = if first.earlier.is_some() || self.leaves_calls_alone {
            self.start_as_reserved(function).grant
        } else {
            let view = self.view(function, first);
            let plan = self.control.size(&view);
            let least = plan.least();
            self.functions[function as usize].head_plan = Some(plan);
            least
        };
        self.heads[place].least = Some(least);
        least
    }

    fn start_head(&mut self, function: u32, node: u32) {
        let plan = self.functions[function as usize].head_plan.take();
        let Some(mut waiting) = self.dequeue(function) else { return };
        let at = self.place_of(function, node);
        if self.leaves_calls_alone {
            let start = self.start_as_reserved(function);
            self.place(function, &mut waiting, None, start, at);
        } else if waiting.earlier.is_some() {
            let start = self.start_again(function, &waiting, node);
            self.place(function, &mut waiting, None, start, at);
        } else {
            let view = self.view(function, &waiting);
            let mut plan = plan.unwrap_or_else(|| self.control.size(&view));
            let room = self.nodes[node as usize].book.room();
            let start = self.control.start(&view, &plan, NodeId(node), room);
            self.place(function, &mut waiting, Some(&mut plan), start, at);
        }
        self.record_presence(function);
    }

    /// A killed call is tried again at the user's size, which no policy is asked about; its first plan stays on record.
    #[cold]
    fn start_again(&mut self, function: u32, waiting: &Waiting, node: u32) -> Start {
        let view = self.view(function, waiting);
        let plan = CallSafeguardChain::default().as_reserved(&view);
        let room = self.nodes[node as usize].book.room();
        self.control.start(&view, &plan, NodeId(node), room)
    }

    /// Gives a call its place on a node that has room for it. Without a plan it was given the user's size.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        function: u32,
        waiting: &mut Waiting,
        plan: Option<&mut CallPlan>,
        start: Start,
        at: Place,
    ) {
        let node = at.node;
        debug_assert!(start.grant.fits(self.nodes[node as usize].book.room()), "{}", start.grant);
        let warm = self.take_idle(function, at.steps);
        let asked = start.grant;
        let (start, warm) = self.fit_resident(start, warm, node);
        self.make_room(node, start.grant);
        self.nodes[node as usize].hold(start.grant, self.now);
        self.gauges.hold(start.grant, self.functions[function as usize].reservation);
        let instance = match warm {
            Some(instance) => instance,
            None => self.begin_instance(function, at, start.grant),
        };
        let call = self.new_call(function, waiting, plan, start, instance);
        self.join(call, instance);
        let state = &mut self.instances[instance];
        (state.held, state.ceiling) = (start.grant, start.cpu_ceiling);
        if start.grant != asked {
            self.report_start_refused(call, asked);
        }
        if warm.is_some() {
            self.begin_run(call);
        } else {
            self.await_instance(call, instance);
            if self.settings.tells_presence {
                self.functions[function as usize].record_passed_over(self.now);
            }
        }
    }

    /// Reminds the call of when its instance will be ready.
    fn await_instance(&mut self, call: u32, instance: u32) {
        let record = &mut self.calls[call].record;
        let function = &mut self.functions[record.function.index()];
        let cold = if self.settings.cold_starts {
            self.cold_noise.cold_start(function.cold_start, record.id.0)
        } else {
            Duration::ZERO
        };
        function.window.cold_starts += 1;
        let cold = self.start_under_limit(cold, instance);
        self.calls[call].record.cold_start = cold;
        let token = self.queue.push(self.now + cold, Event::InstanceReady(instance));
        self.instances[instance].token = token;
        debug_assert!(self.instances[instance].stage == Stage::Starting);
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
    pub(crate) fn end_prewarming(&mut self, instance: u32) {
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
}
