//! How fast things may change.

use windfall_core::{
    Instances, Mebibytes, MilliCpu, Observation, PlannedTarget, Safeguard, Setting, Verdict,
};

use super::{Review, refuse, standing};

pub(super) const NAME: &str = "rate";

/// How far one tick may go: by this factor or by this amount, whichever is further.
///
/// | current | factor 2, amount 4 | up to | down to |
/// | ------- | ------------------ | ----- | ------- |
/// | 0       |                    | 4     | 0       |
/// | 3       |                    | 7     | 0       |
/// | 10      |                    | 20    | 5       |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// At most this many times more or less; at least 1.
    pub factor: f64,
    /// Or this much more or less.
    pub amount: u32,
}

impl Step {
    fn range(self, current: u32) -> (u32, u32) {
        let (factor, now) = (self.factor.max(1.0), f64::from(current));
        let least = ((now / factor).ceil() as u32).min(current.saturating_sub(self.amount));
        let most = ((now * factor).floor() as u32).max(current.saturating_add(self.amount));
        (least, most)
    }
}

/// Limits how far one tick moves a knob.
///
/// Sizes on their way back up to the user's reservation are not held up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateOfChange {
    /// Of the number of instances.
    pub instances: Step,
    /// Of an instance's CPU, millicores.
    pub cpu: Step,
    /// Of an instance's memory, MiB.
    pub memory: Step,
}

impl Default for RateOfChange {
    /// Up to ten times the instances (as Knative allows) or half the size in one tick.
    fn default() -> Self {
        Self {
            instances: Step { factor: 10.0, amount: 10 },
            cpu: Step { factor: 2.0, amount: 100 },
            memory: Step { factor: 2.0, amount: 64 },
        }
    }
}

impl Safeguard for RateOfChange {
    fn name(&self) -> &'static str {
        NAME
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(view) = seen.function(proposed.function) else {
            return refuse(proposed, "the function was not measured");
        };
        let mut review = Review::of(proposed);
        if let Setting::Set(asked) = proposed.instances {
            let current = standing(view).get();
            let (least, most) = self.instances.range(current);
            let allowed = Instances::new(asked.get().clamp(least, most));
            review.instances(Setting::Set(allowed), || said("instances", current, least, most));
        }
        if let Setting::Set(asked) = proposed.cpu {
            let current = view.allocation.cpu.get();
            let (least, most) = self.cpu.range(current);
            let most = most.max(view.reservation.cpu.get());
            let allowed = MilliCpu::new(asked.get().clamp(least, most));
            review.cpu(Setting::Set(allowed), || said("millicores", current, least, most));
        }
        if let Setting::Set(asked) = proposed.memory {
            let current = view.allocation.memory.get();
            let (least, most) = self.memory.range(current);
            let most = most.max(view.reservation.memory.get());
            let allowed = Mebibytes::new(asked.get().clamp(least, most));
            review.memory(Setting::Set(allowed), || said("MiB", current, least, most));
        }
        review.verdict()
    }
}

fn said(unit: &str, current: u32, least: u32, most: u32) -> String {
    format!("from {current} {unit} one tick may go to {least} to {most}")
}
