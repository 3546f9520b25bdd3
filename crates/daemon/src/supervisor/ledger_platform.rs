//! Writes down what is about to be granted before the platform is asked for it, so that a manager that is killed finds it.

use std::sync::Arc;

use windfall_core::{
    Answer, Capabilities, FunctionProfile, Observation, Plan, PlannedTarget, Platform,
    PlatformError, Receipt, Refusal, Timestamp,
};

use crate::database::{Grant, Records};
use crate::governance::Governance;
use crate::managed_platform::ManagedPlatform;

/// The platform behind its ledger of grants. A change of size that cannot be written down is refused as a whole: what is
/// not remembered could not be given back after a crash. Restoring needs no ledger and is never refused.
pub(super) struct LedgerPlatform<'a> {
    pub(super) platform: &'a mut dyn ManagedPlatform,
    pub(super) records: &'a mut Records,
    pub(super) governance: &'a Arc<Governance>,
}

impl LedgerPlatform<'_> {
    /// What `target` takes away or adds, if it changes a size to anything but the user's own.
    fn grant(&self, target: &PlannedTarget) -> Option<Grant> {
        let profile = self.platform.functions().get(target.function.index())?;
        let own = profile.reservation;
        let cpu = target.cpu.value().unwrap_or(own.cpu);
        let memory = target.memory.value().unwrap_or(own.memory);
        let is_own = cpu == own.cpu && memory == own.memory;
        (target.is_resize() && !is_own).then(|| Grant {
            function: profile.name.clone(),
            cpu: cpu.get(),
            memory: memory.get(),
        })
    }
}

impl Platform for LedgerPlatform<'_> {
    fn functions(&self) -> &[FunctionProfile] {
        self.platform.functions()
    }

    fn capabilities(&self) -> Capabilities {
        self.platform.capabilities()
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let seen = self.platform.observe(now)?;
        // What was seen back at its own size need not be remembered.
        let touched = self.governance.touched();
        let back: Vec<&str> = (seen.functions.iter())
            .filter(|view| touched.contains(&view.function) && view.allocation == view.reservation)
            .filter_map(|view| self.platform.functions().get(view.function.index()))
            .map(|profile| profile.name.as_str())
            .collect();
        if !back.is_empty() {
            self.records.forget_grants(&back);
        }
        Ok(seen)
    }

    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        let grants: Vec<Grant> =
            plan.targets().iter().filter_map(|target| self.grant(target)).collect();
        if grants.is_empty() {
            return self.platform.submit(now, plan);
        }
        match self.records.grant(&grants) {
            Ok(()) => self.platform.submit(now, plan),
            Err(problem) => Receipt::of(plan, |_| {
                let problem = format!("the grant cannot be written down: {problem}");
                Answer::Refused(Refusal::System(problem))
            }),
        }
    }
}
