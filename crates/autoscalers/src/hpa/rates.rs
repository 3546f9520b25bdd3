//! Limits on how fast the count may change.
//!
//! ```text
//!  at the start of the period: start = current - added + removed within it
//!  up:   Pods start + v        Percent ceil(start · (1 + v/100))
//!  down: Pods start - v        Percent start · (1 - v/100), truncated
//!  Max takes the largest change, Min the smallest, Disabled none; without behavior: max(2 · current, 4)
//! ```
//!
//! Ten pods of which four were added 10 s ago, policy Percent 50 in 15 s: start is 6, the limit
//! ceil(6 · 1.5) = 9, and as 9 < 10 nothing may be added now.

use super::spec::{Behavior, Change, Rules, SelectPolicy};
use crate::go_numbers::int32;

/// A past change.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ms: i64,
    change: i32,
    is_outdated: bool,
}

/// Past changes in both directions. The way in which upstream discards them affects decisions: an entry is marked
/// when it is older than the longest period of *its* direction, and the last marked one is overwritten by the next
/// change, even if the policies of the other direction have longer periods.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    up: Vec<Event>,
    down: Vec<Event>,
}

impl Events {
    /// Records a change from `before` to `after`.
    pub(super) fn store(&mut self, now_ms: i64, before: i32, after: i32, behavior: &Behavior) {
        let (events, rules) = match after > before {
            true => (&mut self.up, &behavior.scale_up),
            false => (&mut self.down, &behavior.scale_down),
        };
        let longest = rules.policies.iter().map(|policy| policy.period_seconds).max().unwrap_or(0);
        let cutoff = now_ms.saturating_sub(i64::from(longest) * 1000);
        for event in events.iter_mut() {
            event.is_outdated |= event.at_ms < cutoff;
        }
        let change = after.wrapping_sub(before).wrapping_abs();
        let event = Event { at_ms: now_ms, change, is_outdated: false };
        match events.iter_mut().rev().find(|event| event.is_outdated) {
            Some(outdated) => *outdated = event,
            None => events.push(event),
        }
    }

    /// Number of pods at the start of a period that ends now.
    fn start(&self, now_ms: i64, current: i32, period_seconds: u32) -> i32 {
        let cutoff = now_ms.saturating_sub(i64::from(period_seconds) * 1000);
        let within = |events: &[Event]| {
            let recent = events.iter().filter(|event| event.at_ms > cutoff);
            recent.fold(0_i32, |sum, event| sum.wrapping_add(event.change))
        };
        current.wrapping_sub(within(&self.up)).wrapping_add(within(&self.down))
    }

    /// Maximum number of pods that the policies allow, before it is compared with the current count.
    pub(super) fn up_limit(&self, now_ms: i64, current: i32, rules: &Rules) -> i32 {
        let proposals = rules.policies.iter().map(|policy| {
            let start = self.start(now_ms, current, policy.period_seconds);
            match policy.change {
                Change::Pods(pods) => start.wrapping_add(pods),
                Change::Percent(percent) => {
                    int32((f64::from(start) * (1.0 + f64::from(percent) / 100.0)).ceil())
                }
            }
        });
        match rules.select_policy {
            SelectPolicy::Disabled => current,
            SelectPolicy::Min => proposals.fold(i32::MAX, i32::min),
            SelectPolicy::Max => proposals.fold(i32::MIN, i32::max),
        }
    }

    /// Minimum number of pods that the policies allow, before it is compared with the current count.
    pub(super) fn down_limit(&self, now_ms: i64, current: i32, rules: &Rules) -> i32 {
        let proposals = rules.policies.iter().map(|policy| {
            let start = self.start(now_ms, current, policy.period_seconds);
            match policy.change {
                Change::Pods(pods) => start.wrapping_sub(pods),
                Change::Percent(percent) => {
                    int32(f64::from(start) * (1.0 - f64::from(percent) / 100.0))
                }
            }
        });
        match rules.select_policy {
            SelectPolicy::Disabled => current,
            SelectPolicy::Min => proposals.fold(i32::MIN, i32::max),
            SelectPolicy::Max => proposals.fold(i32::MAX, i32::min),
        }
    }
}

/// Maximum number of pods without behavior.
pub(super) fn plain_up_limit(current: i32) -> i32 {
    int32((2.0 * f64::from(current)).max(4.0))
}
