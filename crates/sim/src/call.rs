//! A call that has a place: starting or running on an instance.

use windfall_core::{Allocation, CallDemand, CallRecord, Duration, MilliCpu, Start, Timestamp};

use crate::event_queue::Token;
use crate::progress::{Passed, Progress};

/// What decides the pace of a running call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Pace {
    /// Its own grant: the node has enough for everyone.
    #[default]
    Own,
    /// Its share of a contended node, millicores.
    Shared(f64),
}

/// What the next turn of a call will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It ends.
    #[default]
    Ends,
    /// It outgrows its memory.
    IsKilled,
}

/// One call with a place.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The story of this attempt, written as it happens; telemetry reads it when the call ends.
    pub(crate) record: CallRecord,
    /// The stories of attempts that were killed.
    pub(crate) earlier: Option<Box<CallRecord>>,
    pub(crate) demand: CallDemand,
    pub(crate) instance: u32,
    /// Its place in the node's list of running calls.
    pub(crate) place_on_node: u32,
    /// Whether it runs; before that its instance starts.
    pub(crate) is_running: bool,
    pub(crate) grant: Allocation,
    /// What its node holds back for it.
    pub(crate) held_back: MilliCpu,
    /// Where the node's account of that stood when the amount was last set.
    pub(crate) held_back_mark: f64,
    pub(crate) pace: Pace,
    /// How far it has come; begun only when that is first asked, which for most calls is never.
    pub(crate) progress: Progress,
    /// Until when `progress` and the use are up to date.
    pub(crate) progress_at: Timestamp,
    /// Until when the granted integrals are up to date.
    pub(crate) held_at: Timestamp,
    /// Use that observations have counted already.
    pub(crate) observed_use: u64,
    pub(crate) throttled: u64,
    /// Highest CPU use so far, millicores.
    pub(crate) peak: u32,
    pub(crate) turn: Turn,
    pub(crate) turn_token: Token,
    pub(crate) look_after: Option<Duration>,
    pub(crate) look_token: Token,
    /// Use and throttled time at the last look.
    pub(crate) looked: Looked,
    /// A change that the control waits to hear of: what was asked.
    pub(crate) asked: Option<Allocation>,
    /// A change on its way, with its reason.
    pub(crate) pending: Option<(Allocation, &'static str)>,
    pub(crate) resize_token: Token,
}

/// Where the counters stood at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) at: Timestamp,
    pub(crate) used: u64,
    pub(crate) throttled: u64,
}

impl Call {
    /// The call has a place and holds what it starts with from `now` on: its counters begin at zero, in
    /// whatever state another one left them.
    #[inline(always)]
    pub(crate) fn take_place(&mut self, start: Start, now: Timestamp) {
        self.place_on_node = 0;
        self.is_running = false;
        self.grant = start.grant;
        self.held_back = MilliCpu::ZERO;
        self.held_back_mark = 0.0;
        self.pace = Pace::Own;
        self.progress = Progress::default();
        (self.progress_at, self.held_at) = (now, now);
        (self.observed_use, self.throttled, self.peak) = (0, 0, 0);
        self.turn = Turn::Ends;
        self.look_after = start.look_after;
        self.looked = Looked::default();
        (self.asked, self.pending) = (None, None);
        (self.turn_token, self.look_token, self.resize_token) =
            (Token::NONE, Token::NONE, Token::NONE);
    }

    /// The call's instance is there.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.is_running = true;
        self.record.started_at = now;
        self.progress_at = now;
        self.looked.at = now;
    }

    /// Whether no time has been accounted for since it began.
    fn is_fresh(&self) -> bool {
        self.progress_at == self.record.started_at
    }

    /// Lets something else decide the pace from now on.
    pub(crate) fn set_pace(&mut self, pace: Pace) {
        if self.is_fresh() {
            self.progress = Progress::start(&self.demand);
        }
        self.pace = pace;
    }

    /// Run time on a constant CPU share. The user's own is known, and by far the most frequent.
    fn run_time(&self, cpu: MilliCpu) -> Duration {
        let known = self.record.baseline.filter(|_| cpu == self.record.reservation.cpu);
        known.unwrap_or_else(|| self.demand.run_time(cpu))
    }

    /// How long it still runs at its own pace.
    pub(crate) fn time_left(&self) -> Duration {
        if self.is_fresh() {
            self.run_time(self.grant.cpu)
        } else {
            Duration::from_nanos(self.progress.remaining(&self.demand, self.grant.cpu))
        }
    }

    /// Brings progress and use up to `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Timestamp) {
        let nanos = now.since(self.progress_at).as_nanos();
        if nanos > 0 && self.is_running {
            self.advance(now, nanos);
        }
    }

    #[inline(never)]
    fn advance(&mut self, now: Timestamp, nanos: u64) {
        let (passed, rate) = match self.pace {
            Pace::Own => {
                if self.is_fresh() {
                    self.progress = Progress::start(&self.demand);
                }
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
        self.record.cpu_used += used;
        self.throttled += throttled;
        self.progress_at = now;
    }

    /// Brings progress and use up to the end of the call. A call that was left alone from start to end
    /// and had all it could use, or has but one stretch of work, needs no walk through its segments.
    #[inline]
    pub(crate) fn finish(&mut self, now: Timestamp) {
        let demand = &self.demand;
        let is_left_alone = self.is_fresh() && self.pace == Pace::Own && self.turn == Turn::Ends;
        let is_simple = demand.cycles <= 1 && demand.work > 0;
        let is_short = self.grant.cpu < demand.parallelism;
        if is_left_alone && (is_simple || !is_short) {
            let working = now.since(self.record.started_at + demand.fixed).as_nanos();
            self.throttled = u64::from(is_short) * working;
            self.peak = demand.parallelism.min(self.grant.cpu).get();
            self.record.cpu_used = demand.work;
            self.progress_at = now;
        } else {
            self.catch_up(now);
        }
    }

    /// Brings the granted integrals up to `now`.
    pub(crate) fn account(&mut self, now: Timestamp) {
        let nanos = now.since(self.held_at).as_nanos();
        self.record.cpu_granted += u64::from(self.grant.cpu.get()) * nanos;
        self.record.memory_granted += u64::from(self.grant.memory.get()) * nanos;
        self.held_at = now;
    }
}
