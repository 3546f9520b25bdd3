//! One function: latency against its objective, allocation against use, and what to recommend.

use std::collections::VecDeque;

use serde::Serialize;
use windfall_core::statistics::nearest_rank;
use windfall_core::{
    Allocation, CallEnd, CallRecord, FunctionProfile, FunctionView, PlainSize, Timestamp,
};

use super::instance_history::InstanceHistory;
use super::objective::{LEARNED_FROM, Objective, SloState};
use super::push_bounded;
use super::recent::RecentCall;

/// Length of a bucket of the function's history, seconds.
const BUCKET_SECONDS: f64 = 10.0;
/// Buckets that are kept: an hour of them. Only those in which something happened are there.
const BUCKETS: usize = 360;
/// Calls that the function page lists, and that latency is judged by.
const RECENT: usize = 256;
/// Decisions that a recommendation is made from.
const WANTED: usize = 128;

/// What a call held, in core-seconds and MiB-seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) reserved: f64,
    pub(super) held: f64,
    pub(super) used: f64,
    pub(super) mib_reserved: f64,
    pub(super) mib_held: f64,
    /// Core-seconds that the shadow's size would have held for as long.
    pub(super) ghost: Option<f64>,
}

impl Held {
    pub(super) fn of(call: &CallRecord) -> Self {
        // A call holds its grant from its place on a node to its end, the start of its instance included.
        let seconds = (call.run + call.cold_start).as_secs_f64();
        let core_seconds = |millicore_nanos: u64| millicore_nanos as f64 * 1e-12;
        Self {
            reserved: call.reservation.cpu.cores() * seconds,
            held: core_seconds(call.cpu_granted) + core_seconds(call.cpu_held_back),
            used: core_seconds(call.cpu_used),
            mib_reserved: call.reservation.memory.mib() * seconds,
            mib_held: call.memory_granted as f64 * 1e-9,
            ghost: call.shadow.filter(|size| size.is_finite()).map(|size| size.cores * seconds),
        }
    }
}

/// Ten seconds of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bucket {
    /// Its beginning, seconds since the start.
    pub at: f64,
    /// Calls that ended.
    pub calls: u32,
    /// Late ones among them.
    pub late: u32,
    /// Largest latency, milliseconds.
    pub latency_max_ms: f32,
    /// Mean latency, milliseconds.
    pub latency_mean_ms: f32,
    /// Mean CPU per call while it ran, cores: reserved.
    pub reserved: f32,
    /// Held.
    pub held: f32,
    /// Used.
    pub used: f32,
    /// What the shadow policy would have granted.
    pub ghost: Option<f32>,
    /// Busy seconds that the means are taken over.
    pub busy: f32,
    /// Safeguard trips.
    pub trips: u32,
}

/// A size to set, and what it would save.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// CPU, cores.
    pub cores: f64,
    /// Memory, MiB.
    pub mib: f64,
    /// Decisions it is made from.
    pub decisions: usize,
    /// Core-seconds per hour that it would save at the present load.
    pub saved_core_seconds_per_hour: f64,
}

/// One function as it is shown.
#[derive(Clone, Debug)]
pub struct FunctionLive {
    /// As the platform knows it.
    pub profile: FunctionProfile,
    /// What a new instance gets.
    pub allocation: Allocation,
    /// Instances ready, busy and starting.
    pub instances: (u32, u32, u32),
    /// The same over the last hour.
    pub instance_history: InstanceHistory,
    /// Calls running.
    pub in_flight: u32,
    /// Calls waiting.
    pub queued: u32,
    /// Its objective.
    pub objective: Objective,
    /// Calls that ended.
    pub calls: u64,
    /// Calls that ended without an answer.
    pub failed: u64,
    /// Calls that could be judged by the objective, and late ones among them.
    pub judged: u64,
    /// Late calls.
    pub late: u64,
    /// Cold starts.
    pub cold_starts: u64,
    /// Safeguard trips.
    pub trips: u64,
    /// Core-seconds reserved, held, used.
    pub core_seconds: [f64; 3],
    /// The last calls, newest last.
    pub recent: VecDeque<RecentCall>,
    /// The last hour.
    pub buckets: VecDeque<Bucket>,
    /// Run times at the user's own size, milliseconds.
    own_runs: VecDeque<f32>,
    wanted: VecDeque<PlainSize>,
    last_call_at: Timestamp,
}

