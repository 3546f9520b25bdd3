//! The manager: one thread's worth of work, step by step. Time is an argument, so that tests can play stories without a
//! clock; [`crate::service`] calls it in wall time.

mod build;
mod carry_out;
mod ledger_platform;
mod restart;
mod versions;

use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use windfall_control::ControlLoop;
use windfall_core::{CallRecord, Duration, FunctionId, FunctionProfile, TickRecord, Timestamp};

use crate::database::Records;
use crate::governance::Governance;
use crate::learning::{RewardPoint, Service, Trial};
use crate::live::{Live, TapeKind, Totals};
use crate::managed_platform::{ManagedPlatform, PlatformKind};
use crate::orders::{Desk, Order};
use crate::switched_calls::PolicySlot;

pub use build::{PlatformParts, Prepared, SupervisorSettings, prepare};
use ledger_platform::LedgerPlatform;
pub use versions::Named;

/// How often what is on disk is reported about the calls: rewards are per minute.
const REWARD_EVERY: Duration = Duration::from_secs(60);

/// The picture that everyone reads.
pub type SharedLive = Arc<RwLock<Live>>;

/// The manager of one platform.
pub struct Supervisor {
    platform: Box<dyn ManagedPlatform>,
    control: ControlLoop,
    governance: Arc<Governance>,
    slot: Arc<PolicySlot>,
    live: SharedLive,
    records: Records,
    settings: SupervisorSettings,
    desk: Desk,
    inbox: Receiver<Order>,
    next_tick: Timestamp,
    ended: Vec<CallRecord>,
    /// Entries of the tape that the database has.
    recorded: u64,
    trial: Option<Trial>,
    /// Policy and settings of the version before the one in charge, on trial or not.
    version_before: Option<versions::Named>,
    in_charge: versions::Named,
    /// What was counted when the last minute began.
    minute: (Timestamp, Totals),
}

impl Supervisor {
    /// Puts `prepared` in charge of `platform`, with what `records` remembers of an earlier run.
    pub fn new(prepared: Prepared, platform: Box<dyn ManagedPlatform>, records: Records) -> Self {
        let Prepared { control, governance, slot, settings, in_charge } = prepared;
        let (desk, inbox) = Desk::open(Arc::clone(&governance));
        let mut live = Live::default();
        live.policy.clone_from(&settings.policy);
        live.shadow.clone_from(&settings.shadow);
        introduce(&mut live, platform.functions(), platform.kind(), &governance);
        live.learning.is_learning = settings.learns;
        live.learning.add(Timestamp::ZERO, in_charge.version("start", "the policy at the start"));
        let mut manager = Self {
            platform,
            control,
            governance,
            slot,
            live: Arc::new(RwLock::new(live)),
            records,
            settings,
            desk,
            inbox,
            next_tick: Timestamp::ZERO,
            ended: Vec::new(),
            recorded: 0,
            trial: None,
            version_before: None,
            in_charge,
            minute: (Timestamp::ZERO, Totals::default()),
        };
        manager.remember_functions();
        manager.take_up_earlier_run();
        manager.records.checkpoint(&manager.in_charge);
        manager
    }

    /// The picture that everyone reads.
    pub fn live(&self) -> SharedLive {
        Arc::clone(&self.live)
    }

    /// Where orders are given.
    pub fn desk(&self) -> Desk {
        self.desk.clone()
    }

    /// Modes, holds and the kill switch.
    pub fn governance(&self) -> Arc<Governance> {
        Arc::clone(&self.governance)
    }

    /// Where a new policy is offered, and the calls that have ended.
    pub fn slot(&self) -> Arc<PolicySlot> {
        Arc::clone(&self.slot)
    }

    /// The platform.
    pub fn platform(&self) -> &dyn ManagedPlatform {
        self.platform.as_ref()
    }

    /// Where functions run.
    pub fn kind(&self) -> PlatformKind {
        self.platform.kind()
    }

    /// What it was started with.
    pub fn settings(&self) -> &SupervisorSettings {
        &self.settings
    }

    /// Whether latency at the users' own sizes has to be measured.
    fn measures(&self) -> bool {
        self.platform.kind() != PlatformKind::Simulated
    }

