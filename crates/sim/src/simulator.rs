//! The state of the world and the loop that moves it.

use std::collections::VecDeque;

use windfall_core::seed::mix;
use windfall_core::{
    AdmitBy, Allocation, Arrival, CallControl, Duration, GrantChange, PlatformError, Seed,
    TelemetrySink, Timestamp, Workload,
};

use crate::admission::UseChange;
use crate::call::Call;
use crate::event_queue::{Event, EventQueue, Token};
use crate::function::{Function, Head};
use crate::gauges::{Gauge, Gauges};
use crate::idle::Rest;
use crate::instance::Instance;
use crate::kind::Kind;
use crate::ledger::Ledger;
use crate::node::Node;
use crate::noise::Noise;
use crate::observe::LastObservation;
use crate::placement::{steps_to_next, stride};
use crate::queue_order::Candidate;
use crate::settings::{Cluster, Settings};
use crate::slab::Slab;
use crate::water_filling::Claim;

/// Arrivals that are drawn together: enough that the tables they are drawn from are fetched for many.
const AHEAD: usize = 128;

/// A simulated platform with its workload. Borrowed parts outlive it, so that a caller can read its
/// sink and its control afterwards.
pub struct Simulator<'a> {
    pub(crate) settings: Settings,
    pub(crate) workload: Box<dyn Workload + 'a>,
    pub(crate) control: Box<dyn CallControl + 'a>,
    pub(crate) sink: Box<dyn TelemetrySink + 'a>,
    pub(crate) now: Timestamp,
    pub(crate) queue: EventQueue,
    pub(crate) calls: Slab<Call>,
    pub(crate) instances: Slab<Instance>,
    pub(crate) functions: Vec<Function>,
    pub(crate) nodes: Vec<Node>,
    /// Functions with waiting calls, by the arrival of the first one.
    pub(crate) heads: Vec<Head>,
    pub(crate) gauges: Gauges,
    pub(crate) ledger: Ledger,
    pub(crate) stride: u32,
    pub(crate) steps_to_next: u32,
    /// Whether every call gets what its user reserves and the control need not be asked.
    pub(crate) leaves_calls_alone: bool,
    /// Who decides whether a node can take a call.
    pub(crate) admit_by: AdmitBy,
    /// How often all calls of a node are looked at while it is short of CPU.
    pub(crate) looks_while_short: Option<Duration>,
    /// The node that is kept for a call of this function that has waited too long.
    pub(crate) kept_node: Option<(u32, u32)>,
    /// Whether nodes keep a list of their running calls: whoever competes or is called back is found there.
    pub(crate) lists_running: bool,
    /// Whether anybody may still observe what is counted for ticks.
    pub(crate) is_observed: bool,
    /// What holds resources here: each call, or sized instances.
    pub(crate) kind: Kind,
    /// Whether calls can ever want more CPU than their node has: not where each holds its own and no
    /// more is granted than there is.
    pub(crate) can_compete: bool,
    pub(crate) cold_noise: Noise,
    pub(crate) sensor_noise: Noise,
    pub(crate) fault_noise: Noise,
    pub(crate) last_observation: LastObservation,
    /// Millicore-nanoseconds used by calls that have ended.
    pub(crate) used: f64,
    /// Arrivals that were drawn ahead, and which of them is next; none at the end of the workload.
    coming: Vec<Arrival>,
    next_coming: usize,
    next_interval: Timestamp,
    arrived: u64,
    pub(crate) prewarmed: u64,
    /// The last rest that an instance began.
    pub(crate) rest: Rest,
    events: u64,
    // Lists that are filled and emptied within one event, kept to spare allocations.
    pub(crate) changes: Vec<GrantChange>,
    /// Slots of calls whose change may be in force now and is to be reported.
    pub(crate) in_force: VecDeque<u32>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) inner_claims: Vec<Claim>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) use_changes: Vec<UseChange>,
    pub(crate) done: Vec<u32>,
}

