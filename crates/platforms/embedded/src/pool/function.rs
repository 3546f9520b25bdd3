//! One function: its queue, where its instances are, and what was counted since the last observation.

use std::collections::{BTreeSet, VecDeque};

use windfall_core::queue_order::Patience;
use windfall_core::{Allocation, CallId, Duration, Timestamp};

use super::{FunctionSettings, InstanceId};

/// What is counted between two observations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) arrivals: u32,
    pub(super) completions: u32,
    pub(super) cold_starts: u32,
    pub(super) run: Duration,
    pub(super) wait: Duration,
    /// Calls in the system times nanoseconds.
    pub(super) presence: u128,
}

/// A function in the pool.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(super) settings: FunctionSettings,
    /// What a new instance gets where ticks size instances.
    pub(super) allocation: Allocation,
    /// Calls per instance now.
    pub(super) concurrency: u32,
    /// How long an idle instance above the target stays.
    pub(super) keep_alive: Duration,
    /// Instances that should stand ready.
    pub(super) target: Option<u32>,
    pub(super) is_removed: bool,
    pub(super) queue: VecDeque<CallId>,
    /// The least that the first in the queue can start with, once that was asked.
    pub(super) head_least: Option<Allocation>,
    /// Ready instances without a call, the longest idle one first.
    pub(super) idle: BTreeSet<(Timestamp, InstanceId)>,
    /// Ready instances with calls and a free place.
    pub(super) spare: BTreeSet<InstanceId>,
    /// Instances on their way up that have a free place.
    pub(super) warming: BTreeSet<InstanceId>,
    /// Instances on their way up.
    pub(super) starting: u32,
    /// Instances that can serve, busy ones included.
    pub(super) ready: u32,
    /// Of these, with at least one call.
    pub(super) busy: u32,
    /// Calls that have a place in an instance.
    pub(super) seated: u32,
    /// What the last start held; what an instance ahead of any call begins with.
    pub(super) begun_with: Option<Allocation>,
    pub(super) window: Window,
    /// Run times of all calls that ended, and how many did.
    run_total: Duration,
    run_count: u64,
    /// Times from the beginning of an instance until it could serve, and how many there were.
    start_total: Duration,
    start_count: u64,
    presence_since: Timestamp,
}

impl Function {
    pub(super) fn new(settings: FunctionSettings) -> Self {
        Self {
            allocation: settings.reservation,
            concurrency: settings.concurrency.max(1),
            keep_alive: settings.keep_alive,
            settings,
            target: None,
            is_removed: false,
            queue: VecDeque::new(),
            head_least: None,
            idle: BTreeSet::new(),
            spare: BTreeSet::new(),
            warming: BTreeSet::new(),
            starting: 0,
            ready: 0,
            busy: 0,
            seated: 0,
            begun_with: None,
            window: Window::default(),
            run_total: Duration::ZERO,
            run_count: 0,
            start_total: Duration::ZERO,
            start_count: 0,
            presence_since: Timestamp::ZERO,
        }
    }

    /// Instances that serve or will.
    pub(super) fn present(&self) -> u32 {
        self.ready + self.starting
    }

    /// Whether one more instance is within the function's own limit.
    pub(super) fn may_start_another(&self) -> bool {
        self.settings.most_instances.is_none_or(|most| self.present() < most)
    }

    /// A call ended after so long; what the first waiting one needs may have been learned anew.
    pub(super) fn note_run(&mut self, run: Duration) {
        self.run_total += run;
        self.run_count += 1;
        self.head_least = None;
    }

    /// An instance can serve after so long.
    pub(super) fn note_start(&mut self, start: Duration) {
        self.start_total += start;
        self.start_count += 1;
    }

    /// Whether a call that has `waited` should not start an instance: a warm one comes free while it is on time, and
    /// starting one takes longer than it runs. The rule is the simulator's.
    ///
    /// Calls run for 200 ms, instances start in 700 ms, three of them are busy. The fourth call waits for up to 200 ms for
    /// the first that is done; started anew it would have been slow for certain.
    pub(super) fn waits_for_warm(&self, waited: Duration) -> bool {
        let mean = |total: Duration, count: u64| total.as_nanos().checked_div(count);
        let run = mean(self.run_total, self.run_count);
        let start = mean(self.start_total, self.start_count);
        let is_brief = run.zip(start).is_some_and(|(run, start)| run < start);
        let has_place = !(self.idle.is_empty() && self.spare.is_empty() && self.warming.is_empty());
        is_brief && !has_place && self.seated > 0 && waited <= self.patience().late_after
    }

    /// How long its calls run, and may wait because of that.
    pub(super) fn patience(&self) -> Patience {
        let mean = self.run_total.as_nanos().checked_div(self.run_count);
        Patience::new(mean.map(Duration::from_nanos))
    }

    /// Takes an instance out of every list of those that can take a call.
    pub(super) fn forget(&mut self, id: InstanceId) {
        self.spare.remove(&id);
        self.warming.remove(&id);
    }

    /// Brings the sum of calls in the system up to `now`; call it before the number changes.
    pub(super) fn count_presence(&mut self, now: Timestamp) {
        let calls = u128::from(self.seated) + self.queue.len() as u128;
        let passed = now.since(self.presence_since);
        self.window.presence += calls * u128::from(passed.as_nanos());
        self.presence_since = now;
    }
}
