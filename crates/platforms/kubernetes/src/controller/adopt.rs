//! A controller that starts finds workloads that an earlier one changed. What it wants of them is read from the objects
//! themselves, so that nothing jumps back to the user's size only because a process was replaced.

use windfall_core::Duration;

use super::{Controller, Sorted};
use crate::cluster::TargetFacts;
use crate::desired::{Desired, Scope, least_in_force};

impl Controller {
    /// Reads what is in force for policies that are new to this controller.
    pub(super) fn adopt(&mut self, sorted: &[Sorted]) {
        let cluster = self.world.cluster();
        for one in sorted.iter().filter(|one| one.case.scope().acts()) {
            let Some(group) = self.groups.get_mut(&one.group()) else { continue };
            let Some(member) = group.platform.member(&one.key) else { continue };
            if member.is_adopted {
                continue;
            }
            let reference = &one.policy.spec.target_ref;
            let Ok(target) = cluster.target(&one.key.namespace, reference) else { continue };
            member.is_adopted = true;
            member.desired = in_force(&target);
            member.recommended = member.desired;
            let written =
                one.policy.status.as_ref().and_then(|status| status.recommendation.as_ref());
            member.samples = written.map_or(0, |written| written.samples);
        }
    }
}

/// What an earlier controller set on a workload.
fn in_force(target: &TargetFacts<'_>) -> Desired {
    let own = target.container.size.allocation();
    let sized = least_in_force(target, Scope::Everything).filter(|held| Some(*held) != own);
    let mut desired = Desired { size: sized, ..Desired::default() };
    if target.deployment.1.original_replicas.is_some() {
        desired.replicas = Some(target.deployment.1.replicas);
    }
    if let Some((_, revision)) = target.revision {
        let set = |key: &str| {
            let noted = revision.original.contains_key(key);
            revision.annotations.get(key).filter(|_| noted).cloned()
        };
        let number = |key: &str| set(key).and_then(|text| text.parse::<u32>().ok());
        desired.replicas = number("min-scale");
        desired.most_replicas = number("max-scale");
        desired.concurrency = number("target");
        let window = set("window").and_then(|text| text.strip_suffix('s')?.parse::<u64>().ok());
        desired.keep_alive = window.map(Duration::from_secs);
    }
    desired
}
