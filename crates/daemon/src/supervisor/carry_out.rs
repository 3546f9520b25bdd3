//! Carries out the orders of users.

use windfall_core::{FunctionId, Timestamp};

use super::Supervisor;
use super::versions::Named;
use crate::governance::Hold;
use crate::live::{TapeEntry, TapeKind};
use crate::orders::Command;

impl Supervisor {
    /// Carries out one order and records it, whatever comes of it.
    pub(super) fn carry_out(
        &mut self,
        now: Timestamp,
        command: &Command,
        by: &str,
    ) -> Result<String, String> {
        let (what, function) = self.describe(command);
        let done = self.act_on(now, command);
        let outcome = match &done {
            Ok(done) => done.clone(),
            Err(problem) => format!("refused: {problem}"),
        };
        match &done {
            Ok(_) => tracing::info!(by, order = what, outcome, "order carried out"),
            Err(_) => tracing::warn!(by, order = what, outcome, "order refused"),
        }
        self.records.audit(by, &what, &outcome);
        self.with_live(|live| {
            live.tape.push(TapeEntry {
                id: 0,
                at: now.as_secs_f64(),
                kind: TapeKind::Order,
                function: function.map(|id| id.0),
                call: None,
                seen: format!("order of {by}"),
                decided: what,
                amended: Vec::new(),
                done: outcome,
                outcome: String::new(),
                trip: false,
            });
        });
        done
    }

    fn act_on(&mut self, now: Timestamp, command: &Command) -> Result<String, String> {
        match command {
            Command::Mode(mode) => {
                self.governance.set_mode(*mode);
                self.records.setting("mode", &mode.to_string());
                self.next_tick = now;
                Ok(format!("the mode is {mode}"))
            }
            Command::Kill(is_killed) => {
                self.governance.set_killed(*is_killed);
                self.records.setting("killed", if *is_killed { "1" } else { "0" });
                self.next_tick = now;
                Ok(match is_killed {
                    true => "every function gets its own allocation".to_owned(),
                    false => format!("the mode {} is in force again", self.governance.mode()),
                })
            }
            Command::Hold { function, hold } => self.hold(now, *function, *hold),
            Command::Objective { function, target_ms } => self.set_objective(*function, *target_ms),
            Command::Policy { name, settings, force, origin } => {
                let next = Named { policy: name.clone(), settings: settings.clone() };
                self.change_policy(now, next, *force, origin)
            }
            Command::RollBack => self.return_to_version_before(now),
            Command::Shadow(shadow) => self.change_shadow(shadow.clone()),
            Command::Refusal(_) => Err("nothing was changed".to_owned()),
        }
    }

    fn hold(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        hold: Option<Hold>,
    ) -> Result<String, String> {
        let name = self.name_of(function)?;
        self.governance.set_hold(function, hold);
        self.records.hold(&name, hold);
        self.next_tick = now;
        Ok(match hold {
            Some(Hold::Paused) => format!("{name} has its own allocation"),
            Some(Hold::Pinned { size }) => format!("{name} has {size}"),
            None => format!("{name} is managed as the mode says"),
        })
    }

    fn set_objective(
        &mut self,
        function: FunctionId,
        target_ms: Option<f64>,
    ) -> Result<String, String> {
        let name = self.name_of(function)?;
        if let Some(target) = target_ms.filter(|target| !(0.1..=3.6e6).contains(target)) {
            return Err(format!("target_ms is {target}, allowed is 0.1 to 3600000"));
        }
        self.with_live(|live| {
            if let Some(function) = live.functions.get_mut(function.index()) {
                function.objective.target_ms = target_ms;
                function.objective.is_set = target_ms.is_some();
            }
        });
        self.governance.set_unmeasured(function, target_ms.is_none() && self.measures());
        self.records.objective(&name, target_ms);
        Ok(match target_ms {
            Some(target) => format!("99 % of calls of {name} within {target} ms"),
            None => format!("the objective of {name} is learned from its calls"),
        })
    }

    pub(super) fn name_of(&self, function: FunctionId) -> Result<String, String> {
        let profile = self.platform.functions().get(function.index());
        profile.map(|profile| profile.name.clone()).ok_or_else(|| "no such function".to_owned())
    }

    fn describe(&self, command: &Command) -> (String, Option<FunctionId>) {
        let name = |id: &FunctionId| self.name_of(*id).unwrap_or_default();
        match command {
            Command::Mode(mode) => (format!("mode {mode}"), None),
            Command::Kill(true) => ("kill switch on".to_owned(), None),
            Command::Kill(false) => ("kill switch off".to_owned(), None),
            Command::Hold { function, hold } => {
                let what = match hold {
                    Some(Hold::Paused) => format!("pause {}", name(function)),
                    Some(Hold::Pinned { size }) => format!("pin {} to {size}", name(function)),
                    None => format!("resume {}", name(function)),
                };
                (what, Some(*function))
            }
            Command::Objective { function, target_ms } => {
                let target =
                    target_ms.map_or_else(|| "learned".to_owned(), |ms| format!("{ms} ms"));
                (format!("objective of {}: {target}", name(function)), Some(*function))
            }
            Command::Policy { name, force, .. } => {
                (format!("policy {name}{}", if *force { ", forced" } else { "" }), None)
            }
            Command::RollBack => ("roll back the policy".to_owned(), None),
            Command::Shadow(shadow) => {
                (format!("shadow {}", shadow.as_deref().unwrap_or("none")), None)
            }
            Command::Refusal(what) => (what.clone(), None),
        }
    }
}
