//! What a real API server says under stress, said at a door in front of it: conflicts, too many requests, a history that
//! is gone, watches that stall. Each lasts for some seconds while the policy is switched off or on, so that there is
//! something to do; afterwards it must have been done, once.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use super::bed::{Bed, Needs, record, resource, until};
use super::controller::{Controller, fixed_policy, install, set_mode};
use super::door::{Door, Fault};
use super::resize::{container, deployment};

/// Back in service within so many seconds.
pub(crate) const LIMIT: u64 = 15;
/// The one size that the policy allows, and the user's.
pub(crate) const ALLOWED: (&str, &str) = ("50m", "64Mi");
pub(crate) const USERS_CPU: &str = "100m";
/// How long a fault lasts.
const LASTS: Duration = Duration::from_secs(4);

/// The CPU that the first container of a pod requests.
pub(crate) fn requested_cpu(pod: &Pod) -> String {
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let requests = container.resources.as_ref().and_then(|one| one.requests.as_ref());
    requests.and_then(|one| one.get("cpu")).map_or_else(String::new, |cpu| cpu.0.clone())
}

/// Waits until a pod requests so much CPU; returns its seconds.
pub(crate) async fn until_requested(pods: &Api<Pod>, name: &str, cpu: &str, seconds: u64) -> f64 {
    let began = Instant::now();
    until(seconds, &format!("the pod requests {cpu}"), async || {
        (requested_cpu(&pods.get(name).await.ok()?) == cpu).then_some(())
    })
    .await;
    began.elapsed().as_secs_f64()
}

/// A ready pod of a Deployment with a policy in mode Auto.
pub(crate) async fn managed_pod(bed: &Bed, namespace: &str) -> Pod {
    bed.apply(&resource("apps", "v1", "Deployment", "deployments"), &deployment(namespace)).await;
    let pod = bed.ready_pod(namespace, "app=function").await;
    let target = json!({"kind": "Deployment", "name": "function"});
    fixed_policy(bed, namespace, &target, "Auto", ALLOWED).await;
    pod
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn after_each_fault_of_the_server_what_was_due_is_done_once_within_15_s() {
    let Some(bed) = Bed::with("faults of the server", Needs::Pods).await else { return };
    install(&bed).await;
    let namespace = bed.namespace("windfall-door").await;
    let pod = managed_pod(&bed, &namespace).await;
    let (name, first) = (pod.name_any(), container(&pod));
    let door = Door::open(&bed.client, "windfall-door").await;
    let mut controller =
        Controller::start_with(&namespace, "one", 3, &[("KUBECONFIG", door.kubeconfig())]);
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    until_requested(&pods, &name, ALLOWED.0, 90).await;

    let faults = [
        ("conflict_409", Fault::Writes(409)),
        ("too_many_429", Fault::Writes(429)),
        ("everything_429", Fault::Everything(429)),
        ("everything_500", Fault::Everything(500)),
        ("watches_gone_410", Fault::WatchesGone),
        ("watches_stall", Fault::WatchesStall),
    ];
    for (place, (word, fault)) in faults.into_iter().enumerate() {
        let (mode, wanted) = if place % 2 == 0 { ("Off", USERS_CPU) } else { ("Auto", ALLOWED.0) };
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = pods.get(&name).await.unwrap().metadata.generation.unwrap();
        door.set(fault);
        set_mode(&bed, &namespace, mode).await;
        tokio::time::sleep(LASTS).await;
        door.set(Fault::None);
        let took = until_requested(&pods, &name, wanted, LIMIT).await;
        record(&format!("fault_{word}_s"), &format!("{took:.1}"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = pods.get(&name).await.unwrap();
        assert_eq!(after.metadata.generation, Some(before + 1), "{word}: the pod was changed once");
        assert_eq!(container(&after), first, "{word}: never restarted");
        assert!(controller.runs(), "{word}: the controller ended\n{}", controller.last_lines());
    }
    bed.delete_namespace(&namespace).await;
}
