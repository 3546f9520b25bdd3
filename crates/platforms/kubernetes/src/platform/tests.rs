use std::sync::Arc;

use serde_json::json;
use windfall_core::conformance::platform_suite;
use windfall_core::{Decision, Instances, MilliCpu, Resource, SafeguardChain, Setting, Target};

use super::*;
use crate::actuators;
use crate::cluster::{ResizeState, samples};
use crate::discovery::Offers;
use crate::metrics::Reading;

const OFFERS: Offers =
    Offers { resize: true, knative: true, metrics_api: true, vertical: false, keda: false };

/// A platform with one workload, and what the cluster does while time passes.
struct Stage {
    platform: KubernetesPlatform,
    world: Arc<World>,
    now: u64,
}

fn policy(kind: TargetKind) -> ResourcePolicy {
    let target = match kind {
        TargetKind::Deployment => json!({"kind": "Deployment", "name": "hello"}),
        TargetKind::Service => {
            json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello"})
        }
    };
    serde_json::from_value(json!({
        "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": "hello", "namespace": "n"}, "spec": {"targetRef": target, "mode": "Auto"},
    }))
    .unwrap()
}

impl Stage {
    fn new(kind: TargetKind, scope: Scope) -> Self {
        let world: Arc<World> = Arc::default();
        *world.cluster() = match kind {
            TargetKind::Deployment => samples::deployment("n", "hello", 2),
            TargetKind::Service => samples::service("n", "hello", 2),
        };
        world.set_offers(OFFERS);
        let mut platform = KubernetesPlatform::new(Arc::clone(&world), kind);
        let member = Membership {
            key: Key::new("n", "hello"),
            policy: Arc::new(policy(kind)),
            scope,
            is_paused: false,
        };
        platform.set_members(Timestamp::ZERO, &[member]);
        Self { platform, world, now: 1000 }
    }

    /// Lets a second pass: pods are measured and what is desired is carried out.
    fn wait(&mut self) -> Timestamp {
        self.now += 1;
        let now = Timestamp::from_secs(self.now);
        let key = Key::new("n", "hello");
        let member = self.platform.member(&key).expect("the member");
        let (desired, scope, spec) = (member.desired, member.scope, Arc::clone(&member.policy));
        let mut cluster = self.world.cluster();
        let target = cluster.target("n", &spec.spec.target_ref).unwrap();
        let actions = match scope.acts() {
            true => actuators::pursue(&target, &desired, scope, &OFFERS, &spec.spec),
            false => Vec::new(),
        };
        let container = target.container.name.clone();
        let readings = target.pods.iter().flat_map(|(key, _)| {
            let usage = Reading::CpuCores((*key).clone(), container.clone(), 0.1);
            [usage, Reading::MemoryBytes((*key).clone(), container.clone(), 5e7)]
        });
        self.world.metrics().put(now, readings.collect());
        samples::carry_out(&mut cluster, &actions);
        now
    }

    fn submit(&mut self, id: u64, target: Target) -> Receipt {
        let now = self.wait();
        let seen = self.platform.observe(now).unwrap();
        let decision = Decision { targets: vec![target], reason: String::new() };
        let plan = SafeguardChain::default().review(&seen, &decision).unwrap();
        self.platform.submit(now, &plan.numbered(PlanId(id)))
    }

    fn observe(&mut self) -> Observation {
        let now = self.wait();
        self.platform.observe(now).unwrap()
    }
}

impl Platform for Stage {
    fn functions(&self) -> &[FunctionProfile] {
        self.platform.functions()
    }
    fn capabilities(&self) -> Capabilities {
        self.platform.capabilities()
    }
    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        self.platform.observe(now)
    }
    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        self.platform.submit(now, plan)
    }
}

#[test]
fn the_suite_of_platforms_passes_for_every_kind_and_scope() {
    for kind in [TargetKind::Deployment, TargetKind::Service] {
        for scope in [Scope::Nothing, Scope::Share(50), Scope::Everything] {
            platform_suite(&|| Box::new(Stage::new(kind, scope)), &|stage: &mut Stage| {
                stage.wait()
            });
        }
    }
}

fn sized(cores: f64, mib: f64) -> Target {
    Target {
        cpu_cores: Setting::Set(cores),
        memory_mib: Setting::Set(mib),
        ..Target::keep(FunctionId(0))
    }
}

#[test]
fn a_size_is_applied_when_the_pods_have_it() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Everything);
    stage.submit(1, sized(0.25, 96.0));
    let seen = stage.observe();
    assert_eq!(seen.settled[0].outcome, Outcome::Applied);
    assert_eq!(seen.functions[0].allocation, Allocation::new(250, 96));
    assert_eq!(seen.functions[0].reservation, Allocation::new(500, 128));
}

