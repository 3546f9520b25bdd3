//! A call that has a place: starting or running on an instance.

use windfall_core::{
    Allocation, CallDemand, CallRecord, CpuCeiling, Duration, MilliCpu, Start, Timestamp,
};

use crate::event_queue::Token;
use crate::kernel_call::KernelState;
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
    /// It goes on; how long was not worked out yet.
    GoesOn,
}

/// How long a call still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLeft {
    /// So long.
    Known(Duration),
    /// So long, and then one has to look again.
    AtLeast(Duration),
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
    /// The rule for the most CPU it may use; what it is granted is its weight while cores are short.
    pub(crate) ceiling: CpuCeiling,
    /// What its node holds back for it.
    pub(crate) held_back: MilliCpu,
    /// Where the node's account of that stood when the amount was last set.
    pub(crate) held_back_mark: f64,
    pub(crate) pace: Pace,
    /// What the kernel's CPU keeps of it.
    pub(crate) kernel: KernelState,
    /// How far it has come; begun only when that is first asked, which for most calls is never.
    pub(crate) progress: Progress,
    /// Until when `progress` and the use are up to date.
    pub(crate) progress_at: Timestamp,
    /// Until when the granted integrals are up to date.
    pub(crate) held_at: Timestamp,
    /// Use that observations have counted already.
    pub(crate) observed_use: u64,
    pub(crate) throttled: u64,
    /// Nanoseconds by which waiting for CPU set it back against a run at its reservation.
    pub(crate) delayed: f64,
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
    pub(crate) delayed: f64,
}

impl Call {
    /// The call has a place and holds what it starts with from `now` on: its counters begin at zero, in
    /// whatever state another one left them.
    #[inline(always)]
    pub(crate) fn take_place(&mut self, start: Start, now: Timestamp) {
        self.place_on_node = 0;
        self.is_running = false;
        self.grant = start.grant;
        self.ceiling = start.cpu_ceiling;
        self.held_back = MilliCpu::ZERO;
        self.held_back_mark = 0.0;
        self.pace = Pace::Own;
        self.progress = Progress::default();
        (self.progress_at, self.held_at) = (now, now);
        (self.observed_use, self.throttled, self.peak) = (0, 0, 0);
        self.delayed = 0.0;
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
        if self.kernel.is_on() {
            self.wake(now.as_nanos());
        }
    }

    /// Whether no time has been accounted for since it began.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.progress_at == self.record.started_at
    }

    /// Lets something else decide the pace from now on.
    pub(crate) fn set_pace(&mut self, pace: Pace) {
        if self.kernel.is_on() {
            self.split_waits();
        }
        if self.is_fresh() {
            self.progress = Progress::start(&self.demand);
        }
        self.pace = pace;
    }

    /// The most CPU it may use: without a ceiling as much as it can.
    #[inline]
    pub(crate) fn cpu_limit(&self) -> MilliCpu {
        self.ceiling.limit(self.grant.cpu).unwrap_or(MilliCpu::new(u32::MAX))
    }

    /// Run time on a constant CPU share. The user's own is known, and by far the most frequent.
    fn run_time(&self, cpu: MilliCpu) -> Duration {
        let known = self.record.baseline.filter(|_| cpu == self.record.reservation.cpu);
        known.unwrap_or_else(|| self.demand.run_time(cpu))
    }

    /// How long it still runs at its own pace.
    pub(crate) fn time_left(&mut self) -> TimeLeft {
        if self.kernel.is_on() {
            return self.time_left_on_kernel();
        }
        TimeLeft::Known(if self.is_fresh() {
            self.run_time(self.cpu_limit())
        } else {
            Duration::from_nanos(self.progress.remaining(&self.demand, self.cpu_limit()))
        })
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
        if self.kernel.is_on() {
            return match self.pace {
                Pace::Own => self.advance_on_kernel(now),
                Pace::Shared(rate) => self.share_on_kernel(rate, nanos, now),
            };
        }
        let wanted = match self.pace {
            Pace::Own => self.demand.parallelism,
            Pace::Shared(_) => self.progress.demand_now(&self.demand),
        };
        let (passed, rate) = match self.pace {
            Pace::Own => {
                if self.is_fresh() {
                    self.progress = Progress::start(&self.demand);
                }
                let limit = self.cpu_limit();
                let passed = self.progress.advance(&self.demand, limit, nanos);
                (passed, limit.min(self.demand.parallelism).get())
            }
            Pace::Shared(rate) => {
                (self.progress.advance_shared(&self.demand, rate, nanos), rate as u32)
            }
        };
        let Passed { used, throttled } = passed;
        if throttled > 0 {
            let reserved = wanted.min(self.record.reservation.cpu).get().max(1);
            let share = (1.0 - f64::from(rate) / f64::from(reserved)).max(0.0);
            self.delayed += throttled as f64 * share;
        }
        if used > 0 {
            self.peak = self.peak.max(rate);
        }
        self.record.cpu_used += used;
        self.throttled += throttled;
        self.progress_at = now;
    }

    /// How far it has come at `now`, without bringing anything up to date.
    pub(crate) fn progress_now(&self, now: Timestamp) -> Progress {
        let nanos = now.since(self.progress_at).as_nanos();
        let mut progress = match self.is_fresh() && self.pace == Pace::Own {
            true => Progress::start(&self.demand),
            false => self.progress,
        };
        match self.pace {
            Pace::Own => progress.advance(&self.demand, self.cpu_limit(), nanos),
            Pace::Shared(rate) => progress.advance_shared(&self.demand, rate, nanos),
        };
        progress
    }

    /// Brings progress and use up to the end of the call. A call that was left alone from start to end
    /// and had all it could use, or has but one stretch of work, needs no walk through its segments.
    #[inline]
    pub(crate) fn finish(&mut self, now: Timestamp) {
        if self.kernel.is_on() {
            return self.finish_on_kernel(now);
        }
        let demand = &self.demand;
        let is_left_alone = self.is_fresh() && self.pace == Pace::Own && self.turn == Turn::Ends;
        let is_simple = demand.cycles <= 1 && demand.work > 0;
        let limit = self.cpu_limit();
        let is_short = limit < demand.parallelism;
        if is_left_alone && (is_simple || !is_short) {
            let working = now.since(self.record.started_at + demand.fixed).as_nanos();
            self.throttled = u64::from(is_short) * working;
            self.peak = demand.parallelism.min(limit).get();
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
