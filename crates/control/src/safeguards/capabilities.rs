//! What the platform cannot set is not asked for.

use windfall_core::{
    Capabilities, Observation, PlannedTarget, Resource, Safeguard, Setting, Verdict,
};

use super::Review;

pub(super) const NAME: &str = "capabilities";

/// Turns every setting that the platform cannot make into "keep", with an amendment that names it.
///
/// The last rule of every loop. Without it a policy that sizes memory on a platform that cannot would be refused at
/// every tick, together with whatever else its target sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapabilityCheck {
    /// What the platform says it can do; read again at every tick.
    pub capabilities: Capabilities,
}

impl Safeguard for CapabilityCheck {
    fn name(&self) -> &'static str {
        NAME
    }

    fn review(&mut self, _seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let mut review = Review::of(proposed);
        for resource in Resource::SETTABLE {
            if self.capabilities.can_set(resource) {
                continue;
            }
            let said = || format!("this platform cannot set {resource}");
            match resource {
                Resource::Cpu => review.cpu(Setting::Keep, said),
                Resource::CpuCeiling => review.cpu_ceiling(Setting::Keep, said),
                Resource::Memory => review.memory(Setting::Keep, said),
                Resource::Instances => review.instances(Setting::Keep, said),
                Resource::Concurrency => review.concurrency(Setting::Keep, said),
                Resource::KeepAlive => review.keep_alive(said),
                Resource::All => {}
            }
        }
        review.verdict()
    }
}