impl<'a> Simulator<'a> {
    /// A cluster at rest, with everything random drawn from `seed`.
    pub fn new(
        settings: Settings,
        workload: impl Workload + 'a,
        control: impl CallControl + 'a,
        sink: impl TelemetrySink + 'a,
        seed: Seed,
    ) -> Self {
        let mut simulator = Self {
            leaves_calls_alone: false,
            admit_by: AdmitBy::Grants,
            looks_while_short: None,
            kept_node: None,
            lists_running: true,
            is_observed: true,
            settings,
            workload: Box::new(workload),
            control: Box::new(control),
            sink: Box::new(sink),
            now: Timestamp::ZERO,
            queue: EventQueue::default(),
            calls: Slab::default(),
            instances: Slab::default(),
            functions: Vec::new(),
            nodes: Vec::new(),
            heads: Vec::new(),
            gauges: Gauges::default(),
            ledger: Ledger::default(),
            stride: stride(settings.cluster.nodes),
            steps_to_next: steps_to_next(stride(settings.cluster.nodes), settings.cluster.nodes),
            kind: Kind::of(&settings),
            can_compete: true,
            cold_noise: Noise::new(seed),
            sensor_noise: Noise::new(seed),
            fault_noise: Noise::new(seed),
            last_observation: LastObservation::default(),
            used: 0.0,
            coming: Vec::new(),
            next_coming: 0,
            next_interval: Timestamp::ZERO,
            arrived: 0,
            prewarmed: 0,
            rest: Rest::FIRST,
            events: 0,
            changes: Vec::new(),
            in_force: VecDeque::new(),
            claims: Vec::new(),
            inner_claims: Vec::new(),
            candidates: Vec::new(),
            use_changes: Vec::new(),
            done: Vec::new(),
        };
        simulator.start_over(seed);
        simulator
    }

    /// Puts everything back to the beginning, with other draws.
    pub(crate) fn start_over(&mut self, seed: Seed) {
        let cluster = self.settings.cluster;
        self.workload.restart(seed);
        self.now = Timestamp::ZERO;
        self.queue = EventQueue::default();
        self.calls = Slab::default();
        self.instances = Slab::default();
        self.heads.clear();
        self.admit_by = self.control.hints().admit_by;
        self.looks_while_short = self.control.hints().looks_while_short;
        self.kept_node = None;
        let bound = match self.admit_by {
            AdmitBy::Grants => cluster.over_commit_cpu,
            AdmitBy::Control | AdmitBy::FuturePeak => self.settings.guarantee_bound,
        };
        let granted = Cluster { over_commit_cpu: bound, ..cluster };
        self.nodes = (0..cluster.nodes).map(|_| Node::new(&granted)).collect();
        self.functions = (0u64..)
            .zip(self.workload.functions())
            .map(|(i, profile)| {
                let home = (mix(i.wrapping_add(1)) % u64::from(cluster.nodes)) as u32;
                Function::new(profile, &self.settings, home)
            })
            .collect();
        // A reservation of nothing, or of more than a node has, needs a plan that says so.
        let is_usual = |function: &Function| {
            let Function { reservation, .. } = *function;
            reservation.fits(self.settings.ceiling) && Allocation::new(1, 1).fits(reservation)
        };
        self.leaves_calls_alone =
            self.control.hints().leaves_calls_alone && self.functions.iter().all(is_usual);
        // Under the kernel's CPU a policy may let calls use more than they are granted.
        self.can_compete = cluster.over_commit_cpu > 1.0
            || self.settings.cpu_weights
            || !self.settings.sizes_calls()
            || !(self.settings.cpu.is_fluid() || self.leaves_calls_alone);
        self.lists_running = self.can_compete || !self.leaves_calls_alone;
        self.is_observed = true;
        self.gauges = Gauges::default();
        for _ in 0..cluster.nodes {
            self.gauges.add(Gauge::Capacity, cluster.node.cpu.get());
        }
        self.ledger = Ledger::default();
        self.cold_noise = Noise::new(seed.stream("cold-starts"));
        self.sensor_noise = Noise::new(seed.stream("sensors"));
        self.fault_noise = Noise::new(seed.stream("faults"));
        self.last_observation = LastObservation::default();
        self.used = 0.0;
        self.draw_ahead();
        self.next_interval = Timestamp::ZERO + self.settings.interval;
        self.arrived = 0;
        self.prewarmed = 0;
        self.rest = Rest::FIRST;
        self.events = 0;
        self.plan_faults();
    }

    /// The time inside the simulation.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Where every call went so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Arrivals and events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The sink that receives every record.
    pub fn sink(&mut self) -> &mut (dyn TelemetrySink + 'a) {
        self.sink.as_mut()
    }

    /// When the last arrival may come at the latest.
    pub fn horizon(&self) -> Timestamp {
        self.workload.horizon()
    }

    /// Whether every call has come and gone.
    pub fn is_over(&self) -> bool {
        self.next_coming == self.coming.len()
            && self.ledger.running == 0
            && self.ledger.waiting == 0
    }

