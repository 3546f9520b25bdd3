//! The slack budget: a running call may lose at most a small share of the time it has already run.
//!
//! A call that prefers `pref` cores and holds `g < pref` loses at most `1 - g/pref` of every moment. A
//! trim made now is seen at the next look, after `d`, and can be undone `a` later (the actuation delay).
//! So it costs at most `(d + a)(1 - g/pref)`, and that, on top of the `loss` so far, must stay within
//! `beta` of the time already run:
//!
//! ```text
//!   loss + (d + a)(1 - g/pref)  <=  beta * max(elapsed, T_lo)
//!   g  >=  g_min = pref * (1 - (beta * max(elapsed, T_lo) - loss) / (d + a))
//!
//!   pref = min(reservation, max(target, seen))     target: what it started with; seen: stable use
//! ```
//!
//! Worked: reservation 1000m, pref 600m, 2 s run, beta 1 %, 5 ms lost, next look in 100 ms, 10 ms to
//! act. The budget is 20 - 5 = 15 ms, at most 15/110 of the next 110 ms may be lost:
//! `g_min = 600 * (1 - 0.136) = 519m`.
//!
//! When the old grant was lower than the new one, it still holds for `a`; that part of the loss is fixed
//! and taken off the budget first. The loss is charged from throttled time against `pref`, which is
//! never too little while demand stays within `pref`. On saturation the call gets its reservation back
//! at once. Hence, whatever a policy decides,
//!
//! ```text
//!   time lost  <=  beta * max(run time, T_lo)
//! ```
//!
//! provided that demand stays within `pref`, raises find room and looks are on time. With
//! [`Preference::Reservation`] the first condition always holds, because what a call wants beyond its
//! reservation it would not have had anyway; the price is that calls cannot start below it. With
//! [`Preference::Seen`] a call whose demand surges past `pref` can lose up to `d + a` per surge.
//! [`Preference::Surges`] keeps `pref` closer to what the call was seen to use, by how far earlier calls of
//! its function rose from there ([`SurgeSettings`]).
//!
//! A deep trim and a short look cost the same slack, so a look may be brought forward to afford a decision:
//! with 15 ms of slack nothing at all is affordable for 15 ms, and 519m of 600m for 110 ms.

use std::collections::BTreeMap;

use windfall_core::{
    CallId, CallOutcome, CallSafeguard, CallView, Duration, FunctionId, Mebibytes, MilliCpu,
    Proposal, Resized, RunningCall,
};

use super::long_run::LongRun;
use super::surges::{SurgeSettings, Surges};
use crate::call_loop::SHORTEST_LOOK;

pub(super) const NAME: &str = "slack-budget";

/// What a call is taken to want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// The larger of what it started with and what it was seen to use.
    #[default]
    Seen,
    /// All of its reservation: nothing is assumed.
    Reservation,
    /// What it was seen to use times how far calls of its function rise from there, once both are known.
    Surges,
}

/// The knobs of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlackSettings {
    /// Share of its run time that a call may lose.
    ///
    /// | beta  | core-seconds granted, prototype | p99 of run time over the user's |
    /// | ----- | ------------------------------- | ------------------------------- |
    /// | 0.003 | +6 %                            | 1.001                           |
    /// | 0.01  | as measured                     | 1.004 to 1.006                  |
    pub beta: f64,
    /// The share while calls wait for room: the more often they do, the closer to this.
    pub beta_queued: f64,
    /// The share for calls that have run longer than all but [`long_share`](Self::long_share) of calls do.
    pub beta_long: f64,
    /// How many calls count as long. They are few, so that what they lose is out of sight of a p99, and they
    /// hold a large part of all core-seconds.
    pub long_share: f64,
    /// A call below its reservation is looked at at least this often.
    pub max_look: Duration,
    /// A look may be brought forward to this to afford a deeper trim.
    pub soonest_look: Duration,
    /// Throttled share of a window above which the call counts as saturated.
    pub saturated: f64,
    /// Whether a call is granted the slack of the shortest recent run of its function (`T_lo`) from the
    /// start. The bound is then relative to that where a call is shorter.
    pub expects_shortest_run: bool,
    /// What a call is taken to want.
    pub preference: Preference,
    /// How far calls rise, for [`Preference::Surges`].
    pub surges: SurgeSettings,
    /// Whether a saturated call gets what it is taken to want first, then what it started with, and its
    /// reservation only if that was not enough either; otherwise the reservation at once.
    pub restores_in_stages: bool,
    /// Share of what was taken from a call that its node keeps out of new calls' reach, so that a raise
    /// finds room.
    pub reserve: f64,
    /// All of that share for calls that have run this long at most, seconds; less for longer ones, which
    /// can wait for room in proportion to the time they have run without being much later for it.
    pub reserve_seconds: f64,
    /// Share of its limit from which memory in use raises the alarm.
    pub memory_alarm: f64,
    /// On alarm the limit grows by this factor, up to the reservation.
    pub memory_raise: f64,
    /// Memory is never trimmed below what is in use times this.
    pub memory_margin: f64,
}

