//! Which instance serves which call: the pool of one node as a state machine without a clock, a thread or a socket.
//!
//! ```text
//!   Arrived ─► queue of the function ─► place_waiting ─► 1 a ready instance of the function with a free place
//!                                                        2 one that is still starting and has a free place
//!                                                        3 a spare instance of the same kind
//!                                                        4 a new instance, beside the idle ones if they fit
//!                                                        5 a new instance, after the least recently used idle ones
//!                                                          of any function were stopped
//!                                                        6 none: the call waits; an older call of another function
//!                                                          that fits nowhere does not hold it up
//!
//!   who is placed first is a setting: whoever waits longest, or the shortest (`queue_order`)
//!
//!   instance:  Starting ─► Initialising ─► Ready ─► Frozen ─► (thawed by the next call) ─► Ready
//!                   └──────────┴─────────────┴────────┴─► Stopping ─► gone, when `Exited` is reported
//! ```
//!
//! The order is OpenWhisk's. The caller reports what happened as an [`Event`] and carries out the [`Action`]s that come
//! back; time is an argument. `place_waiting` is a step of its own, so that a caller can close a call with its control
//! and pay debts before room goes to the next one.
//!
//! Who holds what in the node's book:
//!
//! | sized by | serving | idle | a spare |
//! |---|---|---|---|
//! | [`SizedBy::Call`], one call per instance | the call's grant | nothing; its memory is kept and gives way to calls | memory |
//! | [`SizedBy::Call`], calls share an instance | the reservation, once | the same | memory |
//! | [`SizedBy::Instance`] | the function's allocation | the function's allocation | memory |
//!
//! Worked numbers: a node of 2000m and 1024 MiB has three idle instances that keep 256 MiB each and one call with 256
//! MiB. A new call of 512 MiB fits the book (768 MiB are free) but not beside the idle ones (768 - 768 = 0), so the two
//! that have been idle longest are stopped.

mod ahead;
mod events;
mod function;
mod idle;
mod instance;
mod lifecycle;
mod placement;
mod queue_order;
mod settings;
mod sizes;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use windfall_control::NodeBook;
use windfall_core::{Allocation, CallId, FunctionId, Instances, Mebibytes, Timestamp};

pub use events::{Action, CallFinish, Event, Exit, ReplyReason, StartKind};
pub(crate) use function::Function;
use instance::{Instance, Stage};
pub use settings::{FunctionSettings, PoolSettings, Prewarm, ScaleOut, SizedBy};

/// One instance; numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u64);

/// Sizes calls that have an instance to themselves. The pool asks when it is about to start one.
pub trait Sizer {
    /// The least that a call can start with.
    fn least(&mut self, call: CallId) -> Allocation;
    /// The call starts on this node, which has `room` left: what it holds from now on, at least [`Self::least`].
    fn start(&mut self, call: CallId, room: Allocation) -> Allocation;
    /// Whether the node takes the call, which has room for it. Asked after [`Self::least`].
    fn admits(&mut self, _call: CallId) -> bool {
        true
    }
}

/// A call between its arrival and its end.
#[derive(Clone, Debug)]
struct PooledCall {
    function: FunctionId,
    /// Its place in the order of arrivals; kept by a second attempt.
    order: u64,
    arrived_at: Timestamp,
    /// Where it has a place.
    instance: Option<InstanceId>,
    is_second_attempt: bool,
}

/// What happened since the pool began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Calls that arrived.
    pub arrived: u64,
    /// Calls that ended with an answer of the function.
    pub answered: u64,
    /// Calls that were answered by the pool itself: turned away, crashed, out of memory.
    pub replied: u64,
    /// Calls that were given up by whoever asked.
    pub abandoned: u64,
    /// Attempts that were killed for memory below the user's size and tried again at it.
    pub retried: u64,
    /// Instances that were killed because memory crossed the limit.
    pub memory_kills: u64,
    /// Instances that ended by themselves for any other reason.
    pub crashes: u64,
    /// Instances that were stopped to make room.
    pub evictions: u64,
}

/// The pool of one node.
#[derive(Debug)]
pub struct Pool {
    settings: PoolSettings,
    book: NodeBook<CallId>,
    functions: Vec<Function>,
    instances: BTreeMap<InstanceId, Instance>,
    calls: BTreeMap<CallId, PooledCall>,
    /// The first waiting call of each function, in order of arrival.
    heads: BTreeMap<u64, FunctionId>,
    /// All idle instances, the least recently used one first. Spares are not among them.
    idle: BTreeSet<(Timestamp, InstanceId)>,
    /// When something is to be done about an idle instance.
    alarms: BTreeSet<(Timestamp, InstanceId)>,
    /// Memory that idle instances keep outside the book.
    idle_memory: Mebibytes,
    /// Whether instances may have to be started ahead of calls, and not before when.
    is_ahead_due: bool,
    ahead_not_before: Timestamp,
    next_instance: u64,
    next_order: u64,
    counters: PoolCounters,
}

impl Pool {
    /// An empty pool.
    pub fn new(settings: PoolSettings) -> Self {
        Self {
            book: NodeBook::new(settings.limit),
            settings,
            functions: Vec::new(),
            instances: BTreeMap::new(),
            calls: BTreeMap::new(),
            heads: BTreeMap::new(),
            idle: BTreeSet::new(),
            alarms: BTreeSet::new(),
            idle_memory: Mebibytes::ZERO,
            is_ahead_due: true,
            ahead_not_before: Timestamp::ZERO,
            next_instance: 0,
            next_order: 0,
            counters: PoolCounters::default(),
        }
    }

