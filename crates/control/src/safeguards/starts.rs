//! How many instances may start at once.

use std::collections::BTreeMap;

use windfall_core::{
    FunctionId, Instances, Observation, PlannedTarget, Safeguard, Setting, Verdict,
};

use super::{Review, refuse, standing};

pub(super) const NAME: &str = "starts";

/// Limits the instances that one tick starts, over all functions together.
///
/// A forecast that is wrong everywhere at once (a clock that was set, a table that was lost) must not
/// start a thousand sandboxes in one breath. Targets are served in the order of the decision; what is held
/// back can be proposed again at the next tick. Calls that find no place start instances whatever is
/// said here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartsPerTick {
    /// Instances that one tick may start.
    pub most: u32,
    /// What was allowed at this tick; a function that is reviewed again is not counted twice.
    allowed: BTreeMap<FunctionId, u32>,
}

impl StartsPerTick {
    /// At most this many per tick.
    pub fn new(most: u32) -> Self {
        Self { most, allowed: BTreeMap::new() }
    }
}

impl Default for StartsPerTick {
    /// Two hundred: a hundred per second at ticks of 2 s.
    fn default() -> Self {
        Self::new(200)
    }
}

impl Safeguard for StartsPerTick {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Every tick has the whole number again: starts that were refused cost the next tick nothing.
    fn begin(&mut self, _seen: &Observation) -> Vec<FunctionId> {
        self.allowed.clear();
        Vec::new()
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(view) = seen.function(proposed.function) else {
            return refuse(proposed, "the function was not measured");
        };
        let mut review = Review::of(proposed);
        if let Setting::Set(asked) = proposed.instances {
            let current = standing(view);
            let more = asked.saturating_sub(current).get();
            self.allowed.remove(&proposed.function);
            let left = self.most - self.allowed.values().sum::<u32>();
            let allowed = more.min(left);
            self.allowed.insert(proposed.function, allowed);
            if allowed < more {
                let to = Instances::new(current.get().saturating_add(allowed));
                let most = self.most;
                review.instances(Setting::Set(to), || {
                    format!("one tick may start {most} instances, {allowed} are left for this one")
                });
            }
        }
        review.verdict()
    }
}
