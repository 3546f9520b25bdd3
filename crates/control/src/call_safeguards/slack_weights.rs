//! Who gives way when a node is short of CPU: calls that can afford it, and only as far as they can.
//!
//! ```text
//!   loss     time by which waiting for CPU has set the call back so far
//!   gain     time by which CPU beyond its reservation has brought it forward: (use - reservation) / reservation
//!   slack    0.04 * (time it would have run alone) - loss + gain
//!   weight   slack > 3 ms: a policy may lower it to a twentieth of the reservation;  else: the reservation
//! ```
//!
//! A call that would have run for 2 s alone and lost 20 ms has 60 ms of slack: while it gives way, a call that has just
//! begun and has none gets its cores. With more than `ahead_seconds` it may hold the lower weight before its node is short, so
//! that the kernel does this in the scheduling decision in which the other call wakes up; the first look follows within
//! 5 ms, and until then nobody loses more than that. Looked at every 5 ms, it loses at most 5 ms more than is left to it, so no call
//! runs more than 5 % longer because of its own slack. Without a measurement, with less weight than a twentieth, or on a
//! node that is not short, it gets its reservation back.

use std::collections::BTreeMap;

use windfall_core::{
    CallId, CallOutcome, CallSafeguard, CallView, MilliCpu, Proposal, RunningCall,
};

pub(super) const NAME: &str = "slack-weights";

/// Settings of [`SlackWeights`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlackWeightsSettings {
    /// Share of its run alone that a call may lose.
    pub beta: f64,
    /// The least weight of a call that gives way, as a share of its reservation.
    pub least_share: f64,
    /// Slack below which a call does not give way, seconds.
    pub margin_seconds: f64,
    /// Whether a call that had more than its reservation may give that back.
    pub credits: bool,
    /// Slack above which a call may hold the lower weight before its node is short, seconds: what it can lose until the
    /// first look after that.
    pub ahead_seconds: Option<f64>,
}

impl Default for SlackWeightsSettings {
    fn default() -> Self {
        Self {
            beta: 0.04,
            least_share: 0.05,
            margin_seconds: 0.003,
            credits: true,
            ahead_seconds: None,
        }
    }
}

/// No call below its guaranteed weight but within its slack.
#[derive(Clone, Debug, Default)]
pub struct SlackWeights {
    settings: SlackWeightsSettings,
    /// What became of calls that have lost or gained time.
    accounts: BTreeMap<CallId, Account>,
}

/// Seconds that a call has lost and gained.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    lost: f64,
    gained: f64,
}

impl SlackWeights {
    /// A rule that has seen no call.
    pub fn new(settings: SlackWeightsSettings) -> Self {
        Self { settings, accounts: BTreeMap::new() }
    }

    /// Seconds that the call may still lose.
    fn slack(&mut self, running: &RunningCall) -> f64 {
        let sensed = &running.sensed;
        let seconds = sensed.window.as_secs_f64();
        // What was not measured may all have been lost.
        let lost = if sensed.is_lost() { seconds } else { sensed.delayed_share * seconds };
        let reserved = running.reservation.cpu.cores().max(1e-3);
        let beyond = (sensed.cpu_used_cores / reserved - 1.0).max(0.0);
        let gained = if self.settings.credits { beyond * seconds } else { 0.0 };
        if lost > 0.0 || gained > 0.0 {
            let account = self.accounts.entry(running.id).or_default();
            account.lost += lost;
            account.gained += gained;
        }
        let Account { lost, gained } = self.accounts.get(&running.id).copied().unwrap_or_default();
        let alone = running.elapsed().as_secs_f64() - lost + gained;
        self.settings.beta * alone - lost + gained
    }
}

impl CallSafeguard for SlackWeights {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        let guaranteed = call.reservation.cpu.min(call.ceiling.cpu);
        proposal.amend_cpu(
            NAME,
            proposal.grant.cpu.max(guaranteed),
            "a call starts with its guaranteed weight",
        );
    }

    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        let reserved = running.reservation.cpu.min(running.ceiling.cpu);
        let slack = self.slack(running);
        let is_known = !running.sensed.is_lost();
        let SlackWeightsSettings { margin_seconds, ahead_seconds, .. } = self.settings;
        let enough = if running.node_is_short { Some(margin_seconds) } else { ahead_seconds };
        let may_give_way = is_known && enough.is_some_and(|enough| slack > enough);
        let least = if may_give_way {
            let millis = f64::from(reserved.get()) * self.settings.least_share;
            MilliCpu::new((millis.ceil() as u32).clamp(1, reserved.get().max(1)))
        } else {
            reserved
        };
        if proposal.grant.cpu < least {
            proposal.amend_cpu(NAME, least, "no less than its guaranteed weight");
        }
    }

    fn at_end(&mut self, outcome: &CallOutcome) {
        self.accounts.remove(&outcome.id);
    }

    fn lost(&mut self, call: CallId) {
        self.accounts.remove(&call);
    }
}