    /// The account of the node.
    pub fn book(&self) -> &NodeBook<CallId> {
        &self.book
    }

    /// What happened so far.
    pub fn counters(&self) -> PoolCounters {
        self.counters
    }

    /// How the pool was set up.
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    /// The settings of a function.
    pub fn function(&self, function: FunctionId) -> Option<&FunctionSettings> {
        self.functions.get(function.index()).map(|state| &state.settings)
    }

    /// Calls that wait for an instance, all functions together.
    pub fn waiting(&self) -> u64 {
        self.heads.values().map(|function| self.state(*function).queue.len() as u64).sum()
    }

    /// Instances, those that start or stop included.
    pub fn instance_count(&self) -> Instances {
        Instances::new(self.instances.len() as u32)
    }

    /// Calls that have not ended.
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// When [`Event::Timer`] is due next.
    pub fn next_alarm(&self) -> Option<Timestamp> {
        let ahead = (self.is_ahead_due && self.ahead_not_before > Timestamp::ZERO)
            .then_some(self.ahead_not_before);
        self.alarms.first().map(|(at, _)| *at).into_iter().chain(ahead).min()
    }

    /// A new function; its id is its place in the order of deployment.
    pub fn deploy(&mut self, settings: FunctionSettings) -> FunctionId {
        self.functions.push(Function::new(settings));
        FunctionId(self.functions.len() as u32 - 1)
    }

    /// Other settings or other code for a function. Instances of the old version serve nobody new: idle ones are
    /// stopped, busy ones when their calls end.
    pub fn update(
        &mut self,
        function: FunctionId,
        settings: FunctionSettings,
        actions: &mut Vec<Action>,
    ) {
        let state = &mut self.functions[function.index()];
        state.allocation = settings.reservation;
        state.concurrency = settings.concurrency.max(1);
        state.keep_alive = settings.keep_alive;
        state.settings = settings;
        state.is_removed = false;
        self.retire_instances(function, actions);
    }

    /// Removes a function: its waiting calls are answered, its instances retire. Its id is not given to another.
    pub fn remove(&mut self, function: FunctionId, actions: &mut Vec<Action>) {
        let Some(state) = self.functions.get_mut(function.index()) else { return };
        state.is_removed = true;
        state.target = None;
        let waiting: Vec<CallId> = state.queue.iter().copied().collect();
        for call in waiting {
            self.leave_queue(call);
            self.reply(call, ReplyReason::Removed, actions);
        }
        self.retire_instances(function, actions);
    }

    fn retire_instances(&mut self, function: FunctionId, actions: &mut Vec<Action>) {
        let all: Vec<InstanceId> = self.of_function(function).map(|(id, _)| id).collect();
        for id in all {
            let instance = self.instances.get_mut(&id).expect("it was just listed");
            instance.is_outdated = true;
            let is_idle = instance.idle_since.is_some();
            self.functions[function.index()].forget(id);
            if is_idle {
                self.stop(id, actions);
            }
        }
    }

    /// Takes note of what happened. Waiting calls are not placed; see [`Self::place_waiting`].
    pub fn on(&mut self, now: Timestamp, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Arrived { call, function } => self.arrived(now, call, function, actions),
            Event::Launched { instance } => self.launched(instance, actions),
            Event::LaunchFailed { instance, problem } => {
                self.launch_failed(now, instance, &problem, actions);
            }
            Event::Initialised { instance } => self.initialised(now, instance, actions),
            Event::Finished { call, instance, finish } => {
                self.finished(now, call, instance, finish, actions);
            }
            Event::Exited { instance, exit } => self.exited(now, instance, &exit, actions),
            Event::Abandoned { call } => self.abandoned(now, call),
            Event::Timer => self.ring(now, actions),
        }
    }

    /// Stops every instance, for the end of the platform. Calls that still run are answered as lost when their
    /// instances have exited.
    pub fn stop_all(&mut self, actions: &mut Vec<Action>) {
        self.book.set_open(false);
        let all: Vec<InstanceId> = self.instances.keys().copied().collect();
        for id in all {
            self.stop(id, actions);
        }
    }

    fn state(&self, function: FunctionId) -> &Function {
        &self.functions[function.index()]
    }

    fn of_function(
        &self,
        function: FunctionId,
    ) -> impl Iterator<Item = (InstanceId, &Instance)> + '_ {
        let of = move |instance: &&Instance| instance.function == Some(function);
        self.instances
            .iter()
            .map(|(id, instance)| (*id, instance))
            .filter(move |(_, instance)| of(instance))
    }

    /// Whether calls of `function` bring their own size: an instance that several calls share cannot have the size of
    /// each.
    fn sizes_calls(&self, function: FunctionId) -> bool {
        self.settings.sized_by == SizedBy::Call && self.state(function).concurrency == 1
    }

    fn new_instance(&mut self, instance: Instance) -> InstanceId {
        let id = InstanceId(self.next_instance);
        self.next_instance += 1;
        if let Some(function) = instance.function {
            self.functions[function.index()].starting += 1;
        }
        self.instances.insert(id, instance);
        id
    }

    /// The pool itself answers a call.
    fn reply(&mut self, call: CallId, reason: ReplyReason, actions: &mut Vec<Action>) {
        self.calls.remove(&call);
        self.counters.replied += 1;
        actions.push(Action::Reply { call, reason });
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod stories;
