//! Who starts where: arrivals, queues, and the walk from a freed node back to whoever waits.

use windfall_core::{
    Allocation, Arrival, CallCapabilities, CallEnd, CallId, CallPlan, CallSafeguardChain, CallView,
    CpuCeiling, Duration, Foresight, FunctionId, NodeId, Room, Start, Timestamp,
};

use crate::call_record::{begin_story, note_plan, record_of_rejected};
use crate::event_queue::Event;
use crate::function::{Head, Waiting};
use crate::gauges::Gauge;
use crate::instance::Stage;
use crate::placement::Place;
use crate::simulator::Simulator;

/// What can be set for single calls: here the grant is the call's weight and its quota in one.
pub(crate) const CAPABILITIES: CallCapabilities = CallCapabilities::QUOTA;

impl Simulator<'_> {
    /// A call comes.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, id: u64, arrival: Arrival) {
        let function = arrival.function.0;
        let mut waiting = Waiting {
            id: CallId(id),
            arrived_at: arrival.at,
            demand: arrival.demand,
            earlier: None,
        };
        let now = self.now;
        let state = &mut self.functions[function as usize];
        if self.is_observed {
            state.note_presence(now);
            state.window.arrivals += 1;
        }
        self.ledger.arrived += 1;
        self.gauges.arrivals += 1;
        self.gauges.add(Gauge::Demand, state.reservation.cpu.get());
        if !self.sizes_calls {
            self.arrive_at_instances(function, waiting);
        } else if self.functions[function as usize].queue.is_empty() {
            if !self.starts_at_once(function, &mut waiting) {
                self.enqueue(function, waiting);
            }
        } else {
            self.enqueue(function, waiting);
        }
        if self.settings.tells_presence {
            self.functions[function as usize].tell_presence(now, self.sizes_calls);
        }
    }

    /// A call whose function has nobody waiting: it starts at once if a node has room.
    #[inline(always)]
    fn starts_at_once(&mut self, function: u32, waiting: &mut Waiting) -> bool {
        if self.leaves_calls_alone {
            let start = self.start_as_reserved(function);
            let Some(at) = self.choose_as_reserved(function, start.grant) else { return false };
            self.place(function, waiting, None, start, at);
            self.reshare_if_needed(at.node);
            return true;
        }
        let view = self.view(function, waiting);
        let mut plan = self.control.size(&view);
        let Some(at) = self.choose_place(function, &plan) else { return false };
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

    /// Puts a call at the end of its queue, or turns it away if the queue is full.
    pub(crate) fn enqueue(&mut self, function: u32, waiting: Waiting) {
        let state = &mut self.functions[function as usize];
        if self.settings.queue_limit.is_some_and(|limit| state.queue.len() >= limit as usize) {
            return self.reject(function, &waiting);
        }
        if state.queue.is_empty() {
            self.heads_insert(waiting.arrived_at, function);
        }
        self.functions[function as usize].queue.push_back(waiting);
        self.ledger.waiting += 1;
        self.gauges.add(Gauge::Waiting, 1);
    }

    /// Puts a call that was killed back at the front: it has waited already.
    pub(crate) fn enqueue_again(&mut self, function: u32, waiting: Waiting) {
        let state = &mut self.functions[function as usize];
        state.note_presence(self.now);
        state.head_plan = None;
        if let Some(at) = state.queue.front().map(|first| first.arrived_at) {
            self.heads_remove(at, function);
        }
        self.heads_insert(waiting.arrived_at, function);
        self.functions[function as usize].queue.push_front(waiting);
        self.ledger.waiting += 1;
        self.gauges.add(Gauge::Waiting, 1);
        if self.settings.tells_presence {
            self.functions[function as usize].tell_presence(self.now, self.sizes_calls);
        }
    }

    fn reject(&mut self, function: u32, waiting: &Waiting) {
        let reservation = self.functions[function as usize].reservation;
        self.gauges.sub(Gauge::Demand, reservation.cpu.get());
        self.ledger.book(CallEnd::Rejected);
        let record = record_of_rejected(function, waiting, reservation, self.now);
        self.sink.call(&record);
    }

    /// Takes the first call out of a queue.
    pub(crate) fn dequeue(&mut self, function: u32) -> Option<Waiting> {
        self.functions[function as usize].note_presence(self.now);
        let state = &mut self.functions[function as usize];
        let waiting = state.queue.pop_front()?;
        state.head_plan = None;
        let next = state.queue.front().map(|next| next.arrived_at);
        self.heads_remove(waiting.arrived_at, function);
        if let Some(at) = next {
            self.heads_insert(at, function);
        }
        self.ledger.waiting -= 1;
        self.gauges.sub(Gauge::Waiting, 1);
        Some(waiting)
    }

    /// Where the head of `function` that arrived at `at` stands or would stand: oldest first.
    fn head_place(&self, at: Timestamp, function: u32) -> usize {
        self.heads.partition_point(|head| (head.at, head.function) < (at, function))
    }

    fn heads_insert(&mut self, at: Timestamp, function: u32) {
        let place = self.head_place(at, function);
        self.heads.insert(place, Head { at, function, least: None });
    }

    fn heads_remove(&mut self, at: Timestamp, function: u32) {
        let place = self.head_place(at, function);
        debug_assert!(self.heads[place].function == function);
        self.heads.remove(place);
    }

    /// A call of `function` has ended and the policy may have learned: the plan of whoever waits first
    /// is out of date.
    pub(crate) fn size_head_again(&mut self, function: u32) {
        let state = &mut self.functions[function as usize];
        state.head_plan = None;
        if let Some(at) = state.queue.front().map(|first| first.arrived_at) {
            let place = self.head_place(at, function);
            self.heads[place].least = None;
        }
    }

    /// What a policy sees of a call that is about to start.
    #[inline(always)]
    pub(crate) fn view(&self, function: u32, waiting: &Waiting) -> CallView {
        let limit = self.nodes[0].book.limit();
        let nodes = self.nodes.len() as f64;
        let granted = |gauge| self.gauges.level(gauge);
        CallView {
            id: waiting.id,
            function: FunctionId(function),
            now: self.now,
            arrived_at: waiting.arrived_at,
            input: waiting.demand.input,
            reservation: self.functions[function as usize].reservation,
            ceiling: self.settings.ceiling,
            free_in_cluster: Room {
                cores: nodes * limit.cpu.cores() - granted(Gauge::GrantedCpu) * 1e-3,
                mib: nodes * limit.memory.mib() - granted(Gauge::GrantedMemory),
            },
            waiting: self.ledger.waiting,
            capabilities: CAPABILITIES,
            foresight: self.settings.foresight.then_some(Foresight { demand: waiting.demand }),
        }
    }

    /// Gives room that came free on `node` to whoever waits longest and fits: debts first.
    #[inline(always)]
    pub(crate) fn settle(&mut self, node: u32) {
        if self.nodes[node as usize].book.owes() {
            self.pay_debts(node);
        }
        if !self.in_force.is_empty() {
            self.report_resized();
        }
        if !self.heads.is_empty() {
            if self.sizes_calls {
                self.start_waiting(node);
            } else {
                self.start_missing_instances();
            }
        }
        self.reshare_if_needed(node);
    }

    fn start_missing_instances(&mut self) {
        for place in 0..self.heads.len() {
            self.start_missing(self.heads[place].function);
        }
    }

    fn start_waiting(&mut self, node: u32) {
        let mut place = 0;
        while let Some(&Head { function, least, .. }) = self.heads.get(place) {
            let room = self.nodes[node as usize].book.room();
            if room.cpu.get() == 0 || room.memory.get() == 0 {
                return;
            }
            let least = least.unwrap_or_else(|| self.size_head(function, place));
            if least.fits(room) {
                // Whoever follows in this queue is younger, so nobody before `place` has changed.
                self.start_head(function, node);
            } else {
                place += 1;
            }
        }
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
        if self.settings.tells_presence {
            self.functions[function as usize].tell_presence(self.now, self.sizes_calls);
        }
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
        self.make_room(node, start.grant);
        self.nodes[node as usize].hold(start.grant, self.now);
        self.gauges.hold(start.grant, self.functions[function as usize].reservation);
        let instance = match warm {
            Some(instance) => instance,
            None => self.begin_instance(function, at, start.grant),
        };
        let call = self.new_call(function, waiting, plan, start, instance);
        self.join(call, instance);
        let held = start.grant;
        self.instances[instance].held = held;
        if warm.is_some() {
            self.begin_run(call);
        } else {
            self.await_instance(call, instance);
            if self.settings.tells_presence {
                self.functions[function as usize].tell_passed_over(self.now);
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
        record.cold_start = cold;
        function.window.cold_starts += 1;
        let token = self.queue.push(self.now + cold, Event::InstanceReady(instance));
        self.instances[instance].token = token;
        debug_assert!(self.instances[instance].stage == Stage::Starting);
    }

    /// A call with a place, its counters at zero.
    #[inline(always)]
    pub(crate) fn new_call(
        &mut self,
        function: u32,
        waiting: &mut Waiting,
        plan: Option<&mut CallPlan>,
        start: Start,
        instance: u32,
    ) -> u32 {
        let now = self.now;
        self.ledger.running += 1;
        self.gauges.add(Gauge::Running, 1);
        // Its presence was noted when it arrived or left the queue, at this same moment.
        let state = &mut self.functions[function as usize];
        state.running += 1;
        state.begun_with = start.grant.cpu;
        let node = NodeId(self.instances[instance].node);
        let slot = self.calls.take();
        let call = &mut self.calls[slot];
        begin_story(&mut call.record, function, waiting, state.reservation, start.grant, now);
        call.record.node = node;
        if let Some(plan) = plan {
            note_plan(&mut call.record, plan);
        }
        call.earlier = waiting.earlier.take();
        call.demand = waiting.demand;
        call.instance = instance;
        call.take_place(start, now);
        slot
    }

    /// Makes a call one of its instance's.
    #[inline(always)]
    pub(crate) fn join(&mut self, call: u32, instance: u32) {
        let widest = u64::from(self.calls[call].demand.parallelism.get());
        let instance = &mut self.instances[instance];
        instance.calls.push(call);
        instance.widest += widest;
    }
}