impl FunctionLive {
    pub(super) fn new(profile: FunctionProfile) -> Self {
        Self {
            allocation: profile.reservation,
            profile,
            instances: (0, 0, 0),
            instance_history: InstanceHistory::default(),
            in_flight: 0,
            queued: 0,
            objective: Objective::default(),
            calls: 0,
            failed: 0,
            judged: 0,
            late: 0,
            cold_starts: 0,
            trips: 0,
            core_seconds: [0.0; 3],
            recent: VecDeque::new(),
            buckets: VecDeque::new(),
            own_runs: VecDeque::new(),
            wanted: VecDeque::new(),
            last_call_at: Timestamp::ZERO,
        }
    }

    pub(super) fn observe(&mut self, at: f64, view: &FunctionView) {
        self.instance_history.see(at, view.ready.get(), view.busy.get(), view.queued);
        self.allocation = view.allocation;
        self.instances = (view.ready.get(), view.busy.get(), view.starting.get());
        self.in_flight = view.in_flight;
        self.queued = view.queued;
    }

    /// Takes in a call that has ended; whether it met the objective, if that is known.
    pub(super) fn call(&mut self, now: Timestamp, call: &CallRecord, trips: u32) -> Option<bool> {
        self.learn_objective(call);
        let latency_ms = call.ended_at.since(call.arrived_at).as_millis_f64();
        let is_answered = call.end == CallEnd::Completed;
        let met = self.objective.target_ms.map(|target| is_answered && latency_ms <= target);
        self.calls += 1;
        self.failed += u64::from(!is_answered);
        self.judged += u64::from(met.is_some());
        self.late += u64::from(met == Some(false));
        self.cold_starts += u64::from(!call.cold_start.is_zero());
        self.trips += u64::from(trips);
        self.last_call_at = now;
        let held = Held::of(call);
        for (sum, part) in self.core_seconds.iter_mut().zip([held.reserved, held.held, held.used]) {
            *sum += part;
        }
        if call.wanted.is_finite() && call.wanted.cores > 0.0 {
            push_bounded(&mut self.wanted, call.wanted, WANTED);
        }
        let at = now.as_secs_f64();
        push_bounded(&mut self.recent, RecentCall::of(call, at, met), RECENT);
        self.count_in_bucket(at, call, held, (latency_ms, met == Some(false), trips));
        met
    }

    /// Without an objective of the user's, the target follows the run times at the user's own size.
    fn learn_objective(&mut self, call: &CallRecord) {
        if self.objective.is_set {
            return;
        }
        let own = call.baseline.or_else(|| {
            (call.lowest_grant == call.reservation && call.end == CallEnd::Completed)
                .then_some(call.run)
        });
        let Some(own) = own else { return };
        push_bounded(&mut self.own_runs, own.as_millis_f64() as f32, RECENT);
        let count = self.own_runs.len();
        if count == LEARNED_FROM || (count > LEARNED_FROM && self.calls.is_multiple_of(16)) {
            let mut runs: Vec<f64> = self.own_runs.iter().map(|run| f64::from(*run)).collect();
            runs.sort_unstable_by(f64::total_cmp);
            let cold = self.profile.cold_start.median.as_millis_f64();
            self.objective.target_ms =
                Some(Objective::learned(nearest_rank(&runs, 0.99).unwrap_or(0.0), cold));
        }
    }

    fn count_in_bucket(
        &mut self,
        at: f64,
        call: &CallRecord,
        held: Held,
        (latency_ms, is_late, trips): (f64, bool, u32),
    ) {
        let begin = (at / BUCKET_SECONDS).floor() * BUCKET_SECONDS;
        if self.buckets.back().is_none_or(|bucket| bucket.at < begin) {
            push_bounded(&mut self.buckets, Bucket { at: begin, ..Bucket::default() }, BUCKETS);
        }
        let Some(bucket) = self.buckets.back_mut() else { return };
        bucket.calls += 1;
        bucket.late += u32::from(is_late);
        bucket.trips += trips;
        let share = 1.0 / bucket.calls as f32;
        bucket.latency_mean_ms += (latency_ms as f32 - bucket.latency_mean_ms) * share;
        bucket.latency_max_ms = bucket.latency_max_ms.max(latency_ms as f32);
        let seconds = ((call.run + call.cold_start).as_secs_f64() as f32).max(1e-6);
        bucket.busy += seconds;
        // Means weighted by time: a call of 2 s at 0.5 cores and one of 1 s at 2 cores hold 1 core on average.
        let weight = seconds / bucket.busy;
        let blend = |mean: &mut f32, core_seconds: f64| {
            *mean += (core_seconds as f32 / seconds - *mean) * weight;
        };
        blend(&mut bucket.reserved, held.reserved);
        blend(&mut bucket.held, held.held);
        blend(&mut bucket.used, held.used);
        if let Some(ghost) = held.ghost {
            blend(bucket.ghost.get_or_insert(ghost as f32 / seconds), ghost);
        }
    }

