//! Whether a change has done harm, and how long to leave a workload alone after it.
//!
//! | Sign, since the last change | Limit |
//! |---|---|
//! | a container was killed for its memory, where less was left | once |
//! | a container was restarted | twice |
//! | CPU periods that ran out of quota, where less was left | more than half |
//! | a pod that was ready is not | longer than 30 s |
//! | latency above its goal, where it was below before | four passes in a row |
//!
//! After the first return nothing is changed for ten minutes, and each further one doubles that, up to 16 times as long.
//! A whole cooldown without harm after the next change forgets the earlier ones.

use std::collections::BTreeMap;

use windfall_core::{Duration, Timestamp};

use crate::cluster::{Key, TargetFacts};
use crate::metrics::Signals;
use crate::resource_policy::{Goals, Reverted};
use crate::world::{from_rfc3339, rfc3339};

const RESTARTS: u32 = 2;
const THROTTLED_SHARE: f64 = 0.5;
const UNREADY_SECONDS: i64 = 30;
const MISSED_PASSES: u32 = 4;
/// The most times that a cooldown is doubled: 2^4 = 16.
const DOUBLINGS: u32 = 4;

/// What is in force beyond what the user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// Something that leaves a request as much CPU and memory as its user gave it: kills and throttling are no fault of it,
    /// and to give back what had them before would be no help.
    NoLess,
    /// Smaller pods, fewer, or more requests in each.
    Less,
}

/// What is watched of one workload while something is changed.
#[derive(Clone, Debug, Default)]
pub struct Watchman {
    /// When the settings in force were first set.
    changed_at: Option<i64>,
    /// Restarts of each pod's container when it was first seen.
    restarts: BTreeMap<Key, u32>,
    /// Since when a pod that was ready is not.
    unready: BTreeMap<Key, i64>,
    was_ready: std::collections::BTreeSet<Key>,
    /// Passes in a row above the latency goal.
    missed: u32,
    /// Whether the goal was met before the change.
    was_met: bool,
}

impl Watchman {
    /// Looks at a workload once per pass. Returns why it must be given back.
    pub fn look(
        &mut self,
        target: &TargetFacts<'_>,
        signals: Option<&Signals>,
        goals: &Goals,
        change: Change,
        now: Timestamp,
    ) -> Option<String> {
        let second = (now.as_nanos() / 1_000_000_000) as i64;
        let is_missed = misses(signals, goals);
        if change == Change::Nothing {
            *self = Self { was_met: is_missed == Some(false), ..Self::default() };
            return None;
        }
        let changed_at = *self.changed_at.get_or_insert(second);
        self.missed = if is_missed == Some(true) { self.missed + 1 } else { 0 };
        let is_less = change == Change::Less;
        let killed = is_less.then(|| self.killed(target, changed_at)).flatten();
        killed
            .or_else(|| self.restarted(target))
            .or_else(|| throttled(signals).filter(|_| is_less))
            .or_else(|| self.lost_readiness(target, second))
            .or_else(|| self.missed_goal(signals, goals))
    }

    fn killed(&self, target: &TargetFacts<'_>, changed_at: i64) -> Option<String> {
        let name = &target.container.name;
        let killed = target.pods.iter().find(|(_, pod)| {
            let ended = pod.container(name).and_then(|one| one.terminated.as_ref());
            ended.is_some_and(|ended| ended.reason == "OOMKilled" && ended.at >= changed_at)
        });
        killed.map(|(key, _)| {
            format!("container {name} of pod {} was killed for its memory", key.name)
        })
    }

    fn restarted(&mut self, target: &TargetFacts<'_>) -> Option<String> {
        let name = &target.container.name;
        let mut found = None;
        for (key, pod) in &target.pods {
            let Some(container) = pod.container(name) else { continue };
            let first = *self.restarts.entry((*key).clone()).or_insert(container.restarts);
            let since = container.restarts.saturating_sub(first);
            if since >= RESTARTS {
                found = Some(format!(
                    "container {name} of pod {} was restarted {since} times",
                    key.name
                ));
            }
        }
        let living: std::collections::BTreeSet<&Key> =
            target.pods.iter().map(|(key, _)| *key).collect();
        self.restarts.retain(|key, _| living.contains(key));
        found
    }

    fn lost_readiness(&mut self, target: &TargetFacts<'_>, second: i64) -> Option<String> {
        let mut unready = BTreeMap::new();
        let mut ready = std::collections::BTreeSet::new();
        for (key, pod) in &target.pods {
            if pod.is_ready {
                ready.insert((*key).clone());
            } else if self.was_ready.contains(*key) {
                let since = self.unready.get(*key).copied().unwrap_or(second);
                unready.insert((*key).clone(), since);
                ready.insert((*key).clone());
            }
        }
        self.was_ready = ready;
        self.unready = unready;
        let lost = self.unready.iter().find(|(_, since)| second - **since > UNREADY_SECONDS);
        lost.map(|(key, since)| {
            format!("pod {} has not been ready for {} s", key.name, second - since)
        })
    }

    fn missed_goal(&self, signals: Option<&Signals>, goals: &Goals) -> Option<String> {
        if self.missed < MISSED_PASSES || !self.was_met {
            return None;
        }
        let (latency, goal) = (signals?.latency?, goals.latency.as_ref()?);
        Some(format!(
            "p{} is {:.0} ms, above its goal of {} ms, {} passes in a row",
            goal.percentile,
            latency.as_millis_f64(),
            goal.milliseconds,
            self.missed
        ))
    }
}

fn misses(signals: Option<&Signals>, goals: &Goals) -> Option<bool> {
    let (latency, goal) = (signals?.latency?, goals.latency.as_ref()?);
    Some(latency.as_millis_f64() > f64::from(goal.milliseconds))
}

fn throttled(signals: Option<&Signals>) -> Option<String> {
    let share = signals?.throttled_share.filter(|share| *share > THROTTLED_SHARE)?;
    Some(format!("{:.0} % of the CPU periods of a pod were throttled", share * 100.0))
}

/// The entry for a return at `now` after the earlier ones.
pub fn reverted(
    earlier: Option<&Reverted>,
    reason: String,
    cooldown: Duration,
    now: Timestamp,
) -> Reverted {
    let forgets = |last: &Reverted| {
        let until = from_rfc3339(&last.until).unwrap_or(now);
        now.since(until) > cooldown_after(last.times, cooldown)
    };
    let earlier = earlier.filter(|last| !forgets(last)).map_or(0, |last| last.times);
    let times = earlier.saturating_add(1);
    let until = Timestamp::from_nanos(
        now.as_nanos().saturating_add(cooldown_after(times, cooldown).as_nanos()),
    );
    Reverted { time: rfc3339(now), reason, times, until: rfc3339(until) }
}

/// Ten minutes after the first return, twenty after the second, 160 from the fifth on.
fn cooldown_after(times: u32, cooldown: Duration) -> Duration {
    let doublings = times.saturating_sub(1).min(DOUBLINGS);
    Duration::from_nanos(cooldown.as_nanos().saturating_mul(1 << doublings))
}

/// Whether a workload is still left alone.
pub fn cools_down(reverted: Option<&Reverted>, now: Timestamp) -> Option<&Reverted> {
    reverted.filter(|last| from_rfc3339(&last.until).is_some_and(|until| now < until))
}

#[cfg(test)]
mod tests;
