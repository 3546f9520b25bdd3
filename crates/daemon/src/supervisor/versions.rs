//! Which policy is in charge, how another one takes over, and when the one before returns.

use std::sync::PoisonError;

use windfall_core::{AdmitBy, Seed, Timestamp};
use windfall_registry::{AssembleError, Assembled, PolicySettings, assemble};

use super::build::{loops, named};
use super::{Supervisor, service_of};
use crate::learning::{Acceptance, Fate, Trial, TrialEnd, Version, check};
use crate::live::TapeKind;

/// A policy by its name and settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    /// A name, a pair `CALLS+TICKS`, or the path of a checkpoint.
    pub policy: String,
    /// Settings by policy name.
    pub settings: PolicySettings,
}

impl Named {
    pub(super) fn assemble(&self, seed: u64) -> Result<Assembled, AssembleError> {
        assemble(&self.policy, &self.settings, Seed::new(seed).stream("policy"))
    }

    pub(super) fn version(&self, origin: &'static str, reason: &str) -> Version {
        let own = self.settings.get(&self.policy);
        Version {
            number: 0,
            at: 0.0,
            policy: self.policy.clone(),
            settings: own.map(ToString::to_string).unwrap_or_default(),
            origin,
            fate: Fate::InCharge,
            reason: reason.to_owned(),
            score: None,
        }
    }
}

/// A platform asks once who decides whether a node can take a call, and its book is made for that.
fn admits_alike(present: &Assembled, candidate: &Assembled) -> Result<(), String> {
    if present.admit_by() == candidate.admit_by() {
        return Ok(());
    }
    let by = |policy: &Assembled| match policy.admit_by() {
        AdmitBy::Grants => "by what is granted",
        AdmitBy::Control => "by expected use",
        AdmitBy::FuturePeak => "by what calls will use",
    };
    Err(format!(
        "it fills nodes {}, the policy in charge {}, which cannot change while calls run: restart with --policy",
        by(candidate),
        by(present)
    ))
}

impl Supervisor {
    /// Lets `next` take over if the check on recent calls accepts it, or in any case if `force` says so.
    pub(super) fn change_policy(
        &mut self,
        now: Timestamp,
        next: Named,
        force: bool,
        origin: &'static str,
    ) -> Result<String, String> {
        let refuse = |error: AssembleError| error.to_string();
        let mut candidate = next.assemble(self.settings.seed).map_err(refuse)?;
        let mut present = self.in_charge.assemble(self.settings.seed).map_err(refuse)?;
        admits_alike(&present, &candidate)?;
        let finished = self.slot.finished();
        let verdict = check(present.call.as_mut(), candidate.call.as_mut(), &finished);
        if !verdict.is_accepted && !force {
            self.note_refusal(now, &next, &verdict, origin);
            return Err(format!("the check refused it: {}", verdict.reason));
        }
        let before = std::mem::replace(&mut self.in_charge, next.clone());
        self.install(&next).map_err(refuse)?;
        let reason = match verdict.is_accepted {
            true => verdict.reason.clone(),
            false => format!("forced although the check refused it: {}", verdict.reason),
        };
        self.begin_trial(now, before);
        let version = Version { score: Some(verdict.candidate), ..next.version(origin, &reason) };
        self.add_version(now, version);
        Ok(format!("{} is in charge: {reason}", next.policy))
    }

    /// Puts `policy` in charge of new calls and of the ticks.
    fn install(&mut self, policy: &Named) -> Result<(), AssembleError> {
        let assembled = policy.assemble(self.settings.seed)?;
        let shadow = self.settings.shadow.as_deref();
        let shadow = shadow.map(|name| named(name, &self.settings)).transpose()?;
        let parts = loops(assembled, shadow, &self.governance, &self.slot.finished());
        self.control.hand_over(parts.tick, parts.chain);
        self.slot.offer(parts.calls);
        self.with_live(|live| live.policy.clone_from(&policy.policy));
        Ok(())
    }

    /// Another shadow beside the policy in charge.
    pub(super) fn change_shadow(&mut self, shadow: Option<String>) -> Result<String, String> {
        if let Some(name) = &shadow {
            named(name, &self.settings).map_err(|error| error.to_string())?;
        }
        self.settings.shadow.clone_from(&shadow);
        let in_charge = self.in_charge.clone();
        self.install(&in_charge).map_err(|error| error.to_string())?;
        let outcome = match &shadow {
            Some(name) => format!("{name} is asked beside the policy in charge"),
            None => "no shadow is asked".to_owned(),
        };
        self.with_live(|live| live.set_shadow(shadow));
        Ok(outcome)
    }