    /// Latency of the recent calls at quantile `q`, milliseconds.
    pub fn latency_ms(&self, q: f64) -> Option<f64> {
        if self.recent.is_empty() {
            return None;
        }
        let mut all: Vec<f64> = self.recent.iter().map(|call| f64::from(call.latency_ms)).collect();
        all.sort_unstable_by(f64::total_cmp);
        nearest_rank(&all, q)
    }

    /// Calls and late ones of the last hour.
    fn last_hour(&self, now: Timestamp) -> (u64, u64) {
        let from = now.as_secs_f64() - 3600.0;
        let of_hour = self.buckets.iter().filter(|bucket| bucket.at >= from);
        of_hour.fold((0, 0), |(calls, late), bucket| {
            (calls + u64::from(bucket.calls), late + u64::from(bucket.late))
        })
    }

    /// The share of the last hour's error budget that is left.
    pub fn budget_left(&self, now: Timestamp) -> f64 {
        let (calls, late) = self.last_hour(now);
        self.objective.budget_left(calls, late)
    }

    /// How it stands against its objective.
    pub fn slo_state(&self, now: Timestamp) -> SloState {
        let (calls, _) = self.last_hour(now);
        if self.objective.target_ms.is_none() {
            return if calls == 0 { SloState::Idle } else { SloState::Learning };
        }
        match self.budget_left(now) {
            _ if calls == 0 => SloState::Idle,
            left if left < 0.0 => SloState::Violated,
            left if left < 0.5 => SloState::AtRisk,
            _ => SloState::Met,
        }
    }

    /// Calls per minute over the last five minutes.
    pub fn calls_per_minute(&self, now: Timestamp) -> f64 {
        let seconds = now.as_secs_f64().clamp(BUCKET_SECONDS, 300.0);
        let from = now.as_secs_f64() - seconds;
        let recent = self.buckets.iter().rev().take_while(|bucket| bucket.at >= from);
        recent.map(|bucket| f64::from(bucket.calls)).sum::<f64>() * 60.0 / seconds
    }

    /// The size that 95 of 100 recent decisions would have been content with, if it differs from the user's.
    pub fn recommendation(&self, now: Timestamp) -> Option<Recommendation> {
        if self.wanted.len() < LEARNED_FROM {
            return None;
        }
        let at = |of: fn(&PlainSize) -> f64| {
            let mut all: Vec<f64> = self.wanted.iter().map(of).collect();
            all.sort_unstable_by(f64::total_cmp);
            nearest_rank(&all, 0.95).unwrap_or(0.0)
        };
        let own = self.profile.reservation;
        // Whole 50 millicores and 16 MiB: sizes that people can compare and type.
        let cores = ((at(|size| size.cores) / 0.05).ceil() * 0.05).max(0.05);
        let mib = ((at(|size| size.mib) / 16.0).ceil() * 16.0).max(16.0);
        let differs = (cores - own.cpu.cores()).abs() > 0.1 * own.cpu.cores()
            || (mib - own.memory.mib()).abs() > 0.1 * own.memory.mib();
        let busy: f64 = self.buckets.iter().map(|bucket| f64::from(bucket.busy)).sum();
        let hours = (now.as_secs_f64() / 3600.0).clamp(1.0 / 60.0, 1.0);
        let saved = (own.cpu.cores() - cores) * busy / hours;
        differs.then_some(Recommendation {
            cores,
            mib,
            decisions: self.wanted.len(),
            saved_core_seconds_per_hour: saved,
        })
    }

    /// Seconds since its last call ended, if it was ever called.
    pub fn idle_seconds(&self, now: Timestamp) -> Option<f64> {
        (self.calls > 0).then(|| now.since(self.last_call_at).as_secs_f64())
    }
}
