//! A function as the platform runs it: its queue, its instances, and what was measured of it.

use std::collections::VecDeque;

use windfall_core::{
    Allocation, CallDemand, CallId, CallPlan, CallRecord, ColdStart, CpuCeiling, Duration,
    FunctionProfile, Mebibytes, MilliCpu, PlanId, PresenceStep, Timestamp, Worth,
};

use crate::event_queue::Token;
use crate::idle::OfFunction;
use crate::settings::Settings;

/// A call that has arrived and has no place yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: CallId,
    pub(crate) arrived_at: Timestamp,
    pub(crate) demand: CallDemand,
    /// What happened to it before, if it was killed and tries again.
    pub(crate) earlier: Option<Box<CallRecord>>,
}

/// The first in a function's queue, in the list that is searched whenever a node has room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// When it arrived.
    pub(crate) at: Timestamp,
    pub(crate) function: u32,
    /// The least it can start with; unknown until it is sized.
    pub(crate) least: Option<Allocation>,
}

/// What was counted since the last observation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) arrivals: u32,
    pub(crate) completions: u32,
    pub(crate) cold_starts: u32,
    pub(crate) run: Duration,
    pub(crate) wait: Duration,
    pub(crate) used: u64,
    pub(crate) memory_peak: u32,
    /// Calls in the system times nanoseconds.
    pub(crate) presence: u128,
}

/// One function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) reservation: Allocation,
    /// What a new instance gets where instances are sized.
    pub(crate) allocation: Allocation,
    /// The memory that its instance kept which stopped last; the user's until then.
    pub(crate) kept: Mebibytes,
    /// The CPU that its call began with which started last; the user's until then.
    pub(crate) begun_with: MilliCpu,
    /// The ceiling that this call had.
    pub(crate) begun_under: CpuCeiling,
    pub(crate) concurrency: u32,
    pub(crate) keep_alive: Duration,
    /// Instances that a tick has asked for.
    pub(crate) target_instances: Option<u32>,
    /// What its longest idle instance is worth to whoever looks for room; least goes first.
    pub(crate) worth: Worth,
    pub(crate) cold_start: ColdStart,
    /// First node of the home-invoker walk.
    pub(crate) home: u32,
    pub(crate) queue: VecDeque<Waiting>,
    /// The plan of the first in the queue; gone when a call ends, since the policy may have learned.
    pub(crate) head_plan: Option<CallPlan>,
    /// Ready instances without a call, last used last.
    pub(crate) idle: OfFunction,
    /// Ready instances with at least one call and a free place, oldest first.
    pub(crate) open: Vec<u32>,
    pub(crate) ready: u32,
    pub(crate) starting: u32,
    pub(crate) running: u32,
    /// The reminder of the end of the longest idle instance's keep-alive.
    pub(crate) expiry: Token,
    /// The reminder that the instances get their new size.
    pub(crate) resize: Token,
    /// The plan of the size that the instances have not got yet.
    pub(crate) resized_by: Option<PlanId>,
    /// Calls that have ended and their run time in nanoseconds, for the order of the queue.
    pub(crate) run_count: u64,
    pub(crate) run_total: u64,
    pub(crate) window: Window,
    /// Changes of the number of calls in the system since the last observation, if observations list them.
    pub(crate) presence: Vec<PresenceStep>,
    presence_at: Timestamp,
}

impl Function {
    pub(crate) fn new(profile: &FunctionProfile, settings: &Settings, home: u32) -> Self {
        Self {
            reservation: profile.reservation,
            allocation: profile.reservation.min(settings.ceiling),
            kept: profile.reservation.memory.min(settings.ceiling.memory),
            begun_with: profile.reservation.cpu.min(settings.ceiling.cpu),
            begun_under: CpuCeiling::AtGrant,
            concurrency: settings.concurrency,
            keep_alive: settings.keep_alive,
            target_instances: None,
            worth: Worth::default(),
            cold_start: profile.cold_start,
            home,
            queue: VecDeque::new(),
            head_plan: None,
            idle: OfFunction::default(),
            open: Vec::new(),
            ready: 0,
            starting: 0,
            running: 0,
            expiry: Token::NONE,
            resize: Token::NONE,
            resized_by: None,
            run_count: 0,
            run_total: 0,
            window: Window::default(),
            presence: Vec::new(),
            presence_at: Timestamp::ZERO,
        }
    }

    /// Accounts for the calls in the system until `now`; must come before their number changes.
    pub(crate) fn note_presence(&mut self, now: Timestamp) {
        let present = u64::from(self.running) + self.queue.len() as u64;
        let passed = now.since(self.presence_at).as_nanos();
        self.window.presence += u128::from(present) * u128::from(passed);
        self.presence_at = now;
    }

    /// Keeps for the next observation that `calls` are in need of an instance from `now` on.
    pub(crate) fn record_presence(&mut self, now: Timestamp, calls: u32) {
        self.presence.push(PresenceStep { at: now, calls, passed_over: 0 });
    }

    /// Keeps for the next observation that a call starts a new instance although idle ones stand on other nodes.
    pub(crate) fn record_passed_over(&mut self, now: Timestamp) {
        let passed_over = self.idle.tops().count() as u32;
        if passed_over > 0 {
            self.presence.push(PresenceStep { at: now, calls: self.running, passed_over });
        }
    }

    /// Takes out what was counted since the last time.
    pub(crate) fn take_window(&mut self, now: Timestamp) -> Window {
        self.note_presence(now);
        std::mem::take(&mut self.window)
    }
}

/// Removes `item` from a list in which it usually stands near the end.
pub(crate) fn remove_item(list: &mut Vec<u32>, item: u32) {
    if let Some(place) = list.iter().rposition(|&other| other == item) {
        list.remove(place);
    }
}
