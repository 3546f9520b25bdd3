//! What should be in force, and whether it is. The controller does not send changes; it keeps what is desired and lets
//! actuators close the difference at every pass. A patch that was lost, a pod that was replaced and a controller that was
//! restarted are all the same case: a difference.

use windfall_core::{Allocation, CpuCeiling, Duration, PlannedTarget, Refusal, Setting};

use crate::cluster::{PodFacts, ResizeState, TargetFacts};
use crate::size::ContainerSize;

/// What a workload should have; what is not set is left to its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Size of the managed container.
    pub size: Option<Allocation>,
    /// Most CPU of that container, where it differs from the user's ratio.
    pub ceiling: Option<CpuCeiling>,
    /// Number of pods; on Knative the least number.
    pub replicas: Option<u32>,
    /// Most pods, on Knative.
    pub most_replicas: Option<u32>,
    /// Requests that one pod serves at the same time, on Knative.
    pub concurrency: Option<u32>,
    /// How long pods above the number stay, on Knative.
    pub keep_alive: Option<Duration>,
}

impl Desired {
    /// Takes in what a plan sets; `now` is the size that is in force, for what the plan leaves alone.
    pub fn follow(&mut self, target: &PlannedTarget, now: Allocation) {
        let current = self.size.unwrap_or(now);
        if target.is_resize() {
            self.size = Some(Allocation {
                cpu: target.cpu.value().unwrap_or(current.cpu),
                memory: target.memory.value().unwrap_or(current.memory),
            });
        }
        if let Setting::Set(ceiling) = target.cpu_ceiling {
            self.ceiling = Some(ceiling);
        }
        if let Setting::Set(count) = target.instances {
            self.replicas = Some(count.get());
        }
        if let Setting::Set(calls) = target.concurrency {
            self.concurrency = Some(calls.get());
        }
        if let Setting::Set(time) = target.keep_alive {
            self.keep_alive = Some(time);
        }
    }
}

/// Which pods are sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// None: mode Recommend, or another autoscaler is in charge.
    Nothing,
    /// So many percent of the pods, at least one, and no other setting.
    Share(u32),
    /// All pods and all settings.
    Everything,
}

impl Scope {
    /// Whether anything is changed.
    pub const fn acts(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// How many of `pods` are sized: 20 % of 4 pods are one.
    pub fn count(self, pods: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Share(percent) => (pods * percent as usize).div_ceil(100).min(pods),
            Self::Everything => pods,
        }
    }
}

/// The pods that are sized: the first by name, so that the choice stays while pods do.
pub fn sized_pods<'a, 'b>(
    target: &'b TargetFacts<'a>,
    scope: Scope,
) -> impl Iterator<Item = &'b (&'a crate::cluster::Key, &'a PodFacts)> {
    target.pods.iter().take(scope.count(target.pods.len()))
}

/// How far a size has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it is in force.
    Done,
    /// Under way.
    Pending,
    /// It will not get further by itself.
    Stuck(Refusal),
}

/// Whether the pods of `scope` have the size that `desired` asks for.
pub fn size_progress(target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Progress {
    let Some(size) = desired.size else { return Progress::Done };
    let wanted = target.container.size.resized(size, desired.ceiling);
    let mut progress = Progress::Done;
    for (_, pod) in sized_pods(target, scope).filter(|(_, pod)| pod.is_running) {
        match pod_progress(pod, &target.container.name, wanted) {
            Progress::Done => {}
            Progress::Pending => progress = Progress::Pending,
            stuck @ Progress::Stuck(_) => return stuck,
        }
    }
    progress
}

fn pod_progress(pod: &PodFacts, container: &str, wanted: ContainerSize) -> Progress {
    let Some(container) = pod.container(container) else { return Progress::Done };
    if container.size != wanted {
        return Progress::Pending;
    }
    match &pod.resize {
        ResizeState::Deferred(_) | ResizeState::Infeasible(_) => Progress::Stuck(Refusal::NoRoom),
        ResizeState::Error(said) => Progress::Stuck(Refusal::System(said.clone())),
        ResizeState::InProgress => Progress::Pending,
        ResizeState::Settled if container.in_force.is_none_or(|now| now == wanted) => {
            Progress::Done
        }
        ResizeState::Settled => Progress::Pending,
    }
}

/// The least that a running pod of `scope` holds now; the user's size if none runs.
pub fn least_in_force(target: &TargetFacts<'_>, scope: Scope) -> Option<Allocation> {
    let held = |pod: &PodFacts| {
        let container = pod.container(&target.container.name)?;
        container.in_force.unwrap_or(container.size).allocation()
    };
    let held = sized_pods(target, scope)
        .filter(|(_, pod)| pod.is_running)
        .filter_map(|(_, pod)| held(pod));
    held.reduce(Allocation::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{FunctionId, Instances, MilliCpu};

    #[test]
    fn a_share_is_rounded_up_and_never_more_than_all() {
        assert_eq!((Scope::Share(20).count(4), Scope::Share(20).count(11)), (1, 3));
        assert_eq!((Scope::Share(100).count(3), Scope::Share(1).count(0)), (3, 0));
        assert_eq!((Scope::Nothing.count(9), Scope::Everything.count(9)), (0, 9));
    }

    #[test]
    fn a_plan_changes_what_it_sets_and_nothing_else() {
        let mut desired = Desired { replicas: Some(3), ..Desired::default() };
        let target = PlannedTarget {
            cpu: Setting::Set(MilliCpu::new(250)),
            ..PlannedTarget::keep(FunctionId(0))
        };
        desired.follow(&target, Allocation::new(500, 128));
        assert_eq!((desired.size, desired.replicas), (Some(Allocation::new(250, 128)), Some(3)));
        let target = PlannedTarget {
            instances: Setting::Set(Instances::new(5)),
            ..PlannedTarget::keep(FunctionId(0))
        };
        desired.follow(&target, Allocation::new(1, 1));
        assert_eq!((desired.size, desired.replicas), (Some(Allocation::new(250, 128)), Some(5)));
    }
}
