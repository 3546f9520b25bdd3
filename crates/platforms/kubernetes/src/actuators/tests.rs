use super::*;
use crate::cluster::{Cluster, ResizeState, samples};
use crate::desired::{Progress, size_progress};
use serde_json::json;
use windfall_core::{Allocation, Duration};

const OFFERS: Offers =
    Offers { resize: true, knative: true, metrics_api: false, vertical: false, keda: false };

fn spec(knative: bool, new_revisions: bool) -> ResourcePolicySpec {
    let target = if knative {
        json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello"})
    } else {
        json!({"kind": "Deployment", "name": "hello"})
    };
    serde_json::from_value(
        json!({"targetRef": target, "actuation": {"newRevisions": new_revisions}}),
    )
    .unwrap()
}

fn pursued(
    cluster: &Cluster,
    spec: &ResourcePolicySpec,
    desired: &Desired,
    scope: Scope,
) -> Vec<Action> {
    let target = cluster.target("n", &spec.target_ref).unwrap();
    pursue(&target, desired, scope, &OFFERS, spec)
}

fn restored(cluster: &Cluster, spec: &ResourcePolicySpec) -> Vec<Action> {
    let target = cluster.target("n", &spec.target_ref).unwrap();
    restore(&target, &OFFERS, spec)
}

#[test]
fn actuators_are_listed_from_cheap_to_dear() {
    assert!(ALL.is_sorted_by_key(|one| one.cost()));
}

#[test]
fn a_deployment_is_sized_and_scaled_and_given_back_exactly() {
    let spec = spec(false, false);
    let mut cluster = samples::deployment("n", "hello", 2);
    let before = format!("{:?}", (&cluster.deployments, &cluster.pods));
    let desired =
        Desired { size: Some(Allocation::new(250, 96)), replicas: Some(4), ..Desired::default() };
    let actions = pursued(&cluster, &spec, &desired, Scope::Everything);
    let names: Vec<&str> = actions.iter().map(Action::actuator).collect();
    assert_eq!(names, ["pod-resize", "pod-resize", "deployment-scale", "deployment-scale"]);
    samples::carry_out(&mut cluster, &actions);
    assert!(
        pursued(&cluster, &spec, &desired, Scope::Everything).is_empty(),
        "the difference is closed"
    );
    let target = cluster.target("n", &spec.target_ref).unwrap();
    assert_eq!(size_progress(&target, &desired, Scope::Everything), Progress::Done);

    let actions = restored(&cluster, &spec);
    samples::carry_out(&mut cluster, &actions);
    assert_eq!(format!("{:?}", (&cluster.deployments, &cluster.pods)), before);
    assert!(restored(&cluster, &spec).is_empty());
}

#[test]
fn a_canary_sizes_its_share_and_leaves_the_number_alone() {
    let spec = spec(false, false);
    let cluster = samples::deployment("n", "hello", 4);
    let desired =
        Desired { size: Some(Allocation::new(250, 96)), replicas: Some(9), ..Desired::default() };
    let actions = pursued(&cluster, &spec, &desired, Scope::Share(50));
    assert_eq!(actions.len(), 2);
    assert!(actions.iter().all(|action| action.actuator() == "pod-resize"));
    assert!(pursued(&cluster, &spec, &desired, Scope::Nothing).is_empty());
}

#[test]
fn a_deferred_resize_is_not_sent_again_and_counts_as_stuck() {
    let spec = spec(false, false);
    let mut cluster = samples::deployment("n", "hello", 1);
    let desired = Desired { size: Some(Allocation::new(900, 128)), ..Desired::default() };
    let actions = pursued(&cluster, &spec, &desired, Scope::Everything);
    samples::carry_out(&mut cluster, &actions);
    samples::change_pod(&mut cluster, "n", "hello", 0, |pod| {
        pod.resize = ResizeState::Deferred("node is full".into());
        pod.containers[0].in_force = Some(samples::user_size());
    });
    assert!(pursued(&cluster, &spec, &desired, Scope::Everything).is_empty());
    let target = cluster.target("n", &spec.target_ref).unwrap();
    let progress = size_progress(&target, &desired, Scope::Everything);
    assert_eq!(progress, Progress::Stuck(windfall_core::Refusal::NoRoom));
}

#[test]
fn a_container_that_a_resize_would_restart_is_left_alone() {
    let spec = spec(false, false);
    let mut cluster = samples::deployment("n", "hello", 1);
    samples::change_pod(&mut cluster, "n", "hello", 0, |pod| {
        pod.containers[0].restarts_on_resize = true
    });
    let desired = Desired { size: Some(Allocation::new(250, 96)), ..Desired::default() };
    assert!(pursued(&cluster, &spec, &desired, Scope::Everything).is_empty());
}

#[test]
fn annotations_are_set_on_the_live_revision_and_given_back() {
    let spec = spec(true, false);
    let mut cluster = samples::service("n", "hello", 1);
    let before = format!("{:?}", cluster.revisions);
    let desired = Desired {
        replicas: Some(3),
        most_replicas: Some(10),
        concurrency: Some(20),
        keep_alive: Some(Duration::from_secs(2)),
        ..Desired::default()
    };
    let actions = pursued(&cluster, &spec, &desired, Scope::Everything);
    let [Action::Annotate { set, original, .. }] = &actions[..] else { panic!("{actions:?}") };
    let value = |key: &str| set.get(key).cloned().flatten();
    assert_eq!(value("min-scale").as_deref(), Some("3"));
    assert_eq!((value("target").as_deref(), value("window").as_deref()), (Some("20"), Some("6s")));
    assert_eq!(value("target-burst-capacity"), None, "left to its user");
    assert_eq!(original.get("target"), Some(&Some("50".to_owned())));
    assert_eq!(original.get("min-scale"), Some(&None));
    samples::carry_out(&mut cluster, &actions);
    assert!(pursued(&cluster, &spec, &desired, Scope::Everything).is_empty());

    // Another value later does not forget what the user had.
    let desired = Desired { concurrency: Some(30), ..desired };
    let actions = pursued(&cluster, &spec, &desired, Scope::Everything);
    samples::carry_out(&mut cluster, &actions);
    let actions = restored(&cluster, &spec);
    samples::carry_out(&mut cluster, &actions);
    assert_eq!(format!("{:?}", cluster.revisions), before);
}

#[test]
fn a_new_revision_needs_permission_and_the_last_one_to_be_ready() {
    let mut cluster = samples::service("n", "hello", 1);
    let desired = Desired { concurrency: Some(20), ..Desired::default() };
    let makes_one = |cluster: &Cluster, spec: &ResourcePolicySpec| {
        let actions = pursued(cluster, spec, &desired, Scope::Everything);
        actions.iter().any(|action| matches!(action, Action::NewRevision { .. }))
    };
    assert!(!makes_one(&cluster, &spec(true, false)));
    assert!(makes_one(&cluster, &spec(true, true)));
    let mut facts = cluster.services.get(&Key::new("n", "hello")).unwrap().clone();
    facts.latest_created = Some("hello-00002".into());
    cluster.services.put(Key::new("n", "hello"), facts);
    assert!(!makes_one(&cluster, &spec(true, true)));
}