    fn with_live<T>(&self, with: impl FnOnce(&mut Live) -> T) -> T {
        with(&mut self.live.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything that is due at `now`: orders, calls that have ended, and a tick. Returns the tick if there was one.
    pub fn step(&mut self, now: Timestamp) -> Option<TickRecord> {
        while let Ok(order) = self.inbox.try_recv() {
            let answer = self.carry_out(now, &order.command, &order.by);
            // Whoever asked may have given up waiting.
            let _ = order.reply.try_send(answer);
        }
        self.collect(now);
        let is_due = now >= self.next_tick;
        let tick = is_due.then(|| {
            // After a long pause one tick makes up for all that were missed.
            self.next_tick = now + self.settings.tick;
            self.tick(now)
        });
        if tick.is_some() {
            self.close_minute(now);
            self.watch_trial(now);
        }
        self.record_tape();
        tick
    }

    /// A step whose time inside the platform is not counted: how long the manager itself took, for benchmarks.
    pub fn step_without_platform(&mut self, now: Timestamp) -> std::time::Duration {
        let mut ended = std::mem::take(&mut self.ended);
        self.platform.collect(now, &mut ended);
        let began = Instant::now();
        self.take_in(now, ended);
        self.step(now);
        began.elapsed()
    }

    fn collect(&mut self, now: Timestamp) {
        let mut ended = std::mem::take(&mut self.ended);
        self.platform.collect(now, &mut ended);
        self.take_in(now, ended);
    }

    fn take_in(&mut self, now: Timestamp, mut ended: Vec<CallRecord>) {
        let governance = &self.governance;
        self.with_live(|live| {
            live.pass_time(now);
            for call in &ended {
                let is_known = |live: &Live| live.has_objective(call.function);
                let was_known = is_known(live);
                live.call(call);
                if !was_known && is_known(live) {
                    governance.set_unmeasured(call.function, false);
                }
            }
        });
        ended.iter().for_each(|call| self.records.call(now, call));
        ended.clear();
        self.ended = ended;
    }

    /// One tick of the loop. Its length is measured by a clock of its own, because the platform may own `now`.
    fn tick(&mut self, now: Timestamp) -> TickRecord {
        let began = Instant::now();
        let Self { control, platform, records, governance, .. } = self;
        let mut platform = LedgerPlatform { platform: platform.as_mut(), records, governance };
        let tick = control.tick(now, &mut platform);
        let took = Duration::from_nanos(began.elapsed().as_nanos() as u64);
        self.remember_functions();
        let nodes = self.platform.nodes(now);
        let (in_doubt, to_restore) =
            (self.control.in_doubt().functions().count(), self.governance.to_restore());
        let is_quarantined = self.control.is_quarantined() || self.slot.is_quarantined();
        self.records.tend();
        let (database, rows_dropped) = (self.records.problem(), self.records.dropped());
        let counters = self.control.counters();
        let functions = self.platform.functions();
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        introduce(&mut live, functions, self.platform.kind(), &self.governance);
        live.totals.ticks = counters.ticks;
        live.totals.blind_ticks = counters.blind;
        live.totals.refused = counters.refused;
        live.count_trips(tick.plan.amendments().iter().map(|amendment| amendment.rule.as_ref()));
        live.tape.tick(&tick);
        live.observe(&tick.observation, nodes);
        let health = &mut live.health;
        health.last_tick = now;
        health.tick_took = took;
        health.longest_tick = health.longest_tick.max(took);
        if tick.error.is_none() {
            health.seen_at = tick.observation.taken_at;
        }
        health.blind.clone_from(&tick.error);
        (health.in_doubt, health.to_restore) = (in_doubt, to_restore);
        (health.is_quarantined, health.database) = (is_quarantined, database);
        health.rows_dropped = rows_dropped;
        drop(live);
        tick
    }

    /// Notes the reward of every minute that has passed.
    fn close_minute(&mut self, now: Timestamp) {
        let (began, before) = &self.minute;
        if now.since(*began) < REWARD_EVERY {
            return;
        }
        let before = before.clone();
        let totals = self.with_live(|live| {
            let totals = live.totals.clone();
            let reserved = totals.core_seconds_reserved - before.core_seconds_reserved;
            let saved = totals.core_seconds_saved() - before.core_seconds_saved();
            let service = service_of(&totals).since(service_of(&before));
            let saved_share = saved / reserved.max(1e-9);
            let late_share = service.late_share();
            let reward = saved_share - 10.0 * late_share;
            let at = now.as_secs_f64();
            live.learning.reward(RewardPoint { at, reward, late_share, saved_share });
            totals
        });
        self.minute = (now, totals);
    }

    fn record_tape(&mut self) {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let recorded = self.recorded;
        let new = live.tape.entries().rev().take_while(|entry| entry.id > recorded);
        let mut new: Vec<_> = new.collect();
        new.reverse();
        new.iter().for_each(|entry| self.records.decision(entry));
        self.recorded = live.tape.last();
    }

    /// Stops: every function gets its own allocation back. `clock` is asked for the time of each attempt; after `most`
    /// attempts what is not confirmed stays on record, and the next start takes it up.
    pub fn stop(&mut self, mut clock: impl FnMut() -> Timestamp, most: u32) -> bool {
        let was_killed = self.governance.is_killed();
        self.governance.set_killed(true);
        for _ in 0..most {
            let now = clock();
            self.collect(now);
            self.tick(now);
            if self.governance.touched().is_empty() {
                break;
            }
        }
        let is_whole = self.governance.touched().is_empty();
        let now = clock();
        self.platform.release(now);
        self.governance.set_killed(was_killed);
        let done = match is_whole {
            true => "every function has its own allocation".to_owned(),
            false => format!("{} functions are not confirmed", self.governance.touched().len()),
        };
        tracing::info!(is_whole, "stopped");
        self.with_live(|live| live.tape.note(now, TapeKind::Supervisor, "stop".to_owned(), done));
        self.record_tape();
        self.records.close(is_whole);
        is_whole
    }
}

/// Takes in functions that are new. Where functions are real nobody knows what they take at their own size, so that is
/// measured first; the simulator reports it with every call.
fn introduce(
    live: &mut Live,
    functions: &[FunctionProfile],
    kind: PlatformKind,
    governance: &Governance,
) {
    let known = live.functions.len();
    live.introduce(functions);
    if kind != PlatformKind::Simulated {
        let new = known..live.functions.len();
        new.for_each(|place| governance.set_unmeasured(FunctionId(place as u32), true));
    }
}

/// Judged and late calls among `totals`.
fn service_of(totals: &Totals) -> Service {
    Service { judged: totals.judged, late: totals.judged - totals.met }
}

#[cfg(test)]
mod learning_stories;
#[cfg(test)]
mod stories;
