//! What to do when the picture is old.

use windfall_core::{
    CpuCeiling, Duration, Observation, PlannedTarget, Safeguard, Setting, Verdict,
};

use super::{Review, refuse, standing};

pub(super) const NAME: &str = "stale-observation";

/// Refuses to act on an old picture of the platform.
///
/// Scaling down on stale numbers is how a monitoring outage becomes a service outage. Past half of
/// `max_age` nothing is taken away; past `max_age` nothing is changed at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleObservation {
    /// The age from which numbers are not acted on.
    pub max_age: Duration,
}

impl Default for StaleObservation {
    /// One minute.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(60) }
    }
}

impl Safeguard for StaleObservation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let age = seen.age();
        if age > self.max_age {
            return refuse(
                proposed,
                format!("the numbers are {age} old; past {} nothing changes", self.max_age),
            );
        }
        if age <= self.max_age.scaled(0.5) {
            return Verdict::Accept;
        }
        let Some(view) = seen.function(proposed.function) else {
            return refuse(proposed, "the function was not measured");
        };
        let mut review = Review::of(proposed);
        let said = || format!("the numbers are {age} old; nothing is taken away on them");
        if matches!(proposed.instances, Setting::Set(asked) if asked < standing(view)) {
            review.instances(Setting::Keep, said);
        }
        if matches!(proposed.cpu, Setting::Set(asked) if asked < view.allocation.cpu) {
            review.cpu(Setting::Keep, said);
        }
        if matches!(proposed.memory, Setting::Set(asked) if asked < view.allocation.memory) {
            review.memory(Setting::Keep, said);
        }
        if matches!(proposed.cpu_ceiling, Setting::Set(CpuCeiling::At(_) | CpuCeiling::AtGrant)) {
            review.cpu_ceiling(Setting::Keep, said);
        }
        review.verdict()
    }
}
