//! A small platform for stories, in which everything goes wrong that can go wrong between a control and the machine:
//! changes are refused, come late, come in half or after the one that replaced them, measurements get lost, calls are
//! killed, lost one by one, or all at once with their node.

use std::collections::{BTreeMap, VecDeque};

use windfall_core::conformance::{CheckedCalls, outcome_of};
use windfall_core::seed::mix;
use windfall_core::{
    Allocation, CallClose, CallControl, CallId, CallSafeguardChain, CallView, Duration,
    GrantChange, MilliCpu, NodeId, Refusal, Resized, RunningCall, Sensed, Timestamp,
};

use super::CallLoop;
use crate::node_book::NodeBook;

/// What may be granted on each node.
pub(super) const LIMIT: Allocation = Allocation::new(4000, 2048);
const NODES: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive,
    Look(CallId, u64),
    Apply(CallId, u64),
    End(CallId, u64),
    LoseNode(NodeId),
    NodeReturns(NodeId),
}

/// What will become of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    Half,
    /// What finds no room is given up instead of owed.
    NotOwed,
}

#[derive(Clone, Debug)]
struct Change {
    number: u64,
    asked: Allocation,
    fate: Fate,
    /// Whether it takes effect and is reported even if a later one replaces it.
    is_stubborn: bool,
}

#[derive(Clone, Debug)]
struct Call {
    view: CallView,
    node: NodeId,
    /// Tells this attempt's events from those of an earlier one.
    attempt: u64,
    in_force: Allocation,
    held_back: MilliCpu,
    change: Option<Change>,
    started_at: Timestamp,
    is_second_try: bool,
}

/// How a story goes wrong: one in so many, never if 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) refuses: u64,
    pub(super) delays: u64,
    pub(super) loses_calls: u64,
    pub(super) loses_nodes: u64,
    pub(super) kills: u64,
    pub(super) loses_measurements: u64,
}

pub(super) struct ScriptedPlatform<'a> {
    pub(super) control: &'a mut CheckedCalls<CallLoop>,
    trouble: Trouble,
    draws: u64,
    now: Timestamp,
    /// By time and order of entry.
    events: BTreeMap<(Timestamp, u64), Event>,
    numbers: u64,
    arrivals: u64,
    nodes: Vec<NodeBook<CallId>>,
    calls: BTreeMap<CallId, Call>,
    /// What the control has asked for, in that order: an answer may ask for more before the rest is done.
    asked: VecDeque<(CallId, Allocation)>,
}

impl<'a> ScriptedPlatform<'a> {
    pub(super) fn new(
        control: &'a mut CheckedCalls<CallLoop>,
        trouble: Trouble,
        seed: u64,
        arrivals: u64,
    ) -> Self {
        let mut platform = Self {
            control,
            trouble,
            draws: mix(seed),
            now: Timestamp::ZERO,
            events: BTreeMap::new(),
            numbers: 0,
            arrivals,
            nodes: (0..NODES).map(|_| NodeBook::new(LIMIT)).collect(),
            calls: BTreeMap::new(),
            asked: VecDeque::new(),
        };
        for _ in 0..arrivals {
            let at = platform.below(1000);
            platform.push(Duration::from_millis(at), Event::Arrive);
        }
        platform
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        mix(self.draws) % limit.max(1)
    }

    /// True once in so many times.
    fn happens(&mut self, once_in: u64) -> bool {
        once_in > 0 && self.below(once_in) == 0
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn push(&mut self, after: Duration, event: Event) {
        let number = self.number();
        self.events.insert((self.now + after, number), event);
    }

    /// Runs to the end; `check` sees the platform after every event.
    pub(super) fn play(&mut self, mut check: impl FnMut(&Self)) {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            match event {
                Event::Arrive => self.arrive(),
                Event::Look(call, attempt) => self.look(call, attempt),
                Event::Apply(call, number) => self.apply(call, number),
                Event::End(call, attempt) => self.end(call, attempt),
                Event::LoseNode(node) => self.lose_node(node),
                Event::NodeReturns(node) => self.nodes[node.index()].set_open(true),
            }
            self.carry_out_all();
            check(self);
        }
        assert!(self.calls.is_empty(), "every call ends");
        for book in &self.nodes {
            assert_eq!((book.in_force(), book.held_back()), (Allocation::ZERO, MilliCpu::ZERO));
            assert!(!book.owes(), "{book:?}");
        }
    }

    /// Running calls with what is in force, where no change is under way.
    pub(super) fn settled(&self) -> impl Iterator<Item = (NodeId, &CallView, Allocation)> {
        let settled = self.calls.values().filter(|call| call.change.is_none());
        settled.map(|call| (call.node, &call.view, call.in_force))
    }

    pub(super) fn books(&self) -> &[NodeBook<CallId>] {
        &self.nodes
    }

