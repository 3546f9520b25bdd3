//! Least and most of everything, per function.

use std::collections::BTreeMap;

use windfall_core::{
    FunctionId, Instances, Mebibytes, MilliCpu, Observation, PlannedTarget, Safeguard, Setting,
    Verdict,
};

use super::{Review, refuse};

pub(super) const NAME: &str = "limits";

/// An end of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// In millicores or MiB.
    Amount(u32),
    /// As a multiple of what the user reserves.
    OfReservation(f64),
}

impl Bound {
    /// In whole units, rounded up; nonsense factors saturate.
    fn resolve(self, reservation: u32) -> u32 {
        match self {
            Self::Amount(amount) => amount,
            Self::OfReservation(factor) => (f64::from(reservation) * factor).ceil() as u32,
        }
    }
}

/// The ranges of one function. Where an upper end lies below the lower one, the upper one holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Fewest and most instances.
    pub instances: (u32, u32),
    /// Least and most CPU of an instance.
    pub cpu: (Bound, Bound),
    /// Least and most memory of an instance.
    pub memory: (Bound, Bound),
    /// Fewest and most calls that one instance serves at once.
    pub concurrency: (u32, u32),
}

impl Default for Bounds {
    /// A tenth to four times the reservation, up to 1000 instances, scale to zero allowed.
    fn default() -> Self {
        let sizes = (Bound::OfReservation(0.1), Bound::OfReservation(4.0));
        Self { instances: (0, 1000), cpu: sizes, memory: sizes, concurrency: (1, 1000) }
    }
}

/// Keeps every knob within its range.
///
/// A target for a function that was not measured is refused whole: its reservation is unknown.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// For functions without ranges of their own.
    pub bounds: Bounds,
    /// For single functions.
    pub per_function: BTreeMap<FunctionId, Bounds>,
}

impl Safeguard for Limits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(view) = seen.function(proposed.function) else {
            return refuse(proposed, "the function was not measured");
        };
        let bounds = self.per_function.get(&proposed.function).unwrap_or(&self.bounds);
        let mut review = Review::of(proposed);
        if let Setting::Set(asked) = proposed.instances {
            let (least, most) = bounds.instances;
            let allowed = Instances::new(within(asked.get(), least, most));
            review.instances(Setting::Set(allowed), || said("instances", least, most));
        }
        if let Setting::Set(asked) = proposed.cpu {
            let (least, most) = resolved(bounds.cpu, view.reservation.cpu.get());
            let allowed = MilliCpu::new(within(asked.get(), least, most));
            review.cpu(Setting::Set(allowed), || said("millicores", least, most));
        }
        if let Setting::Set(asked) = proposed.memory {
            let (least, most) = resolved(bounds.memory, view.reservation.memory.get());
            let allowed = Mebibytes::new(within(asked.get(), least, most));
            review.memory(Setting::Set(allowed), || said("MiB", least, most));
        }
        if let Setting::Set(asked) = proposed.concurrency {
            let (least, most) = bounds.concurrency;
            let allowed = Instances::new(within(asked.get(), least, most));
            review.concurrency(Setting::Set(allowed), || said("calls per instance", least, most));
        }
        review.verdict()
    }
}

fn within(asked: u32, least: u32, most: u32) -> u32 {
    asked.max(least).min(most)
}

/// Sizes are at least 1: an instance of nothing serves nobody.
fn resolved((least, most): (Bound, Bound), reservation: u32) -> (u32, u32) {
    (least.resolve(reservation).max(1), most.resolve(reservation).max(1))
}

fn said(unit: &str, least: u32, most: u32) -> String {
    format!("allowed is {least} to {most} {unit}")
}
