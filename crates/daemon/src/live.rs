//! What is shown: the picture that the control thread keeps and every reader of the API shares.

mod function_live;
mod instance_history;
mod objective;
mod recent;
mod tape;

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use windfall_core::{CallEnd, CallRecord, FunctionId, FunctionProfile, Observation, Timestamp};
use windfall_telemetry::LogHistogram;

use crate::governance::ORDER_RULES;
use crate::health::Health;
use crate::learning::LearningView;
use crate::managed_platform::NodeBar;

pub use function_live::{Bucket, FunctionLive, Recommendation};
pub use instance_history::{InstanceHistory, InstanceStep};
pub use objective::{Objective, SloState};
pub use recent::RecentCall;
pub(crate) use recent::end_word;
pub use tape::{Tape, TapeAmendment, TapeEntry, TapeKind};

/// Points of the cluster's history that are kept: an hour of ticks of 2 s.
const HISTORY: usize = 1800;

/// Counted since the start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Calls that ended.
    pub calls: u64,
    /// Calls that ended without an answer.
    pub failed: u64,
    /// Calls of functions whose objective is known.
    pub judged: u64,
    /// Those of them that met it.
    pub met: u64,
    /// Calls that waited for a new instance.
    pub cold_starts: u64,
    /// Attempts killed at their memory limit.
    pub oom_kills: u64,
    /// Core-seconds that users reserved for these calls.
    pub core_seconds_reserved: f64,
    /// Core-seconds that these calls held, with what was held back for them.
    pub core_seconds_held: f64,
    /// Core-seconds that they used.
    pub core_seconds_used: f64,
    /// MiB-seconds that users reserved for these calls.
    pub mib_seconds_reserved: f64,
    /// MiB-seconds that these calls held.
    pub mib_seconds_held: f64,
    /// Times a safeguard changed what a policy decided.
    pub safeguard_trips: u64,
    /// The same by rule.
    pub trips_by_rule: BTreeMap<String, u64>,
    /// Decisions of the policy that the fallback replaced.
    pub fallbacks: u64,
    /// Changes of running calls' grants.
    pub grant_changes: u64,
    /// Targets that the platform refused.
    pub refused: u64,
    /// Ticks carried out.
    pub ticks: u64,
    /// Ticks without an observation.
    pub blind_ticks: u64,
}

impl Totals {
    /// Core-seconds that were reserved and not held.
    pub fn core_seconds_saved(&self) -> f64 {
        self.core_seconds_reserved - self.core_seconds_held
    }

    /// Share of judged calls that met their objective; 1 if none was judged.
    pub fn met_share(&self) -> f64 {
        if self.judged == 0 { 1.0 } else { self.met as f64 / self.judged as f64 }
    }
}

/// The cluster at one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClusterPoint {
    /// Seconds since the start.
    pub at: f64,
    /// Cores that users reserve for running calls.
    pub reserved: f64,
    /// Cores granted.
    pub granted: f64,
    /// Cores in use.
    pub used: f64,
    /// Cores taken from calls below their reservation.
    pub harvested: f64,
    /// Cores given to calls above their reservation.
    pub lent: f64,
    /// Cores held back.
    pub held_back: f64,
    /// Calls per second that ended since the last point.
    pub calls_per_second: f64,
    /// Calls waiting.
    pub queued: f64,
    /// Safeguard trips since the last point.
    pub trips: u64,
    /// Cores that the shadow policy would grant: what is granted now, times what it would have held of calls that ended
    /// over what those held.
    pub ghost: Option<f64>,
}

/// Everything that is shown.
#[derive(Default)]
pub struct Live {
    /// The time of the last step, since the start.
    pub now: Timestamp,
    /// Functions, in the order of their ids.
    pub functions: Vec<FunctionLive>,
    /// Nodes as of the last tick.
    pub nodes: Vec<NodeBar>,
    /// The cluster over the last hour.
    pub history: VecDeque<ClusterPoint>,
    /// Decisions, newest last.
    pub tape: Tape,
    /// Counted since the start.
    pub totals: Totals,
    /// Latency of all calls, seconds.
    pub latency: LogHistogram,
    /// How well the loop does.
    pub health: Health,
    /// What was learned, offered, accepted and rolled back.
    pub learning: LearningView,
    /// The policy in charge.
    pub policy: String,
    /// The policy that is asked beside it.
    pub shadow: Option<String>,
    /// What was counted at the last history point.
    counted: Totals,
    ghost: Ghost,
}

/// What the shadow policy would have held for the calls that have ended, beside what they held.
///
/// Both are core-seconds whose weight halves every minute or so. Calls that held 30 where the shadow would have held 60
/// make a ratio of 2, so while 5 cores are granted the ghost line is at 10.
#[derive(Clone, Copy, Debug, Default)]
struct Ghost {
    held: f64,
    would_hold: f64,
}

impl Ghost {
    /// Weight of the earlier calls at each tick of 2 s; 0.977 to the power of 30 is one half.
    const KEPT: f64 = 0.977;

    fn call(&mut self, held: f64, would_hold: f64) {
        self.held += held;
        self.would_hold += would_hold;
    }

    /// The ghost of `granted`; nothing before any call with a shadow has ended.
    fn of(&mut self, granted: f64) -> Option<f64> {
        let ratio = (self.held > 0.0).then(|| self.would_hold / self.held);
        self.held *= Self::KEPT;
        self.would_hold *= Self::KEPT;
        Some(granted * ratio?)
    }
}

