//! The learner: tries other settings of the policy in charge on recent calls, and offers what the check accepts.
//!
//! ```text
//!   finished calls ─► propose ─► check against the version in charge ─► offer through the desk ─► trial
//!                        ▲                                                                          │
//!                        └────────── settings in charge, after a roll-back those before ◄───────────┘
//! ```

use std::sync::{Arc, PoisonError};

use windfall_core::{Duration, Seed, Timestamp};
use windfall_policy::WindfallSizingSettings;
use windfall_registry::{Assembled, PolicySettings, assemble};

use super::{Fate, LearningView, Tuner, check};
use crate::orders::{Command, Desk};
use crate::supervisor::SharedLive;
use crate::switched_calls::PolicySlot;

/// The policy whose settings it learns.
const LEARNS: &str = "windfall";
/// Who offers, in the words of versions.
const ORIGIN: &str = "learner";
/// Time between two rounds while nothing was rolled back.
const EVERY: Duration = Duration::from_secs(20);
/// The longest time between two rounds.
const LONGEST: Duration = Duration::from_secs(3600);
/// Candidates per round.
const CANDIDATES: usize = 4;

/// Offers better settings of the policy in charge. It has no clock and no thread; the service gives it both.
pub struct Learner {
    desk: Desk,
    live: SharedLive,
    slot: Arc<PolicySlot>,
    tuner: Tuner,
    seed: u64,
    next: Timestamp,
}

impl Learner {
    /// Learns from the calls in `slot` and offers through `desk`.
    pub fn new(desk: Desk, live: SharedLive, slot: Arc<PolicySlot>, seed: u64) -> Self {
        let tuner = Tuner::new(WindfallSizingSettings::default(), Seed::new(seed));
        Self { desk, live, slot, tuner, seed, next: Timestamp::ZERO + EVERY }
    }

    /// Runs a round if one is due.
    pub fn step(&mut self, now: Timestamp) {
        if now < self.next {
            return;
        }
        let rolled_back = self.round();
        self.next = now + pause_after(rolled_back);
    }

    /// One round; none while a version is on trial or another policy is in charge. How many of its offers were rolled
    /// back so far.
    fn round(&mut self) -> u32 {
        let (in_charge, rolled_back) = {
            let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
            let is_free = live.policy == LEARNS && live.learning.on_trial_until.is_none();
            let in_charge = is_free.then(|| settings_in_charge(&live.learning)).flatten();
            (in_charge, rolled_back(&live.learning))
        };
        let Some(in_charge) = in_charge else { return rolled_back };
        self.tuner.settle(in_charge);
        let calls = self.slot.finished();
        for _ in 0..CANDIDATES {
            let proposed = self.tuner.propose();
            let (Some((mut candidate, settings)), Some((mut present, _))) =
                (self.build(&proposed), self.build(self.tuner.best()))
            else {
                continue;
            };
            let verdict = check(present.call.as_mut(), candidate.call.as_mut(), &calls);
            self.live.write().unwrap_or_else(PoisonError::into_inner).learning.tried += 1;
            if verdict.is_accepted {
                let name = LEARNS.to_owned();
                let offer = Command::Policy { name, settings, force: false, origin: ORIGIN };
                // The loop checks it once more, against what is in charge then; a refusal is on the tape.
                let _ = self.desk.give(offer, ORIGIN);
                break;
            }
        }
        rolled_back
    }

    fn build(&self, settings: &WindfallSizingSettings) -> Option<(Assembled, PolicySettings)> {
        let table = toml::Table::try_from(settings).ok()?;
        let settings = PolicySettings::from([(LEARNS.to_owned(), table)]);
        let seed = Seed::new(self.seed).stream("policy");
        Some((assemble(LEARNS, &settings, seed).ok()?, settings))
    }
}

/// The settings of the version in charge; the defaults where a version names none.
fn settings_in_charge(learning: &LearningView) -> Option<WindfallSizingSettings> {
    toml::from_str(&learning.in_charge()?.settings).ok()
}

fn rolled_back(learning: &LearningView) -> u32 {
    let is_ours = |fate, origin| fate == Fate::RolledBack && origin == ORIGIN;
    learning.versions.iter().filter(|one| is_ours(one.fate, one.origin)).count() as u32
}

/// The pause doubles with every roll-back: 20 s, 40 s, .. an hour. A learner that keeps degrading service is soon silent.
fn pause_after(rolled_back: u32) -> Duration {
    let seconds = EVERY.as_secs_f64() * f64::from(2u32.saturating_pow(rolled_back.min(16)));
    Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::Version;

    fn version(settings: &str, fate: Fate) -> Version {
        Version {
            number: 0,
            at: 0.0,
            policy: LEARNS.to_owned(),
            settings: settings.to_owned(),
            origin: ORIGIN,
            fate,
            reason: String::new(),
            score: None,
        }
    }

    #[test]
    fn after_a_roll_back_it_starts_from_the_version_in_charge_and_waits_longer() {
        let mut learning = LearningView::default();
        learning.add(Timestamp::ZERO, version("cpu_quantile = 0.9", Fate::InCharge));
        assert_eq!((rolled_back(&learning), pause_after(0)), (0, EVERY));
        learning.add(Timestamp::ZERO, version("cpu_quantile = 0.6", Fate::InCharge));
        learning.versions.back_mut().unwrap().fate = Fate::RolledBack;
        learning.add(Timestamp::ZERO, version("cpu_quantile = 0.9", Fate::InCharge));
        assert_eq!(settings_in_charge(&learning).unwrap().cpu_quantile, 0.9);
        assert_eq!((rolled_back(&learning), pause_after(1)), (1, Duration::from_secs(40)));
        assert_eq!(pause_after(30), LONGEST);
    }
}
