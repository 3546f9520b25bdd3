use super::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

fn pod(status: serde_json::Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "hello-5d4f8-abcde", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"pod-template-hash": "5d4f8"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hello-5d4f8", "uid": "u"}],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}}]},
        "status": status,
    }))
    .unwrap()
}

#[test]
fn a_pod_is_read_with_what_is_in_force_and_how_it_ended() {
    let (key, facts) = PodFacts::read(&pod(json!({
        "phase": "Running", "podIP": "10.0.0.7",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:03Z"}],
        "containerStatuses": [{
            "name": "app", "image": "", "imageID": "", "ready": true, "restartCount": 1,
            "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:02Z"}},
        }],
    })))
    .unwrap();
    assert_eq!(key, Key::new("n", "hello-5d4f8-abcde"));
    assert_eq!(
        (facts.deployment.as_str(), facts.is_ready, facts.is_running),
        ("hello", true, true)
    );
    let container = &facts.containers[0];
    assert_eq!(container.in_force.unwrap().cpu_request, Some(250));
    assert_eq!((container.size.cpu_request, container.restarts), (Some(500), 1));
    assert_eq!(container.terminated.as_ref().unwrap().reason, "OOMKilled");
    assert_eq!(facts.ready_since.unwrap() - facts.created, 3);
}

#[test]
fn conditions_of_a_resize_are_understood() {
    let state = |kind: &str, reason: &str| {
        let condition = json!({"type": kind, "status": "True", "reason": reason, "message": "m"});
        PodFacts::read(&pod(json!({"phase": "Running", "conditions": [condition]})))
            .unwrap()
            .1
            .resize
    };
    assert_eq!(state("PodResizePending", "Deferred"), ResizeState::Deferred("m".into()));
    assert_eq!(state("PodResizePending", "Infeasible"), ResizeState::Infeasible("m".into()));
    assert_eq!(state("PodResizeInProgress", "Error"), ResizeState::Error("m".into()));
    assert_eq!(state("PodResizeInProgress", ""), ResizeState::InProgress);
    assert_eq!(state("Initialized", ""), ResizeState::Settled);
}

#[test]
fn a_deployment_is_read_with_the_note_about_its_replicas() {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "hello", "namespace": "n", "annotations": {ORIGINAL_REPLICAS: "2"}},
        "spec": {"replicas": 5, "selector": {}, "template": {"spec": {"containers": [{"name": "app"}]}}},
    }))
    .unwrap();
    let (_, facts) = DeploymentFacts::read(&deployment).unwrap();
    assert_eq!((facts.replicas, facts.original_replicas), (5, Some(2)));
}

#[test]
fn pods_of_a_deployment_with_a_longer_name_are_not_its_own() {
    let mut cluster = samples::deployment("n", "hello", 2);
    let other =
        PodFacts { deployment: "hello-world".into(), is_running: true, ..PodFacts::default() };
    cluster.pods.put(Key::new("n", "hello-world-77-x"), other);
    let target = cluster.target("n", &samples::reference("hello")).unwrap();
    assert_eq!(target.pods.len(), 2);
}

#[test]
fn the_container_with_the_users_code_is_managed_on_knative() {
    let cluster = samples::service("n", "hello", 1);
    let target = cluster.target("n", &samples::service_reference("hello")).unwrap();
    assert_eq!(target.container.name, "user-container");
    assert!(target.revision.is_some() && target.pods.len() == 1);
}

#[test]
fn what_cannot_be_managed_is_named() {
    let mut cluster = samples::deployment("n", "hello", 1);
    let problem = |cluster: &Cluster, reference: &TargetReference| {
        cluster.target("n", reference).expect_err("a problem").to_string()
    };
    assert_eq!(problem(&cluster, &samples::reference("gone")), "there is no Deployment `n/gone`");
    let other = TargetReference { container: Some("web".into()), ..samples::reference("hello") };
    assert_eq!(problem(&cluster, &other), "`n/hello` has no container `web`; it has app");
    let mut facts = cluster.deployments.get(&Key::new("n", "hello")).unwrap().clone();
    facts.containers[0].size = crate::size::ContainerSize::default();
    cluster.deployments.put(Key::new("n", "hello"), facts);
    assert!(
        problem(&cluster, &samples::reference("hello")).contains("requests no CPU or no memory")
    );
}

#[test]
fn rivals_are_found_by_their_target_and_passive_ones_are_not() {
    let mut cluster = samples::deployment("n", "hello", 1);
    let rival = |target: &str, is_passive| Rival {
        target_kind: "Deployment".into(),
        target: target.into(),
        is_passive,
    };
    cluster.horizontal.put(Key::new("n", "other"), rival("other", false));
    cluster.vertical.put(Key::new("n", "off"), rival("hello", true));
    cluster.horizontal.put(Key::new("elsewhere", "h"), rival("hello", false));
    let found = |cluster: &Cluster| {
        let target = cluster.target("n", &samples::reference("hello")).unwrap();
        cluster
            .rivals_of(&target)
            .iter()
            .map(|(kind, key)| format!("{} {key}", kind.word()))
            .collect::<Vec<_>>()
    };
    assert!(found(&cluster).is_empty());
    cluster.horizontal.put(Key::new("n", "keda-hpa-hello"), rival("hello", false));
    cluster.scaled_objects.put(Key::new("n", "hello"), rival("hello", false));
    assert_eq!(found(&cluster), ["ScaledObject n/hello"]);
    cluster.horizontal.put(Key::new("n", "mine"), rival("hello", false));
    assert_eq!(found(&cluster), ["HorizontalPodAutoscaler n/mine", "ScaledObject n/hello"]);
}
