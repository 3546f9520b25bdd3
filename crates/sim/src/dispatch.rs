//! Arrivals and queues, and what a call brings to its place. Where a call starts depends on the kind of platform
//! (`kind`).

use windfall_core::{
    Arrival, CallEnd, CallId, CallPlan, CallView, Foresight, FunctionId, NodeId, Room, Start,
    Timestamp,
};

use crate::call_record::{begin_story, note_plan, record_of_rejected};
use crate::cpu_model::CpuModel;
use crate::function::{Head, Waiting};
use crate::gauges::Gauge;
use crate::kind::by_kind;
use crate::simulator::Simulator;

impl Simulator<'_> {
    /// A call comes.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, id: u64, arrival: Arrival) {
        let function = arrival.function.0;
        let waiting = Waiting {
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
        by_kind!(self => arrive(function, waiting));
        self.record_presence(function);
    }

    /// Keeps for the next observation how many calls of `function` are in need of an instance from now on, if ticks
    /// want to know.
    #[inline(always)]
    pub(crate) fn record_presence(&mut self, function: u32) {
        if self.settings.tells_presence {
            let calls = by_kind!(self => in_need(function));
            self.functions[function as usize].record_presence(self.now, calls);
        }
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
        self.record_presence(function);
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

    /// Takes the call at `place` out of a queue: mostly the first.
    pub(crate) fn dequeue_at(&mut self, function: u32, place: usize) -> Option<Waiting> {
        if place == 0 {
            return self.dequeue(function);
        }
        let state = &mut self.functions[function as usize];
        state.note_presence(self.now);
        let waiting = state.queue.remove(place)?;
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
            capabilities: self.settings.call_capabilities(),
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
            by_kind!(self => use_room(node));
        }
        self.reshare_if_needed(node);
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
        (state.begun_with, state.begun_under) = (start.grant.cpu, start.cpu_ceiling);
        let node = NodeId(self.instances[instance].node);
        let slot = self.calls.take();
        let call = &mut self.calls[slot];
        begin_story(&mut call.record, function, waiting, state.reservation, start.grant, now);
        call.record.node = node;
        if let Some(plan) = plan {
            note_plan(&mut call.record, plan);
        }
        call.earlier = waiting.earlier.take();
        call.record.cpu_ceiling = start.cpu_ceiling;
        call.demand = waiting.demand;
        call.instance = instance;
        call.take_place(start, now);
        slot
    }

    /// Makes a call one of its instance's.
    #[inline(always)]
    pub(crate) fn join(&mut self, call: u32, instance_slot: u32) {
        let widest = u64::from(self.calls[call].demand.parallelism.get());
        let instance = &mut self.instances[instance_slot];
        instance.calls.push(call);
        instance.widest += widest;
        if let CpuModel::Kernel(kernel) = self.settings.cpu {
            self.prepare_for_kernel(call, instance_slot, &kernel);
        }
    }
}