    /// A call comes. If no node has room for the least it can start with, it is turned away and nobody hears of it.
    fn arrive(&mut self) {
        if self.happens(self.trouble.loses_nodes) {
            let node = NodeId(self.below(u64::from(NODES)) as u32);
            self.push(Duration::from_millis(1), Event::LoseNode(node));
        }
        let samples = windfall_core::conformance::calls();
        let id = CallId(self.arrivals + self.number());
        let sample = samples[self.below(2) as usize].clone();
        let view = CallView { id, now: self.now, arrived_at: self.now, ..sample };
        self.begin(view, false);
    }

    fn begin(&mut self, mut view: CallView, is_second_try: bool) {
        view.now = self.now;
        let plan = if is_second_try {
            CallSafeguardChain::default().as_reserved(&view)
        } else {
            self.control.size(&view)
        };
        let fits = |node: &u32| self.nodes[*node as usize].has_room(plan.least());
        let Some(node) = (0..NODES).find(fits).map(NodeId) else { return };
        let room = self.nodes[node.index()].room();
        let start = self.control.start(&view, &plan, node, room);
        assert!(start.grant.fits(room), "{} of {room}", start.grant);
        self.nodes[node.index()].hold(start.grant);
        let (id, attempt) = (view.id, self.number());
        let call = Call {
            view,
            node,
            attempt,
            in_force: start.grant,
            held_back: MilliCpu::ZERO,
            change: None,
            started_at: self.now,
            is_second_try,
        };
        self.calls.insert(id, call);
        if let Some(after) = start.look_after {
            self.push(after, Event::Look(id, attempt));
        }
        let run = 1 + self.below(400);
        self.push(Duration::from_millis(run), Event::End(id, attempt));
    }

    fn look(&mut self, id: CallId, attempt: u64) {
        let is_lost = self.happens(self.trouble.loses_measurements);
        let load = self.below(130) as f64 * 0.01;
        let Some(call) = self.calls.get(&id).filter(|call| call.attempt == attempt) else { return };
        let running = self.view_of(call, load, is_lost);
        let mut changes = Vec::new();
        let look = self.control.look(&running, &mut changes);
        let node = running.node;
        self.take_down(node, changes);
        self.ask(id, look.grant);
        let call = self.calls.get_mut(&id).expect("it runs");
        let before = std::mem::replace(&mut call.held_back, look.held_back);
        self.nodes[node.index()].hold_back(before, look.held_back);
        if let Some(after) = look.look_after {
            self.push(after, Event::Look(id, attempt));
        }
    }

    fn view_of(&self, call: &Call, load: f64, is_lost: bool) -> RunningCall {
        let window = Duration::from_millis(100);
        let book = &self.nodes[call.node.index()];
        RunningCall {
            id: call.view.id,
            function: call.view.function,
            node: call.node,
            now: self.now,
            started_at: call.started_at,
            input: None,
            reservation: call.view.reservation,
            ceiling: call.view.ceiling,
            grant: call.in_force,
            owed: book.owed_to(call.view.id),
            free_on_node: book.free(),
            waiting: 0,
            node_is_short: false,
            actuation_delay: Duration::ZERO,
            capabilities: call.view.capabilities,
            sensed: if is_lost {
                Sensed::lost(window)
            } else {
                Sensed {
                    window,
                    cpu_used_cores: call.in_force.cpu.cores() * load.min(1.0),
                    throttled_share: if load > 1.0 { 1.0 } else { 0.0 },
                    delayed_share: 0.0,
                    memory_mib: call.in_force.memory.mib() * 0.5,
                }
            },
        }
    }

    fn take_down(&mut self, node: NodeId, changes: Vec<GrantChange>) {
        for change in changes {
            assert_eq!(self.calls[&change.call].node, node, "{change:?}");
            self.ask(change.call, change.grant);
        }
    }

    /// Puts a change in line, unless the call is heading there already.
    fn ask(&mut self, id: CallId, grant: Allocation) {
        let call = &self.calls[&id];
        let in_line = self.asked.iter().rev().find(|(other, _)| *other == id);
        let heading_for = match (in_line, &call.change) {
            (Some((_, asked)), _) => *asked,
            (None, Some(change)) => change.asked,
            (None, None) => call.in_force,
        };
        if grant != heading_for {
            self.asked.push_back((id, grant));
        }
    }

    fn carry_out_all(&mut self) {
        loop {
            for node in (0..NODES).map(NodeId) {
                self.pay(node);
            }
            let Some((call, grant)) = self.asked.pop_front() else { return };
            if self.calls.contains_key(&call) {
                self.change(call, grant);
            }
        }
    }

    /// Sets a change in motion.
    fn change(&mut self, id: CallId, asked: Allocation) {
        let fates = [Fate::Refused, Fate::Half, Fate::NotOwed];
        let fate = match self.happens(self.trouble.refuses) {
            true => fates[self.below(3) as usize],
            false => Fate::Done,
        };
        let delay = match self.happens(self.trouble.delays) {
            true => self.below(300),
            false => 0,
        };
        let is_stubborn = self.below(3) == 0;
        let number = self.number();
        let call = self.calls.get_mut(&id).expect("only calls that run are changed");
        let replaced = call.change.replace(Change { number, asked, fate, is_stubborn });
        let node = call.node;
        self.nodes[node.index()].forgive(id);
        if let Some(old) = replaced.filter(|old| old.is_stubborn) {
            self.apply_too_late(id, &old);
        }
        if delay == 0 {
            self.apply(id, number);
        } else {
            self.push(Duration::from_millis(delay), Event::Apply(id, number));
        }
    }

