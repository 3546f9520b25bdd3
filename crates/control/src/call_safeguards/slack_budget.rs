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
//! at once. Hence, whatever a policy wishes,
//!
//! ```text
//!   time lost  <=  beta * max(run time, T_lo)
//! ```
//!
//! provided that demand stays within `pref`, raises find room and looks are on time. With
//! [`Preference::Reservation`] the first condition always holds, because what a call wants beyond its
//! reservation it would not have had anyway; the price is that calls cannot start below it. With
//! [`Preference::Seen`] a call whose demand surges past `pref` can lose up to `d + a` per surge.

use std::collections::BTreeMap;

use windfall_core::{
    CallId, CallOutcome, CallSafeguard, CallView, Duration, Mebibytes, MilliCpu, Proposal,
    RunningCall,
};

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
    /// A call below its reservation is looked at at least this often.
    pub max_look: Duration,
    /// Throttled share of a window above which the call counts as saturated.
    pub saturated: f64,
    /// Whether a call is granted the slack of the shortest recent run of its function (`T_lo`) from the
    /// start. The bound is then relative to that where a call is shorter.
    pub expects_shortest_run: bool,
    /// What a call is taken to want.
    pub preference: Preference,
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
            max_look: Duration::from_millis(100),
            saturated: 0.02,
            expects_shortest_run: false,
            preference: Preference::Seen,
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
    /// Shortest recent run of each function, by its id.
    shortest: Vec<Option<Duration>>,
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
}

impl Watched {
    fn at_first_look(running: &RunningCall) -> Self {
        let held = running.grant.cpu.cores();
        Self { target: held, seen: 0.0, loss: 0.0, held }
    }

    /// A clear rise counts at once, a drift slowly, a lull not at all; of a throttled window it is only
    /// known that the call wanted at least what it used.
    fn see(&mut self, used: f64, is_throttled: bool) {
        if used > self.seen * 1.12 || (is_throttled && used > self.seen) {
            self.seen = used;
        } else if used >= self.seen * 0.88 && !is_throttled {
            self.seen += 0.3 * (used - self.seen);
        }
    }

    fn preferred(&self, preference: Preference, reservation: f64) -> f64 {
        match preference {
            Preference::Seen => self.target.max(self.seen).min(reservation),
            Preference::Reservation => reservation,
        }
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

    /// A call below its reservation is looked at in time.
    fn watch(&self, reservation: windfall_core::Allocation, proposal: &mut Proposal) {
        if !reservation.fits(proposal.grant) {
            proposal.look_after = Some(self.next_look(proposal.look_after));
        }
    }

    fn hold_cpu(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        let settings = self.settings;
        let shortest = self.shortest.get(running.function.index()).copied().flatten();
        let look = self.next_look(proposal.look_after).as_secs_f64();
        let call = self.calls.entry(running.id).or_insert_with(|| Watched::at_first_look(running));

        let is_throttled = running.sensed.throttled_share > settings.saturated;
        call.see(running.sensed.cpu_used_cores, is_throttled);
        let pref = call.preferred(settings.preference, running.reservation.cpu.cores());
        call.charge(running, pref);
        if is_throttled {
            let restored = proposal.grant.cpu.max(running.reservation.cpu);
            proposal.amend_cpu(NAME, restored, "saturated: the user's size comes back at once");
            return;
        }
        let earned = running.elapsed().max(shortest.unwrap_or(Duration::ZERO)).as_secs_f64();
        let least = call.least(running, pref, settings.beta * earned, look);
        let least = MilliCpu::from_cores(least.max(0.0)).unwrap_or(running.reservation.cpu);
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

/// Rounded up; what cannot be expressed is the most there is.
fn amount(mib: f64) -> Mebibytes {
    Mebibytes::from_mib(mib).unwrap_or(Mebibytes::MAX)
}

impl CallSafeguard for SlackBudget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
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

    fn at_end(&mut self, outcome: &CallOutcome) {
        if !self.calls.is_empty() {
            self.calls.remove(&outcome.id);
        }
        if self.settings.expects_shortest_run && !outcome.was_killed {
            let place = outcome.function.index();
            if place >= self.shortest.len() {
                self.shortest.resize(place + 1, None);
            }
            // A minimum that forgets: a run 1 % longer than the last minimum takes its place.
            let kept = self.shortest[place].map_or(Duration::MAX, |shortest| shortest.scaled(1.01));
            self.shortest[place] = Some(outcome.run().min(kept));
        }
    }
}
