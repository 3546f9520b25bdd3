//! In-place size of running pods, `pods/resize`. A pod whose resize its node defers or calls infeasible is not asked
//! again for the same size: the node retries a deferred one by itself.

use super::{Action, Actuator, Cost};
use crate::cluster::{PodFacts, TargetFacts};
use crate::desired::{Desired, Scope};
use crate::discovery::Offers;
use crate::resource_policy::ResourcePolicySpec;
use crate::size::ContainerSize;

pub(super) const NAME: &str = "pod-resize";

pub(super) struct PodResize;

impl Actuator for PodResize {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cost(&self) -> Cost {
        Cost::RequestPerPod
    }

    fn is_offered(&self, offers: &Offers, _: &ResourcePolicySpec) -> bool {
        offers.resize
    }

    fn pursue(&self, target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Vec<Action> {
        let user = target.container.size;
        let wanted = desired.size.map_or(user, |size| user.resized(size, desired.ceiling));
        let sized = scope.count(target.pods.len());
        let size_of = |place: usize| if place < sized { wanted } else { user };
        let pods = target.pods.iter().enumerate();
        pods.filter_map(|(place, (key, pod))| {
            let size = size_of(place);
            needs(pod, &target.container.name, size).then(|| Action::ResizePod {
                pod: (*key).clone(),
                container: target.container.name.clone(),
                size,
            })
        })
        .collect()
    }

    fn restore(&self, target: &TargetFacts<'_>) -> Vec<Action> {
        self.pursue(target, &Desired::default(), Scope::Nothing)
    }
}

/// Whether a running pod has to be patched. One that would be restarted by it is left alone.
fn needs(pod: &PodFacts, container: &str, size: ContainerSize) -> bool {
    let differs =
        |one: &crate::cluster::ContainerFacts| one.size != size && !one.restarts_on_resize;
    pod.is_running && pod.container(container).is_some_and(differs)
}
