//! Versions of the policy: how a new one is checked, takes over, is watched, and rolled back.
//!
//! ```text
//!   candidate ─► check on recent calls ─► refused(why)
//!                        │
//!                        └─► accepted ─► in charge ─► watched for 60 s ─► kept
//!                                                          └─► service degraded ─► the version before is back
//! ```

mod acceptance;
mod learner;
mod trial;
mod tuning;

use std::collections::VecDeque;

use serde::Serialize;
use windfall_core::Timestamp;

pub use acceptance::{Acceptance, Score, check};
pub use learner::Learner;
pub use trial::{Service, Trial, TrialEnd};
pub use tuning::Tuner;

/// Versions that are shown.
const KEPT: usize = 50;

/// What became of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It decides.
    InCharge,
    /// It decided and was replaced by a later one.
    Replaced,
    /// The check refused it; it never decided.
    Refused,
    /// Service degraded under it.
    RolledBack,
}

/// One version of the policy.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    /// Its number.
    pub number: u32,
    /// When it was offered, seconds since the start.
    pub at: f64,
    /// The policy's name or checkpoint.
    pub policy: String,
    /// Settings that differ from the defaults, as TOML.
    pub settings: String,
    /// Who offered it: `start`, `user`, `learner`.
    pub origin: &'static str,
    /// What became of it.
    pub fate: Fate,
    /// Why, with the numbers.
    pub reason: String,
    /// How it did on recent calls.
    pub score: Option<Score>,
}

/// What the learning page shows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LearningView {
    /// Versions, newest last.
    pub versions: VecDeque<Version>,
    /// Whether a learner offers new versions.
    pub is_learning: bool,
    /// Candidates that the learner has tried.
    pub tried: u64,
    /// Reward over time: what was saved less what was late, one point per minute.
    pub rewards: VecDeque<RewardPoint>,
    /// Until when the version in charge is on trial, seconds since the start.
    pub on_trial_until: Option<f64>,
    #[serde(skip)]
    numbered: u32,
}

/// Reward of one minute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RewardPoint {
    /// When, seconds since the start.
    pub at: f64,
    /// Share of the reserved core-seconds that was saved, less ten times the share of late calls.
    pub reward: f64,
    /// Share of late calls.
    pub late_share: f64,
    /// Share of reserved core-seconds that was not held.
    pub saved_share: f64,
}

impl LearningView {
    /// Adds a version and numbers it.
    pub fn add(&mut self, now: Timestamp, mut version: Version) -> u32 {
        self.numbered += 1;
        version.number = self.numbered;
        version.at = now.as_secs_f64();
        if version.fate == Fate::InCharge {
            let replaced = |earlier: &&mut Version| earlier.fate == Fate::InCharge;
            self.versions.iter_mut().filter(replaced).for_each(|old| old.fate = Fate::Replaced);
        }
        if self.versions.len() == KEPT {
            self.versions.pop_front();
        }
        self.versions.push_back(version);
        self.numbered
    }

    /// The version in charge.
    pub fn in_charge(&self) -> Option<&Version> {
        self.versions.iter().rev().find(|version| version.fate == Fate::InCharge)
    }

    /// Adds a minute's reward.
    pub fn reward(&mut self, point: RewardPoint) {
        if self.rewards.len() == 240 {
            self.rewards.pop_front();
        }
        self.rewards.push_back(point);
    }
}