impl Default for SlackSettings {
    fn default() -> Self {
        Self {
            beta: 0.01,
            beta_queued: 0.01,
            beta_long: 0.01,
            long_share: 0.003,
            max_look: Duration::from_millis(100),
            soonest_look: Duration::from_millis(100),
            saturated: 0.02,
            expects_shortest_run: false,
            preference: Preference::Seen,
            surges: SurgeSettings::default(),
            restores_in_stages: false,
            reserve: 0.0,
            reserve_seconds: 5.0,
            memory_alarm: 0.93,
            memory_raise: 1.3,
            memory_margin: 1.1,
        }
    }
}

/// The rule with the state of the calls it watches.
#[derive(Clone, Debug, Default)]
pub struct SlackBudget {
    settings: SlackSettings,
    /// Calls that were looked at and have not ended.
    calls: BTreeMap<CallId, Watched>,
    /// What is known of each function, by its id.
    functions: Vec<Known>,
    /// How often calls had to wait lately, 0 to 1.
    price: f64,
    /// How long only few calls run.
    long: LongRun,
}

/// What is known of a function.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its shortest recent run.
    shortest: Option<Duration>,
    surges: Option<Surges>,
}

/// What is known of a call from one look to the next.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// What it held at its first look, cores.
    target: f64,
    /// Its stable use, cores.
    seen: f64,
    /// Time lost so far, seconds.
    loss: f64,
    /// What it held at the last look, cores: still in force for the first part of the window after it.
    held: f64,
    /// Use in the last window that was not throttled, cores.
    last: f64,
    /// Use when two windows first were alike, cores.
    settled: Option<f64>,
    /// The highest stable use since, cores.
    highest: f64,
    /// Whether it needed more than surges made expect: they say nothing about this call.
    is_exceptional: bool,
}

/// Weight of one dispatch in the share of dispatches that found others waiting.
const PRICE_WEIGHT: f64 = 0.05;

/// Use below this says nothing about what a call needs when it works, cores.
const IDLE_CORES: f64 = 0.05;

impl Watched {
    fn at_first_look(running: &RunningCall) -> Self {
        let held = running.grant.cpu.cores();
        Self {
            target: held,
            seen: 0.0,
            loss: 0.0,
            held,
            last: 0.0,
            settled: None,
            highest: 0.0,
            is_exceptional: false,
        }
    }

    /// A clear rise counts at once, a drift slowly, a lull not at all; of a throttled window it is only
    /// known that the call wanted at least what it used.
    fn see(&mut self, used: f64, is_throttled: bool) {
        if used > self.seen * 1.12 || (is_throttled && used > self.seen) {
            self.seen = used;
        } else if used >= self.seen * 0.88 && !is_throttled {
            self.seen += 0.3 * (used - self.seen);
        }
        if !is_throttled {
            let is_alike = used > 0.88 * self.last && used < 1.12 * self.last;
            if self.settled.is_none() && is_alike && used > IDLE_CORES {
                self.settled = Some(self.seen);
            }
            self.last = used;
        }
        self.highest = self.highest.max(self.seen);
    }

    fn preferred(&self, preference: Preference, surge: Option<f64>, reservation: f64) -> f64 {
        let known = self.target.max(self.seen);
        let wanted = match (preference, self.settled, surge) {
            (Preference::Reservation, ..) => reservation,
            (Preference::Surges, Some(_), Some(factor)) if !self.is_exceptional => {
                known.min(self.seen * factor)
            }
            (Preference::Seen | Preference::Surges, ..) => known,
        };
        wanted.min(reservation)
    }

    /// What a saturated call gets back: the first stage that is more than it has.
    fn restored(&mut self, running: &RunningCall, pref: f64) -> f64 {
        let enough = 1.03 * running.grant.cpu.cores();
        if pref > enough {
            return pref;
        }
        self.is_exceptional = true;
        let known = self.target.max(self.seen);
        if known > enough { known } else { running.reservation.cpu.cores() }
    }