#[test]
fn a_deferred_size_is_reported_with_what_is_in_force() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Everything);
    stage.submit(1, sized(0.9, 128.0));
    stage.wait();
    samples::change_pod(&mut stage.world.cluster(), "n", "hello", 0, |pod| {
        pod.resize = ResizeState::Deferred("full".into());
        pod.containers[0].in_force = Some(samples::user_size());
    });
    let seen = stage.platform.observe(Timestamp::from_secs(stage.now)).unwrap();
    let expected = Outcome::Partly { in_force: Allocation::new(500, 128), reason: Refusal::NoRoom };
    assert_eq!(seen.settled[0].outcome, expected);
}

#[test]
fn a_refusal_of_the_api_server_ends_the_change() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Everything);
    stage.submit(1, sized(0.25, 96.0));
    let key = Key::new("n", "hello");
    stage.platform.acted(&key, Err(ActionError::Forbidden("pods/resize".into())));
    let seen = stage.platform.observe(Timestamp::from_secs(stage.now)).unwrap();
    let Outcome::Partly { reason, .. } = &seen.settled[0].outcome else { panic!("{seen:?}") };
    assert_eq!(*reason, Refusal::System("pods/resize".into()));
}

#[test]
fn a_lost_answer_is_reported_after_a_minute() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Everything);
    stage.submit(1, sized(0.25, 96.0));
    let later = Timestamp::from_secs(stage.now + 60);
    // Pods are still measured, but nobody carried anything out.
    let readings = stage
        .world
        .cluster()
        .pods
        .iter()
        .flat_map(|(key, _)| {
            let usage = Reading::CpuCores(key.clone(), samples::CONTAINER.into(), 0.1);
            [usage, Reading::MemoryBytes(key.clone(), samples::CONTAINER.into(), 5e7)]
        })
        .collect();
    stage.world.metrics().put(later, readings);
    let seen = stage.platform.observe(later).unwrap();
    let Outcome::Partly { reason, .. } = &seen.settled[0].outcome else { panic!("{seen:?}") };
    assert_eq!(*reason, Refusal::Unreachable);
}

#[test]
fn a_recommendation_moves_on_and_nothing_is_desired() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Nothing);
    stage.submit(1, sized(0.25, 96.0));
    let seen = stage.observe();
    assert_eq!(seen.functions[0].allocation, Allocation::new(250, 96));
    let member = stage.platform.member(&Key::new("n", "hello")).unwrap();
    assert_eq!(member.desired, Desired::default());
    assert_eq!(member.recommended.size, Some(Allocation::new(250, 96)));
}

#[test]
fn only_what_leaves_less_is_blamed_for_kills_and_throttling() {
    let mut stage = Stage::new(TargetKind::Service, Scope::Everything);
    let mut change_by = |target: Target| {
        let key = Key::new("n", "hello");
        stage.platform.let_go(&key, Timestamp::from_secs(stage.now));
        stage.submit(1, target);
        let world = Arc::clone(&stage.world);
        let cluster = world.cluster();
        let member = stage.platform.member(&key).unwrap();
        let target = cluster.target("n", &member.policy.spec.target_ref).unwrap();
        member.change(&target)
    };
    let calls = |calls| Target { concurrency: Setting::Set(calls), ..Target::keep(FunctionId(0)) };
    assert_eq!(change_by(sized(0.5, 128.0)), Change::Nothing, "the user's own size");
    assert_eq!(change_by(sized(0.75, 128.0)), Change::NoLess);
    assert_eq!(change_by(sized(0.25, 128.0)), Change::Less);
    assert_eq!(change_by(sized(0.5, 96.0)), Change::Less);
    assert_eq!((change_by(calls(3.0)), change_by(calls(900.0))), (Change::NoLess, Change::Less));
}

#[test]
fn a_workload_that_is_not_measured_is_not_shown() {
    let mut stage = Stage::new(TargetKind::Deployment, Scope::Everything);
    assert_eq!(stage.observe().functions.len(), 1);
    let stale = Timestamp::from_secs(stage.now + 61);
    let seen = stage.platform.observe(stale).unwrap();
    assert!(seen.functions.is_empty(), "measurements are older than a minute");
}

#[test]
fn nothing_is_observed_before_the_first_lists_are_complete() {
    let world: Arc<World> = Arc::default();
    let mut platform = KubernetesPlatform::new(world, TargetKind::Deployment);
    assert_eq!(platform.observe(Timestamp::from_secs(1)).err(), Some(PlatformError::NotReady));
}

#[test]
fn replicas_of_a_service_become_the_floor_of_knatives_autoscaler() {
    let mut stage = Stage::new(TargetKind::Service, Scope::Everything);
    assert!(stage.capabilities().can_set(Resource::Concurrency));
    let target = Target { instances: Setting::Set(3.0), ..Target::keep(FunctionId(0)) };
    stage.submit(1, target);
    let seen = stage.observe();
    assert_eq!(seen.settled[0].outcome, Outcome::Applied);
    let cluster = stage.world.cluster();
    let revision = cluster.revisions.get(&Key::new("n", "hello-00001")).unwrap();
    assert_eq!(revision.annotations.get("min-scale").map(String::as_str), Some("3"));
    assert_eq!(seen.functions[0].ready, Instances::new(2));
    assert_eq!(seen.functions[0].reservation.cpu, MilliCpu::new(500));
}
