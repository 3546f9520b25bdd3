//! A call that has a place: starting or running on an instance.

use windfall_core::record::GrantStep;
use windfall_core::{
    Allocation, Amendment, CallDemand, CallId, CallPlan, Duration, MilliCpu, Timestamp,
};

use crate::event_queue::Token;
use crate::progress::{Passed, Progress};

/// What decides the pace of a running call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Its own grant: the node has enough for everyone.
    Own,
    /// Its share of a contended node, millicores.
    Shared(f64),
}

/// What the next turn of a call will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It ends.
    Ends,
    /// It outgrows its memory.
    IsKilled,
}

/// What happened to a call in attempts that were killed.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub(crate) run: Duration,
    pub(crate) kills: u8,
    pub(crate) cold_start: Duration,
    pub(crate) totals: Totals,
    pub(crate) plan: CallPlan,
    pub(crate) first_grant: Allocation,
    pub(crate) lowest: Allocation,
    pub(crate) highest: Allocation,
    pub(crate) changes: u32,
    pub(crate) looks: u32,
    pub(crate) amendments: Vec<Amendment>,
    pub(crate) steps: Vec<GrantStep>,
}

/// Integrals over the time a call holds something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Millicore-nanoseconds granted.
    pub(crate) cpu_granted: u64,
    /// Millicore-nanoseconds used.
    pub(crate) cpu_used: u64,
    /// MiB-nanoseconds granted.
    pub(crate) memory_granted: u64,
    /// MiB-nanoseconds used.
    pub(crate) memory_used: u64,
}

/// One call with a place.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) function: u32,
    pub(crate) node: u32,
    pub(crate) instance: u32,
    pub(crate) arrived_at: Timestamp,
    pub(crate) demand: CallDemand,
    pub(crate) earlier: Option<Box<Earlier>>,
    pub(crate) plan: CallPlan,
    pub(crate) cold_start: Duration,
    /// Whether it runs; before that its instance starts.
    pub(crate) is_running: bool,
    pub(crate) started_at: Timestamp,
    pub(crate) first_grant: Allocation,
    pub(crate) grant: Allocation,
    /// What a raise found no room for.
    pub(crate) owed: Allocation,
    /// What its node holds back for it.
    pub(crate) held_back: MilliCpu,
    pub(crate) lowest: Allocation,
    pub(crate) highest: Allocation,
    pub(crate) pace: Pace,
    pub(crate) progress: Progress,
    /// Until when `progress` and the use are up to date.
    pub(crate) progress_at: Timestamp,
    /// Until when the granted integrals are up to date.
    pub(crate) held_at: Timestamp,
    pub(crate) totals: Totals,
    /// Use that observations have counted already.
    pub(crate) observed_use: u64,
    pub(crate) throttled: u64,
    /// Highest CPU use so far, millicores.
    pub(crate) peak: u32,
    /// Its place in the node's list of running calls.
    pub(crate) place_on_node: u32,
    pub(crate) turn: Turn,
    pub(crate) turn_token: Token,
    pub(crate) look_after: Option<Duration>,
    pub(crate) look_token: Token,
    pub(crate) looks: u32,
    /// Use and throttled time at the last look.
    pub(crate) looked: Looked,
    /// A change on its way, with its reason.
    pub(crate) pending: Option<(Allocation, &'static str)>,
    pub(crate) resize_token: Token,
    pub(crate) changes: u32,
    pub(crate) amendments: Vec<Amendment>,
    pub(crate) steps: Vec<GrantStep>,
}

/// Where the counters stood at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) at: Timestamp,
    pub(crate) used: u64,
    pub(crate) throttled: u64,
}

impl Call {
    /// Brings progress and use up to `now`.
    pub(crate) fn catch_up(&mut self, now: Timestamp) {
        let nanos = now.since(self.progress_at).as_nanos();
        if nanos == 0 || !self.is_running {
            return;
        }
        let (passed, rate) = match self.pace {
            Pace::Own => {
                let limit = self.grant.cpu;
                let passed = self.progress.advance(&self.demand, limit, nanos);
                (passed, limit.min(self.demand.parallelism).get())
            }
            Pace::Shared(rate) => {
                (self.progress.advance_shared(&self.demand, rate, nanos), rate as u32)
            }
        };
        let Passed { used, throttled } = passed;
        if used > 0 {
            self.peak = self.peak.max(rate);
        }
        self.totals.cpu_used += used;
        self.throttled += throttled;
        self.progress_at = now;
    }

    /// Brings progress and use up to the end of the call. A call that had all it could use from start
    /// to end needs no walk through its segments.
    pub(crate) fn finish(&mut self, now: Timestamp) {
        let is_untouched = self.progress_at == self.started_at && self.pace == Pace::Own;
        if is_untouched && self.turn == Turn::Ends && self.grant.cpu >= self.demand.parallelism {
            self.totals.cpu_used = self.demand.work;
            self.peak = self.demand.parallelism.get();
            self.progress_at = now;
        } else {
            self.catch_up(now);
        }
    }

    /// Brings the granted integrals up to `now`.
    pub(crate) fn account(&mut self, now: Timestamp) {
        let nanos = now.since(self.held_at).as_nanos();
        self.totals.cpu_granted += u64::from(self.grant.cpu.get()) * nanos;
        self.totals.memory_granted += u64::from(self.grant.memory.get()) * nanos;
        self.held_at = now;
    }
}