    /// Whether nothing is granted, owed or shared any more: what must hold when a run is over.
    pub fn is_at_rest(&self) -> bool {
        let is_idle = |node: &Node| {
            node.running.is_empty()
                && !node.book.owes()
                && node.potential == 0
                && node.crowded == 0
                && (self.kind == Kind::SizedInstances || node.book.in_force() == Allocation::ZERO)
        };
        self.nodes.iter().all(is_idle) && self.heads.is_empty()
    }

    /// Runs until the last call has ended, and closes the last interval. Nothing is counted for
    /// observations any more.
    pub fn run_to_end(&mut self) {
        while self.run_some(u64::MAX) {}
    }

    /// Handles up to `most` events; false when the last call has ended and everything was reported. Nothing is
    /// counted for observations any more: this is for runs without ticks.
    pub fn run_some(&mut self, most: u64) -> bool {
        self.is_observed = false;
        for _ in 0..most {
            if self.is_over() || !self.step(Timestamp::MAX) {
                self.finish_intervals();
                return false;
            }
        }
        true
    }

    /// Events that are still to come.
    pub fn pending_events(&self) -> usize {
        self.queue.len()
    }

    /// Closes the interval under way: the last thing to do in a run.
    pub fn finish_intervals(&mut self) {
        if self.now > Timestamp::ZERO {
            self.close_interval(self.now);
        }
    }

    /// Lets time pass until `at`.
    pub(crate) fn run_until(&mut self, at: Timestamp) -> Result<(), PlatformError> {
        if at < self.now {
            return Err(PlatformError::BackInTime { now: self.now, to: at });
        }
        while self.step(at) {}
        self.pass_intervals(at);
        self.now = at;
        // What is carried out now begins now, not at the last event.
        self.gauges.touch(at);
        Ok(())
    }

    /// Handles the next thing that happens, unless it happens after `until`.
    fn step(&mut self, until: Timestamp) -> bool {
        let event_at = self.queue.next_at();
        let arrival = self.coming.get(self.next_coming);
        let arrival_at = arrival.map_or(Timestamp::MAX, |arrival| arrival.at);
        let at = event_at.min(arrival_at);
        if at > until || at == Timestamp::MAX {
            return false;
        }
        self.pass_intervals(at);
        self.now = at;
        self.gauges.touch(at);
        self.events += 1;
        // What ends makes room before what comes asks for it.
        if event_at <= arrival_at {
            if let Some((_, token, event)) = self.queue.pop() {
                self.handle(token, event);
            }
        } else {
            self.take_next_arrival();
        }
        true
    }

    fn take_next_arrival(&mut self) {
        let arrival = self.coming[self.next_coming];
        self.next_coming += 1;
        if self.next_coming == self.coming.len() {
            self.draw_ahead();
        }
        let id = self.arrived;
        self.arrived += 1;
        self.arrive(id, arrival);
    }

    fn draw_ahead(&mut self) {
        self.coming.clear();
        self.next_coming = 0;
        self.workload.next_arrivals(AHEAD, &mut self.coming);
    }

    fn handle(&mut self, token: Token, event: Event) {
        match event {
            Event::CallTurns(call) => self.on_turn(call, token),
            Event::Look(call) => self.on_look(call, token),
            Event::Resize(call) => self.on_resize(call, token),
            Event::InstancesResize(function) => self.on_instances_resize(function, token),
            Event::InstanceReady(instance) => self.on_ready(instance, token),
            Event::InstanceOutgrows(instance) => self.on_outgrown(instance, token),
            Event::KeepAliveEnds(function) => self.on_keep_alive_end(function, token),
            Event::ShareChanges(node) => self.on_share_change(node, token),
            Event::NodeShort(node) => self.on_node_short(node),
            Event::NodeFails(node) => self.on_node_failure(node),
            Event::NodeReturns(node) => self.on_node_return(node),
        }
    }

    /// Tells telemetry of every interval that has ended by `until`.
    fn pass_intervals(&mut self, until: Timestamp) {
        while self.next_interval <= until {
            self.close_interval(self.next_interval);
            self.next_interval += self.settings.interval;
        }
    }

    fn close_interval(&mut self, at: Timestamp) {
        let mut used = self.used;
        for call in self.calls.iter_mut() {
            call.catch_up(at);
            used += call.record.cpu_used as f64;
        }
        let mut held_back = 0;
        for node in &mut self.nodes {
            node.count_held_back(at);
            held_back += node.held_back_time.kept();
        }
        let record = self.gauges.close_interval(at, used, held_back);
        if record.until > record.from {
            self.sink.interval(&record);
        }
        debug_assert!(self.ledger.balances(), "{:?}", self.ledger);
    }
}
