//! A controller that starts finds workloads that an earlier one changed. What it wants of them is read from the objects
//! themselves, so that nothing jumps back to the user's size only because a process was replaced.

use windfall_core::{Allocation, Duration};

use super::{Controller, Sorted};
use crate::cluster::TargetFacts;
use crate::desired::{Desired, Scope, least_in_force};
use crate::resource_policy::{Amounts, ResourcePolicyStatus};
use crate::size;

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
            let status = one.policy.status.as_ref();
            member.desired = in_force(&target);
            // Pods that were replaced while no controller answered have their user's size; the others had this one.
            let was_sized = status.and_then(|status| status.applied.as_ref());
            if member.desired.size.is_none() && was_sized.is_some_and(|applied| applied.resized > 0)
            {
                member.desired.size = status.and_then(|status| recommended(status, &target));
            }
            member.recommended = member.desired;
            let written = status.and_then(|status| status.recommendation.as_ref());
            member.samples = written.map_or(0, |written| written.samples);
        }
    }
}

/// The size that the status recommends for the managed container.
fn recommended(status: &ResourcePolicyStatus, target: &TargetFacts<'_>) -> Option<Allocation> {
    let all = &status.recommendation.as_ref()?.containers;
    let own = all.iter().find(|one| one.container_name == target.container.name)?;
    let amounts =
        Amounts { cpu: Some(own.target.cpu.clone()), memory: Some(own.target.memory.clone()) };
    Some(size::bound(Some(&amounts), target.container.size.allocation()?))
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