impl Live {
    /// Another shadow is asked: what the one before would have done says nothing about it.
    pub fn set_shadow(&mut self, shadow: Option<String>) {
        self.shadow = shadow;
        self.ghost = Ghost::default();
    }

    /// Takes in functions that are new on the platform.
    pub fn introduce(&mut self, profiles: &[FunctionProfile]) {
        let known = self.functions.len();
        for profile in profiles.iter().skip(known) {
            self.functions.push(FunctionLive::new(profile.clone()));
        }
    }

    /// Whether the latency objective of `function` is known.
    pub fn has_objective(&self, function: FunctionId) -> bool {
        self.functions.get(function.index()).is_some_and(|it| it.objective.target_ms.is_some())
    }

    /// The place of the function called `name`.
    pub fn id_of(&self, name: &str) -> Option<FunctionId> {
        let place = self.functions.iter().position(|function| function.profile.name == name)?;
        Some(FunctionId(place as u32))
    }

    /// Takes in a call that has ended.
    pub fn call(&mut self, call: &CallRecord) {
        let Some(function) = self.functions.get_mut(call.function.index()) else { return };
        let trips = trips(call);
        let verdict = function.call(self.now, call, trips);
        let totals = &mut self.totals;
        totals.calls += 1;
        totals.failed += u64::from(call.end != CallEnd::Completed);
        totals.judged += u64::from(verdict.is_some());
        totals.met += u64::from(verdict == Some(true));
        totals.cold_starts += u64::from(!call.cold_start.is_zero());
        totals.oom_kills += u64::from(call.oom_kills);
        let held = function_live::Held::of(call);
        totals.core_seconds_reserved += held.reserved;
        totals.core_seconds_held += held.held;
        totals.core_seconds_used += held.used;
        totals.mib_seconds_reserved += held.mib_reserved;
        totals.mib_seconds_held += held.mib_held;
        totals.grant_changes += u64::from(call.changes);
        totals.fallbacks +=
            u64::from(matches!(call.decided_by, windfall_core::DecidedBy::Fallback(_)));
        self.count_trips(call.amendments.iter().map(|amendment| amendment.rule.as_ref()));
        if let Some(would_hold) = held.ghost {
            self.ghost.call(held.held, would_hold);
        }
        self.latency.record(call.ended_at.since(call.arrived_at).as_secs_f64());
        self.tape.call(self.now, call, trips > 0);
    }

    /// Counts the trips among `rules`.
    pub fn count_trips<'a>(&mut self, rules: impl Iterator<Item = &'a str>) {
        for rule in rules.filter(|rule| !ORDER_RULES.contains(rule)) {
            self.totals.safeguard_trips += 1;
            match self.totals.trips_by_rule.get_mut(rule) {
                Some(count) => *count += 1,
                None => {
                    self.totals.trips_by_rule.insert(rule.to_owned(), 1);
                }
            }
        }
    }

    /// Takes in what a tick saw.
    pub fn observe(&mut self, seen: &Observation, nodes: Vec<NodeBar>) {
        let at = seen.now.as_secs_f64();
        for view in &seen.functions {
            if let Some(function) = self.functions.get_mut(view.function.index()) {
                function.observe(at, view);
            }
        }
        let sum = |of: fn(&NodeBar) -> f64| nodes.iter().map(of).sum::<f64>();
        let seconds = (at - self.history.back().map_or(0.0, |point| point.at)).max(1e-3);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let granted = sum(|node| node.granted_cores);
        let point = ClusterPoint {
            at,
            reserved: sum(|node| node.reserved_cores),
            granted,
            used: sum(|node| node.used_cores),
            harvested: sum(|node| node.harvested_cores),
            lent: sum(|node| node.lent_cores),
            held_back: sum(|node| node.held_back_cores),
            calls_per_second: since(self.totals.calls, self.counted.calls) as f64 / seconds,
            queued: seen.cluster.queued as f64,
            trips: since(self.totals.safeguard_trips, self.counted.safeguard_trips),
            ghost: self.shadow.is_some().then(|| self.ghost.of(granted)).flatten(),
        };
        self.counted = self.totals.clone();
        push_bounded(&mut self.history, point, HISTORY);
        self.nodes = nodes;
    }

    /// Closes the time buckets of functions that nothing happens to.
    pub fn pass_time(&mut self, now: Timestamp) {
        self.now = now;
    }
}

/// Trips of safeguards in a call; orders of users are none.
fn trips(call: &CallRecord) -> u32 {
    let is_trip = |rule: &str| !ORDER_RULES.contains(&rule);
    call.amendments.iter().filter(|amendment| is_trip(amendment.rule.as_ref())).count() as u32
}

/// Adds `value`, and takes the oldest out if there are `most` already.
fn push_bounded<T>(queue: &mut VecDeque<T>, value: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ghost_is_what_is_granted_times_what_the_shadow_would_hold_of_it() {
        let mut ghost = Ghost::default();
        assert_eq!(ghost.of(5.0), None, "no call has ended");
        ghost.call(30.0, 60.0);
        assert_eq!(ghost.of(5.0), Some(10.0));
        ghost.call(1000.0, 500.0);
        assert!(ghost.of(10.0).is_some_and(|cores| (5.0..6.0).contains(&cores)));
    }
}
