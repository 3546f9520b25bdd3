//! What holds for single members whatever a policy decides: the bounds that its user wrote, and reasons to change
//! nothing now. The controller fills in the table before every tick; two rules read it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windfall_core::{
    Allocation, Duration, FunctionId, Instances, Mebibytes, MilliCpu, Observation, PlannedTarget,
    Resource, Safeguard, Setting, Verdict,
};

use crate::cluster::TargetFacts;
use crate::resource_policy::{Goals, ResourcePolicySpec};
use crate::size;

/// One row per member.
#[derive(Debug, Default)]
pub struct Guards {
    rows: BTreeMap<FunctionId, Guard>,
}

/// What holds for one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The least size.
    pub least: Allocation,
    /// The most size.
    pub most: Allocation,
    /// Fewest and most pods.
    pub replicas: (u32, u32),
    /// Whether something else starts pods while requests wait, as Knative does: then the number is a floor, and may be 0.
    pub wakes_itself: bool,
    /// The floor that is in force there.
    pub floor: u32,
    /// The most CPU of one pod that its user allows, cores; the request, where there is no limit.
    pub cpu_limit: Option<f64>,
    /// What it should achieve.
    pub goals: Goals,
    /// Its latency at the goal's percentile, as measured.
    pub latency: Option<Duration>,
    /// Requests per second, as measured.
    pub per_second: Option<f64>,
    /// Why nothing may change now.
    pub held: Option<String>,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            least: Allocation::new(1, 4),
            most: Allocation { cpu: MilliCpu::MAX, memory: Mebibytes::MAX },
            replicas: (0, 1000),
            wakes_itself: false,
            floor: 0,
            cpu_limit: None,
            goals: Goals::default(),
            latency: None,
            per_second: None,
            held: None,
        }
    }
}

impl Guard {
    /// The bounds of a spec for the container that it manages. Without a range for pods a Deployment keeps at least one.
    pub fn of(spec: &ResourcePolicySpec, container: &str) -> Self {
        let usual = Self::default();
        let entries = &spec.bounds.containers;
        let own = entries.iter().find(|entry| entry.container_name == container);
        let entry = own.or_else(|| entries.iter().find(|entry| entry.container_name == "*"));
        let least_pods = match spec.target_ref.kind {
            crate::resource_policy::TargetKind::Deployment => 1,
            crate::resource_policy::TargetKind::Service => 0,
        };
        Self {
            least: size::bound(entry.and_then(|one| one.min_allowed.as_ref()), usual.least),
            most: size::bound(entry.and_then(|one| one.max_allowed.as_ref()), usual.most),
            replicas: spec
                .bounds
                .replicas
                .map_or((least_pods, usual.replicas.1), |range| (range.min, range.max)),
            wakes_itself: spec.target_ref.kind == crate::resource_policy::TargetKind::Service,
            goals: spec.goals.clone(),
            ..usual
        }
    }
}

impl Guard {
    /// The same with what is known about the target: what its user allows, and the floor in force.
    #[must_use]
    pub fn at(mut self, spec: &ResourcePolicySpec, target: &TargetFacts<'_>) -> Self {
        self.cpu_limit = target.container.size.most_cores();
        let Some((_, revision)) = target.revision else { return self };
        let number = |text: &String| text.parse::<u32>().ok();
        self.floor = revision.annotations.get("min-scale").and_then(number).unwrap_or(0);
        if spec.bounds.replicas.is_none() {
            let users = |key: &str| match revision.original.get(key) {
                Some(noted) => noted.as_ref().and_then(number),
                None => revision.annotations.get(key).and_then(number),
            };
            self.replicas.0 = users("min-scale").unwrap_or(self.replicas.0);
            // In Knative's annotation 0 stands for no limit.
            self.replicas.1 =
                users("max-scale").filter(|most| *most > 0).unwrap_or(self.replicas.1);
        }
        self
    }
}

impl Guards {
    /// Sets the row of a member.
    pub fn set(&mut self, id: FunctionId, guard: Guard) {
        self.rows.insert(id, guard);
    }

    /// The row of a member.
    pub fn get(&self, id: FunctionId) -> Option<&Guard> {
        self.rows.get(&id)
    }
}

pub(crate) fn lock(guards: &Mutex<Guards>) -> MutexGuard<'_, Guards> {
    guards.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses everything for a member that must not change now.
pub struct Held {
    guards: Arc<Mutex<Guards>>,
}

impl Held {
    /// Reads `guards`.
    pub fn new(guards: Arc<Mutex<Guards>>) -> Self {
        Self { guards }
    }
}

