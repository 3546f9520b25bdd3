//! Rules about ticks that no policy can get around, one file each.
//!
//! A sensible order is the one below: a stale view stops everything, limits and rates bound each function alone, the
//! flap budget its history, and capacity bounds all of them together. Behind every chain stand the two rules that belong
//! to the loop: a function in doubt gets its own allocation back, and what the platform cannot set is dropped.

mod capabilities;
mod capacity;
mod flap;
mod in_doubt;
mod limits;
mod rate;
mod stale;
mod starts;

use std::borrow::Cow;

use windfall_core::{
    CpuCeiling, FunctionView, Instances, Mebibytes, MilliCpu, PlannedTarget, Resource, Setting,
    Verdict,
};

pub use capabilities::CapabilityCheck;
pub use capacity::Capacity;
pub use flap::FlapBudget;
pub use in_doubt::InDoubt;
pub use limits::{Bound, Bounds, Limits};
pub use rate::{RateOfChange, Step};
pub use stale::StaleObservation;
pub use starts::StartsPerTick;

/// Every name an amendment of a tick can carry.
pub const NAMES: [&str; 8] = [
    stale::NAME,
    limits::NAME,
    rate::NAME,
    starts::NAME,
    flap::NAME,
    capacity::NAME,
    in_doubt::NAME,
    capabilities::NAME,
];

/// Instances a function has or will have without any new decision.
fn standing(view: &FunctionView) -> Instances {
    view.ready + view.starting
}

/// A target under review, with the knobs a rule has held back so far.
struct Review {
    target: PlannedTarget,
    held: Option<Resource>,
    reason: String,
}

impl Review {
    fn of(proposed: &PlannedTarget) -> Self {
        Self { target: proposed.clone(), held: None, reason: String::new() }
    }

    fn instances(&mut self, allowed: Setting<Instances>, reason: impl FnOnce() -> String) {
        if allowed != self.target.instances {
            self.target.instances = allowed;
            self.note(Resource::Instances, reason());
        }
    }

    fn cpu(&mut self, allowed: Setting<MilliCpu>, reason: impl FnOnce() -> String) {
        if allowed != self.target.cpu {
            self.target.cpu = allowed;
            self.note(Resource::Cpu, reason());
        }
    }

    fn memory(&mut self, allowed: Setting<Mebibytes>, reason: impl FnOnce() -> String) {
        if allowed != self.target.memory {
            self.target.memory = allowed;
            self.note(Resource::Memory, reason());
        }
    }

    fn concurrency(&mut self, allowed: Setting<Instances>, reason: impl FnOnce() -> String) {
        if allowed != self.target.concurrency {
            self.target.concurrency = allowed;
            self.note(Resource::Concurrency, reason());
        }
    }

    fn cpu_ceiling(&mut self, allowed: Setting<CpuCeiling>, reason: impl FnOnce() -> String) {
        if allowed != self.target.cpu_ceiling {
            self.target.cpu_ceiling = allowed;
            self.note(Resource::CpuCeiling, reason());
        }
    }

    /// Leaves idle instances to the platform: their time and their worth.
    fn keep_alive(&mut self, reason: impl FnOnce() -> String) {
        if !(self.target.keep_alive.is_keep() && self.target.worth.is_keep()) {
            self.target.keep_alive = Setting::Keep;
            self.target.worth = Setting::Keep;
            self.note(Resource::KeepAlive, reason());
        }
    }

    /// One knob is named as itself; several are named as all, with every reason.
    fn note(&mut self, resource: Resource, reason: String) {
        if self.held.is_some() {
            self.held = Some(Resource::All);
            self.reason.push_str("; ");
        } else {
            self.held = Some(resource);
        }
        self.reason.push_str(&reason);
    }

    fn verdict(self) -> Verdict {
        match self.held {
            None => Verdict::Accept,
            Some(resource) => {
                Verdict::Amend { target: self.target, resource, reason: Cow::Owned(self.reason) }
            }
        }
    }
}

/// Refuses a target whole.
fn refuse(proposed: &PlannedTarget, reason: impl Into<Cow<'static, str>>) -> Verdict {
    if proposed.is_keep() {
        return Verdict::Accept;
    }
    Verdict::Amend {
        target: PlannedTarget::keep(proposed.function),
        resource: Resource::All,
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests;