    /// Adds what the window may have cost at most. A call that was throttled at or above `pref` shows
    /// that `pref` was too low; a tenth of the time is charged, as nobody can know how much it was.
    fn charge(&mut self, running: &RunningCall, pref: f64) {
        let throttled = running.sensed.throttled_share * running.sensed.window.as_secs_f64();
        let lowest = self.held.min(running.grant.cpu.cores());
        if lowest < pref {
            self.loss += throttled * (1.0 - lowest / pref);
        } else if running.grant.cpu < running.reservation.cpu {
            self.loss += 0.1 * throttled;
        }
        self.held = running.grant.cpu.cores();
    }

    /// How soon the next look has to come so that `proposed` cores can be afforded, seconds; `asked` where
    /// an early look would gain next to nothing.
    fn look_to_afford(
        &self,
        running: &RunningCall,
        (proposed, pref): (f64, f64),
        slack: f64,
        (soonest, asked): (f64, f64),
    ) -> f64 {
        if proposed >= pref || slack < 0.05 * soonest {
            return asked;
        }
        let look = slack / (1.0 - proposed / pref) - running.actuation_delay.as_secs_f64();
        look.max(soonest).min(asked)
    }

    /// The least the call may hold until the look after `look`, cores.
    fn least(&self, running: &RunningCall, pref: f64, budget: f64, look: f64) -> f64 {
        let delay = running.actuation_delay.as_secs_f64();
        let slack = budget - self.loss;
        let least = pref * (1.0 - slack / (look + delay));
        if least <= self.held {
            return least.min(pref);
        }
        // A raise: the old grant still costs this much before the new one holds.
        let pending = delay * (1.0 - self.held / pref).max(0.0);
        (pref * (1.0 - (slack - pending) / look)).min(pref)
    }
}