    fn begin_trial(&mut self, now: Timestamp, before: Named) {
        let totals = self.with_live(|live| live.totals.clone());
        let counted = service_of(&totals);
        let (_, minute) = &self.minute;
        let earlier = counted.since(service_of(minute));
        // A minute that has just begun says little; then everything since the start does.
        let earlier = if earlier.judged < 40 { counted } else { earlier };
        let trial = Trial::begin(now, counted, earlier);
        self.with_live(|live| live.learning.on_trial_until = Some(trial.until().as_secs_f64()));
        self.trial = Some(trial);
        self.version_before = Some(before);
    }

    /// Ends the trial of a new version when there is a verdict.
    pub(super) fn watch_trial(&mut self, now: Timestamp) {
        let Some(trial) = &self.trial else { return };
        let counted = {
            let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
            service_of(&live.totals)
        };
        let Some(end) = trial.judge(now, counted) else { return };
        self.end_trial();
        match (end, self.version_before.take()) {
            (TrialEnd::RolledBack(reason), Some(before)) => self.roll_back(now, &before, &reason),
            (TrialEnd::RolledBack(reason) | TrialEnd::Kept(reason), before) => {
                self.version_before = before;
                self.records.checkpoint(&self.in_charge);
                tracing::info!(policy = self.in_charge.policy, reason, "version kept");
                self.with_live(|live| {
                    let decided = "the trial of the new version is over".to_owned();
                    live.tape.note(now, TapeKind::Policy, decided, format!("kept: {reason}"));
                });
            }
        }
    }

    fn end_trial(&mut self) {
        self.trial = None;
        self.with_live(|live| live.learning.on_trial_until = None);
    }

    /// A user wants the version before back, on trial or not.
    pub(super) fn return_to_version_before(&mut self, now: Timestamp) -> Result<String, String> {
        let none = || "there is no version before the one in charge".to_owned();
        let before = self.version_before.take().ok_or_else(none)?;
        self.end_trial();
        self.roll_back(now, &before, "ordered by a user");
        self.records.checkpoint(&self.in_charge);
        Ok(format!("{} is in charge again", self.in_charge.policy))
    }

    fn roll_back(&mut self, now: Timestamp, before: &Named, reason: &str) {
        self.with_live(|live| {
            let in_charge = |version: &&mut Version| version.fate == Fate::InCharge;
            if let Some(version) = live.learning.versions.iter_mut().rev().find(in_charge) {
                version.fate = Fate::RolledBack;
                reason.clone_into(&mut version.reason);
            }
        });
        if let Err(error) = self.install(before) {
            // It was in charge a minute ago; if it cannot be built again, nothing is safer than the users' own sizes.
            self.governance.set_killed(true);
            let done = format!("the version before cannot be built ({error}): kill switch on");
            self.with_live(|live| {
                live.tape.note(now, TapeKind::Policy, reason.to_owned(), done);
            });
            return;
        }
        self.in_charge = before.clone();
        tracing::warn!(policy = before.policy, reason, "rolled back");
        let back = format!("rolled back: {reason}");
        self.add_version(now, before.version("roll-back", &back));
    }

    fn note_refusal(
        &mut self,
        now: Timestamp,
        next: &Named,
        verdict: &Acceptance,
        origin: &'static str,
    ) {
        let version = Version {
            fate: Fate::Refused,
            score: Some(verdict.candidate),
            ..next.version(origin, &verdict.reason)
        };
        self.add_version(now, version);
    }

    fn add_version(&mut self, now: Timestamp, version: Version) {
        let decided = format!("{} by {}", version.policy, version.origin);
        let done = match version.fate {
            Fate::Refused => format!("refused: {}", version.reason),
            Fate::InCharge | Fate::Replaced | Fate::RolledBack => version.reason.clone(),
        };
        tracing::info!(policy = version.policy, by = version.origin, outcome = done, "version");
        let version = self.with_live(|live| {
            live.tape.note(now, TapeKind::Policy, decided, done);
            live.learning.add(now, version);
            live.learning.versions.back().cloned()
        });
        if let Some(version) = version {
            self.records.version(&version);
        }
    }
}