impl Safeguard for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    fn review(&mut self, _: &Observation, proposed: &PlannedTarget) -> Verdict {
        let guards = lock(&self.guards);
        match guards.get(proposed.function).and_then(|guard| guard.held.clone()) {
            Some(reason) if !proposed.is_keep() => Verdict::Amend {
                target: PlannedTarget::keep(proposed.function),
                resource: Resource::All,
                reason: reason.into(),
            },
            Some(_) | None => Verdict::Accept,
        }
    }
}

/// Keeps sizes and numbers within what the user wrote.
pub struct Bounds {
    guards: Arc<Mutex<Guards>>,
}

impl Bounds {
    /// Reads `guards`.
    pub fn new(guards: Arc<Mutex<Guards>>) -> Self {
        Self { guards }
    }
}

impl Safeguard for Bounds {
    fn name(&self) -> &'static str {
        "bounds"
    }

    fn review(&mut self, _: &Observation, proposed: &PlannedTarget) -> Verdict {
        let guards = lock(&self.guards);
        let Some(guard) = guards.get(proposed.function) else { return Verdict::Accept };
        let mut target = proposed.clone();
        let mut held = None;
        if let Setting::Set(asked) = proposed.cpu {
            let allowed = asked.max(guard.least.cpu).min(guard.most.cpu);
            target.cpu = Setting::Set(allowed);
            held = held.or((allowed != asked).then(|| (Resource::Cpu, format!("cpu {allowed}"))));
        }
        if let Setting::Set(asked) = proposed.memory {
            let allowed = asked.max(guard.least.memory).min(guard.most.memory);
            target.memory = Setting::Set(allowed);
            let said = || (Resource::Memory, format!("memory {allowed}"));
            held = held.or((allowed != asked).then(said));
        }
        if let Setting::Set(asked) = proposed.instances {
            let (least, most) =
                (Instances::new(guard.replicas.0), Instances::new(guard.replicas.1));
            let allowed = asked.max(least).min(most);
            target.instances = Setting::Set(allowed);
            let said = || (Resource::Instances, format!("{} pods", allowed.get()));
            held = held.or((allowed != asked).then(said));
        }
        match held {
            None => Verdict::Accept,
            Some((resource, allowed)) => Verdict::Amend {
                target,
                resource,
                reason: format!("spec.bounds allows {allowed}").into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windfall_core::conformance::safeguard_suite;

    fn spec() -> ResourcePolicySpec {
        serde_json::from_value(json!({
            "targetRef": {"kind": "Deployment", "name": "a"},
            "bounds": {
                "containers": [
                    {"containerName": "*", "minAllowed": {"cpu": "50m"}},
                    {"containerName": "app", "minAllowed": {"cpu": "100m", "memory": "64Mi"}, "maxAllowed": {"cpu": "1"}},
                ],
                "replicas": {"min": 2, "max": 5},
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_entry_of_a_container_counts_before_the_one_for_all() {
        let own = Guard::of(&spec(), "app");
        assert_eq!((own.least, own.most.cpu), (Allocation::new(100, 64), MilliCpu::new(1000)));
        let other = Guard::of(&spec(), "sidecar");
        assert_eq!((other.least.cpu, other.replicas), (MilliCpu::new(50), (2, 5)));
    }

    #[test]
    fn decisions_are_kept_within_bounds_and_held_members_alone() {
        let guards: Arc<Mutex<Guards>> = Arc::default();
        lock(&guards).set(FunctionId(0), Guard::of(&spec(), "app"));
        let proposed = PlannedTarget {
            cpu: Setting::Set(MilliCpu::new(5000)),
            instances: Setting::Set(Instances::new(1)),
            ..PlannedTarget::keep(FunctionId(0))
        };
        let verdict = Bounds::new(Arc::clone(&guards)).review(&Observation::default(), &proposed);
        let Verdict::Amend { target, .. } = verdict else { panic!("{verdict:?}") };
        assert_eq!(target.cpu, Setting::Set(MilliCpu::new(1000)));
        assert_eq!(target.instances, Setting::Set(Instances::new(2)));

        let held = Guard { held: Some("it was reverted".into()), ..Guard::default() };
        lock(&guards).set(FunctionId(0), held);
        let verdict = Held::new(guards).review(&Observation::default(), &proposed);
        let Verdict::Amend { target, reason, .. } = verdict else { panic!("{verdict:?}") };
        assert!(target.is_keep() && reason == "it was reverted");
    }

    #[test]
    fn both_rules_conform() {
        let guards: Arc<Mutex<Guards>> = Arc::default();
        safeguard_suite(&|| Box::new(Bounds::new(Arc::clone(&guards))));
        safeguard_suite(&|| Box::new(Held::new(Arc::clone(&guards))));
    }
}