    /// A change that was replaced takes effect all the same, if it only lowers, and says so.
    fn apply_too_late(&mut self, id: CallId, old: &Change) {
        let call = self.calls.get_mut(&id).expect("it runs");
        let lowered = call.in_force.min(old.asked);
        self.nodes[call.node.index()].release(call.in_force - lowered);
        call.in_force = lowered;
        self.answer(id, old.asked, Some(Refusal::Superseded));
    }

    fn apply(&mut self, id: CallId, number: u64) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Some(change) = call.change.clone().filter(|change| change.number == number) else {
            return;
        };
        let (before, node) = (call.in_force, call.node);
        let target = match change.fate {
            Fate::Done | Fate::NotOwed => change.asked,
            Fate::Refused => before,
            Fate::Half => halfway(before, change.asked),
        };
        let lowered = before.min(target);
        call.in_force = lowered;
        let raise = target - lowered;
        let book = &mut self.nodes[node.index()];
        book.release(before - lowered);
        if change.fate == Fate::Done && raise != Allocation::ZERO {
            self.pay(node);
            self.nodes[node.index()].owe(id, raise);
        } else {
            // Never ahead of those who are owed already.
            let room = if book.owes() { Allocation::ZERO } else { book.free() };
            let got = raise.min(room);
            book.hold(got);
            call.in_force += got;
            self.settle(id);
        }
    }

    /// The change of a call has come to its end, whatever that is.
    fn settle(&mut self, id: CallId) {
        let call = self.calls.get_mut(&id).expect("it runs");
        let change = call.change.take().expect("a change ends once");
        let is_replaced = self.asked.iter().any(|(other, _)| *other == id);
        let refused = match change.fate {
            _ if call.in_force == change.asked => None,
            _ if is_replaced => Some(Refusal::Superseded),
            Fate::Done | Fate::NotOwed => Some(Refusal::NoRoom),
            Fate::Refused | Fate::Half => Some(Refusal::System("in use".to_owned())),
        };
        self.answer(id, change.asked, refused);
    }

    fn answer(&mut self, id: CallId, asked: Allocation, refused: Option<Refusal>) {
        let call = &self.calls[&id];
        let change = Resized {
            call: id,
            node: call.node,
            at: self.now,
            reservation: call.view.reservation,
            asked,
            in_force: call.in_force,
            refused,
        };
        let mut changes = Vec::new();
        self.control.resized(&change, &mut changes);
        self.take_down(change.node, changes);
    }

    fn pay(&mut self, node: NodeId) {
        while let Some(payment) = self.nodes[node.index()].pay() {
            let call = self.calls.get_mut(&payment.call).expect("debts end with their calls");
            call.in_force += payment.amount;
            if payment.still_owed == Allocation::ZERO {
                self.settle(payment.call);
            }
        }
    }

    fn end(&mut self, id: CallId, attempt: u64) {
        let Some(call) = self.calls.get(&id).filter(|call| call.attempt == attempt).cloned() else {
            return;
        };
        if self.happens(self.trouble.loses_calls) {
            self.leave(&call, CallClose::Lost { call: id, node: call.node });
            return;
        }
        let is_killed = !call.is_second_try && self.happens(self.trouble.kills);
        let mut outcome = outcome_of(&call.view, call.in_force, is_killed);
        outcome.node = call.node;
        self.leave(&call, CallClose::Measured(&outcome));
        if is_killed {
            self.begin(call.view, true);
        }
    }

    fn leave(&mut self, call: &Call, end: CallClose<'_>) {
        let (id, node) = (call.view.id, call.node);
        let book = &mut self.nodes[node.index()];
        book.forgive(id);
        book.release(call.in_force);
        book.hold_back(call.held_back, MilliCpu::ZERO);
        self.calls.remove(&id);
        let mut changes = Vec::new();
        self.control.close(end, &mut changes);
        self.take_down(node, changes);
    }

    fn lose_node(&mut self, node: NodeId) {
        let lost: Vec<CallId> =
            self.calls.values().filter(|call| call.node == node).map(|call| call.view.id).collect();
        for id in lost {
            let call = self.calls[&id].clone();
            self.leave(&call, CallClose::Lost { call: id, node });
        }
        self.nodes[node.index()].set_open(false);
        self.push(Duration::from_millis(50), Event::NodeReturns(node));
    }
}

fn halfway(from: Allocation, to: Allocation) -> Allocation {
    let mean = |a: u32, b: u32| (u64::from(a) + u64::from(b)).div_ceil(2) as u32;
    Allocation::new(mean(from.cpu.get(), to.cpu.get()), mean(from.memory.get(), to.memory.get()))
}