impl SlackBudget {
    /// The rule with these settings.
    pub fn new(settings: SlackSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Calls that are being watched.
    pub fn watched(&self) -> usize {
        self.calls.len()
    }

    /// How long after this look the next one comes at the latest.
    fn next_look(&self, asked: Option<Duration>) -> Duration {
        asked.unwrap_or(self.settings.max_look).min(self.settings.max_look).max(SHORTEST_LOOK)
    }

    fn known(&mut self, function: FunctionId) -> &mut Known {
        let place = function.index();
        if place >= self.functions.len() {
            self.functions.resize_with(place + 1, Known::default);
        }
        &mut self.functions[place]
    }

    /// A call below its reservation is looked at in time.
    fn watch(&self, reservation: windfall_core::Allocation, proposal: &mut Proposal) {
        if !reservation.fits(proposal.grant) {
            proposal.look_after = Some(self.next_look(proposal.look_after));
        }
    }

    /// The share a call that has run for `elapsed` may lose now: more while others wait for room, and more if it
    /// is one of the few that run long.
    fn beta(&self, elapsed: Duration) -> f64 {
        let SlackSettings { beta, beta_queued, beta_long, .. } = self.settings;
        let priced = beta + self.price * (beta_queued - beta);
        if elapsed.as_secs_f64() > self.long.seconds() { priced.max(beta_long) } else { priced }
    }

    fn hold_cpu(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        let (settings, beta) = (self.settings, self.beta(running.elapsed()));
        let known = self.functions.get(running.function.index());
        let shortest = known.and_then(|known| known.shortest);
        let surge = known.and_then(|known| known.surges.as_ref()?.factor());
        let asked = self.next_look(proposal.look_after).as_secs_f64();
        let call = self.calls.entry(running.id).or_insert_with(|| Watched::at_first_look(running));

        let is_throttled = running.sensed.throttled_share > settings.saturated;
        call.see(running.sensed.cpu_used_cores, is_throttled);
        let pref = call.preferred(settings.preference, surge, running.reservation.cpu.cores());
        call.charge(running, pref);
        if is_throttled {
            let restored = match settings.restores_in_stages {
                true => amount_of_cpu(call.restored(running, pref), running),
                false => running.reservation.cpu,
            };
            let restored = proposal.grant.cpu.max(restored);
            proposal.amend_cpu(NAME, restored, "saturated: what was taken comes back at once");
            return;
        }
        let earned = running.elapsed().max(shortest.unwrap_or(Duration::ZERO)).as_secs_f64();
        let budget = beta * earned;
        let proposed = proposal.grant.cpu.cores();
        let limits = (settings.soonest_look.as_secs_f64(), asked);
        let look = call.look_to_afford(running, (proposed, pref), budget - call.loss, limits);
        if look < asked {
            proposal.look_after = Some(Duration::from_secs_f64(look));
        }
        let least = call.least(running, pref, budget, look);
        let least = amount_of_cpu(least.max(0.0), running);
        let missing = pref - proposal.grant.cpu.max(least).cores();
        let reserve = settings.reserve * (settings.reserve_seconds / earned.max(1e-9)).min(1.0);
        proposal.held_back = amount_of_cpu((reserve * missing).max(0.0), running);
        let reason = "no trim may cost more than the slack the call has earned";
        proposal.amend_cpu(NAME, proposal.grant.cpu.max(least), reason);
    }

    fn hold_memory(&self, running: &RunningCall, proposal: &mut Proposal) {
        let settings = &self.settings;
        let (used, limit) = (running.sensed.memory_mib, running.grant.memory);
        if used > limit.mib() * settings.memory_alarm && limit < running.reservation.memory {
            let raised =
                amount(limit.mib() * settings.memory_raise).min(running.reservation.memory);
            let raised = proposal.grant.memory.max(raised);
            proposal.amend_memory(NAME, raised, "memory in use is close to the limit");
        }
        let least = amount(used * settings.memory_margin)
            .min(running.grant.memory.max(running.reservation.memory));
        let kept = proposal.grant.memory.max(least);
        proposal.amend_memory(NAME, kept, "memory is not trimmed below what is in use");
    }
}

/// Rounded up; what cannot be expressed is the user's size.
fn amount_of_cpu(cores: f64, running: &RunningCall) -> MilliCpu {
    MilliCpu::from_cores(cores).unwrap_or(running.reservation.cpu)
}

/// Rounded up; what cannot be expressed is the most there is.
fn amount(mib: f64) -> Mebibytes {
    Mebibytes::from_mib(mib).unwrap_or(Mebibytes::MAX)
}

impl CallSafeguard for SlackBudget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        self.price += PRICE_WEIGHT * (f64::from(call.waiting > 0) - self.price);
        if self.settings.preference == Preference::Reservation {
            let whole = proposal.grant.cpu.max(call.reservation.cpu);
            proposal.amend_cpu(NAME, whole, "no slack is earned before the start");
        }
        self.watch(call.reservation, proposal);
    }

    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        let sensed = &running.sensed;
        let is_sane = sensed.cpu_used_cores.is_finite()
            && sensed.throttled_share.is_finite()
            && sensed.memory_mib.is_finite();
        if is_sane {
            self.hold_cpu(running, proposal);
            self.hold_memory(running, proposal);
        } else {
            let reason = "the sensors make no sense";
            let safe = proposal.grant.max(running.reservation);
            proposal.amend_cpu(NAME, safe.cpu, reason);
            proposal.amend_memory(NAME, safe.memory, reason);
        }
        self.watch(running.reservation, proposal);
    }

    /// A change that came late, or twice between two looks, counts with the least that was in force.
    fn resized(&mut self, change: &Resized) {
        if let Some(call) = self.calls.get_mut(&change.call) {
            call.held = call.held.min(change.in_force.cpu.cores());
        }
    }

    fn lost(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    fn at_end(&mut self, outcome: &CallOutcome) {
        let watched = if self.calls.is_empty() { None } else { self.calls.remove(&outcome.id) };
        let settings = self.settings;
        let learns_surges = settings.preference == Preference::Surges;
        if !outcome.was_killed && settings.beta_long > settings.beta {
            self.long.learn(outcome.run().as_secs_f64(), settings.long_share);
        }
        if outcome.was_killed || !(settings.expects_shortest_run || learns_surges) {
            return;
        }
        let known = self.known(outcome.function);
        let run = outcome.run();
        // A minimum that forgets: a run 1 % longer than the last minimum takes its place.
        let kept = known.shortest.map_or(Duration::MAX, |shortest| shortest.scaled(1.01));
        if settings.expects_shortest_run {
            known.shortest = Some(run.min(kept));
        }
        if let Some(call) = watched.filter(|_| learns_surges) {
            let ratio = call.settled.map(|settled| call.highest / settled);
            let lost = call.loss / run.as_secs_f64().max(1e-9);
            let surges = known.surges.get_or_insert_with(|| Surges::new(&settings.surges));
            surges.learn(&settings.surges, ratio, lost);
        }
    }
}
