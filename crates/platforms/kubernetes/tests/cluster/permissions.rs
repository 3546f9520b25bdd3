//! Roles are taken away from a running controller: it says so in a condition, goes on, and goes back to work when they
//! are there again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use windfall_kubernetes::rbac;

use super::bed::{Bed, Needs, record, resource, until};
use super::controller::{Controller, install, seen, set_mode};
use super::faults_of_the_server::{ALLOWED, LIMIT, USERS_CPU, managed_pod, until_requested};

const GROUP: &str = "rbac.authorization.k8s.io";
/// A user of the test cluster without any right of its own.
const USER: &str = "limited";
const ROLE: &str = "windfall-limited";

/// Gives the user the controller's roles, without what `without` names.
async fn grant(bed: &Bed, namespace: &str, without: Option<&str>) {
    let [mut cluster, mut own] = rbac::roles(namespace);
    // The chart brings roles of the usual name.
    for role in [&mut cluster, &mut own] {
        role["metadata"]["name"] = json!(ROLE);
    }
    if let Some(without) = without {
        for rule in cluster["rules"].as_array_mut().unwrap() {
            rule["resources"].as_array_mut().unwrap().retain(|one| one != without);
        }
        cluster["rules"]
            .as_array_mut()
            .unwrap()
            .retain(|rule| rule["resources"].as_array().is_some_and(|all| !all.is_empty()));
    }
    bed.apply(&resource(GROUP, "v1", "ClusterRole", "clusterroles"), &cluster).await;
    bed.apply(&resource(GROUP, "v1", "Role", "roles"), &own).await;
    let subject = json!([{"apiGroup": GROUP, "kind": "User", "name": USER}]);
    let binding = |kind: &str, role: &str, metadata: Value| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata,
            "subjects": subject, "roleRef": {"apiGroup": GROUP, "kind": role, "name": ROLE}})
    };
    let all = binding("ClusterRoleBinding", "ClusterRole", json!({"name": ROLE}));
    let kind = resource(GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings");
    bed.apply(&kind, &all).await;
    let own = binding("RoleBinding", "Role", json!({"name": ROLE, "namespace": namespace}));
    bed.apply(&resource(GROUP, "v1", "RoleBinding", "rolebindings"), &own).await;
}

/// Waits until a condition has this status and reason; returns its message.
async fn said(bed: &Bed, namespace: &str, kind: &str, status: &str, reason: &str) -> String {
    until(LIMIT, &format!("{kind}={status}, {reason}"), async || {
        let policy = seen(bed, namespace).await?;
        let all = policy["status"]["conditions"].as_array()?;
        let one = all.iter().find(|one| one["type"] == kind)?;
        let is_so = one["status"] == status && one["reason"] == reason;
        is_so.then(|| one["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn a_role_that_is_taken_away_is_a_condition_and_no_crash_loop() {
    let Some(bed) = Bed::with("permissions", Needs::Pods).await else { return };
    let Some(state) = std::env::var_os("WINDFALL_KUBERNETES_STATE").map(PathBuf::from) else {
        record("skipped", "permissions: the users of this cluster are not ours");
        return;
    };
    let kubeconfig = state.join(format!("{USER}.kubeconfig"));
    install(&bed).await;
    let namespace = bed.namespace("windfall-rights").await;
    grant(&bed, &namespace, None).await;
    let pod = managed_pod(&bed, &namespace).await;
    let name = pod.name_any();
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    let start = |place| {
        Controller::start_with(&namespace, "one", place, &[("KUBECONFIG", kubeconfig.as_path())])
    };
    let mut controller = start(6);
    // The roles that the controller prints are enough for it.
    until_requested(&pods, &name, ALLOWED.0, 90).await;

    grant(&bed, &namespace, Some("pods/resize")).await;
    set_mode(&bed, &namespace, "Off").await;
    let message = said(&bed, &namespace, "Applied", "False", "Refused").await;
    record("rights_resize", &message);
    assert!(message.contains("not permitted") && message.contains("pods/resize"), "{message}");
    assert!(controller.runs(), "{}", controller.last_lines());
    grant(&bed, &namespace, None).await;
    let took = until_requested(&pods, &name, USERS_CPU, LIMIT).await;
    record("rights_resize_back_s", &format!("{took:.1}"));

    // A controller that starts without the right to see pods.
    controller.kill();
    grant(&bed, &namespace, Some("pods")).await;
    let mut controller = start(7);
    let message = said(&bed, &namespace, "Ready", "False", "WatchFailed").await;
    record("rights_pods", &message);
    assert!(message.contains("pods") && message.contains("forbidden"), "{message}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(controller.runs(), "{}", controller.last_lines());
    grant(&bed, &namespace, None).await;
    let back = Instant::now();
    said(&bed, &namespace, "Ready", "True", "Off").await;
    record("rights_pods_back_s", &format!("{:.1}", back.elapsed().as_secs_f64()));
    bed.delete_namespace(&namespace).await;
}
