//! Takes up what an earlier run has left: orders of users, objectives, and sizes that may be too small.

use windfall_core::{Allocation, FunctionId, Timestamp};

use super::Supervisor;
use crate::governance::Mode;
use crate::live::TapeKind;

impl Supervisor {
    /// Writes down functions that are new on the platform.
    pub(super) fn remember_functions(&mut self) {
        let known = self.records.functions_known();
        let functions = self.platform.functions();
        if functions.len() > known {
            self.records.functions(known, &functions[known..]);
        }
    }

    /// Reads back orders and grants of an earlier run.
    ///
    /// *Worked.* An earlier run had set `resize-image`, which reserves 1000m, to 400m, and was killed. Whether the
    /// platform still has 400m is unknown until it is observed, so the function gets 1000m with the first plan and is
    /// managed again as soon as an observation shows 1000m.
    pub(super) fn take_up_earlier_run(&mut self) {
        let Some(earlier) = self.records.earlier_run() else { return };
        if let Some(mode) = earlier.mode.as_deref().and_then(|mode| mode.parse::<Mode>().ok()) {
            self.governance.set_mode(mode);
        }
        self.governance.set_killed(earlier.is_killed);
        let id_of = |name: &str| {
            let place = self.platform.functions().iter().position(|known| known.name == name)?;
            Some(FunctionId(place as u32))
        };
        for (name, hold) in &earlier.holds {
            if let Some(id) = id_of(name) {
                self.governance.set_hold(id, Some(*hold));
            }
        }
        let mut restored = 0;
        for grant in &earlier.grants {
            if let Some(id) = id_of(&grant.function) {
                self.governance.restore(id);
                restored += 1;
            }
        }
        let objectives: Vec<(FunctionId, f64)> = (earlier.objectives.iter())
            .filter_map(|(name, ms)| Some((id_of(name)?, *ms)))
            .collect();
        objectives.iter().for_each(|(id, _)| self.governance.set_unmeasured(*id, false));
        let how = if earlier.was_closed { "was stopped" } else { "ended without a stop" };
        let done =
            format!("{restored} functions get their own allocation back before anything else");
        tracing::info!(restored, was_stopped = earlier.was_closed, "took up an earlier run");
        self.with_live(|live| {
            for (id, target) in objectives {
                if let Some(function) = live.functions.get_mut(id.index()) {
                    function.objective.target_ms = Some(target);
                    function.objective.is_set = true;
                }
            }
            let decided = format!("an earlier run {how}");
            live.tape.note(Timestamp::ZERO, TapeKind::Supervisor, decided, done);
        });
    }

    /// What the platform says that `function` holds; for tests and for readers that do not trust the ledger.
    pub fn holds_now(&self, function: FunctionId) -> Option<Allocation> {
        self.with_live(|live| live.functions.get(function.index()).map(|known| known.allocation))
    }
}
