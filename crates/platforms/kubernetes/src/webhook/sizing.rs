//! The patch for one pod.

use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use kube::ResourceExt;
use serde_json::{Value, json};
use windfall_core::Allocation;

use crate::cluster::{Cluster, Key, QUEUE_PROXY, deployment_of};
use crate::resource_policy::{Amounts, Mode, ResourcePolicy};
use crate::size::{self, ContainerSize};

/// Where a pod says that it was sized.
pub const SIZED: &str = "windfall.dev/sized";

/// The JSON patch for a new pod; nothing if it starts at its user's size. `draw`, below 100, chooses the pods of a
/// canary.
pub fn patch_for(cluster: &Cluster, namespace: &str, pod: &Pod, draw: u32) -> Option<Value> {
    let deployment = Key::new(namespace, deployment_of(pod)?);
    let policy = policy_of(cluster, &deployment)?;
    let share = match policy.spec.mode {
        Mode::Auto => 100,
        Mode::Canary => policy.spec.canary.map_or(0, |canary| canary.share_percent),
        Mode::Off | Mode::Recommend => 0,
    };
    if draw >= share || policy.spec.paused || !is_in_force(policy) {
        return None;
    }
    let recommended = policy.status.as_ref()?.recommendation.as_ref()?.containers.first()?;
    let containers = &pod.spec.as_ref()?.containers;
    let place = containers
        .iter()
        .position(|one| one.name == recommended.container_name && one.name != QUEUE_PROXY)?;
    let resources = containers[place].resources.as_ref();
    let user = ContainerSize::read(resources);
    let target = &recommended.target;
    let amounts = Amounts { cpu: Some(target.cpu.clone()), memory: Some(target.memory.clone()) };
    let wanted: Allocation = size::bound(Some(&amounts), user.allocation()?);
    let resized = user.resized(wanted, None);
    if resized == user {
        return None;
    }
    let sized = format!("cpu={},memory={}", target.cpu, target.memory);
    Some(json!([
        {"op": "add", "path": format!("/spec/containers/{place}/resources"), "value": merged(resources, resized)},
        annotation(pod, &sized),
    ]))
}

/// The policy whose workload a Deployment is.
fn policy_of<'a>(cluster: &'a Cluster, deployment: &Key) -> Option<&'a ResourcePolicy> {
    let first = Key::new(&deployment.namespace, "");
    let of_namespace =
        cluster.policies.from(&first).take_while(|(key, _)| key.namespace == deployment.namespace);
    of_namespace.map(|(_, policy)| policy.as_ref()).find(|policy| {
        let target = cluster.target(&deployment.namespace, &policy.spec.target_ref);
        target.is_ok_and(|target| target.deployment.0 == deployment)
    })
}

/// Whether the recommendation is in force: nobody else is in charge, nothing was taken back, the policy is not going.
fn is_in_force(policy: &ResourcePolicy) -> bool {
    let Some(status) = &policy.status else { return false };
    let is_true =
        |kind: &str| status.conditions.iter().any(|one| one.type_ == kind && one.status == "True");
    policy.metadata.deletion_timestamp.is_none()
        && !policy.finalizers().is_empty()
        && !is_true("Conflict")
        && !is_true("Reverted")
}

/// The container's resources with these requests and limits; what else it has, such as claims, stays.
fn merged(resources: Option<&ResourceRequirements>, size: ContainerSize) -> Value {
    let mut merged = resources.map_or_else(|| json!({}), |one| json!(one));
    let new = size.to_json();
    for part in ["requests", "limits"] {
        let Some(amounts) = new.get(part).and_then(Value::as_object) else { continue };
        for (key, amount) in amounts {
            merged[part][key] = amount.clone();
        }
    }
    merged
}

fn annotation(pod: &Pod, sized: &str) -> Value {
    if pod.metadata.annotations.is_none() {
        return json!({"op": "add", "path": "/metadata/annotations", "value": {SIZED: sized}});
    }
    let key = SIZED.replace('~', "~0").replace('/', "~1");
    json!({"op": "add", "path": format!("/metadata/annotations/{key}"), "value": sized})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::samples;
    use std::sync::Arc;

    fn cluster(mode: &str, conflict: &str) -> Cluster {
        let mut cluster = samples::service("n", "hello", 1);
        let policy = json!({
            "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
            "metadata": {"name": "hello", "namespace": "n", "finalizers": [crate::controller::FINALIZER]},
            "spec": {
                "targetRef": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello"},
                "mode": mode, "canary": {"sharePercent": 50},
            },
            "status": {
                "recommendation": {"containers": [{"containerName": "user-container", "target": {"cpu": "250m", "memory": "96Mi"}}]},
                "conditions": [{"type": "Conflict", "status": conflict}],
            },
        });
        let policy: ResourcePolicy = serde_json::from_value(policy).unwrap();
        cluster.policies.put(Key::new("n", "hello"), Arc::new(policy));
        cluster
    }

    fn pod(annotations: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "generateName": "hello-00001-deployment-5d4f8-", "labels": {"pod-template-hash": "5d4f8"},
                "annotations": annotations,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hello-00001-deployment-5d4f8", "uid": "u"}],
            },
            "spec": {"containers": [
                {"name": "queue-proxy", "resources": {"requests": {"cpu": "25m"}}},
                {"name": "user-container", "resources": {
                    "requests": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "1Gi"}, "limits": {"memory": "128Mi"},
                }},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn a_knative_pod_is_sized_in_its_user_container_only() {
        let patch = patch_for(&cluster("Auto", "False"), "n", &pod(Value::Null), 99).unwrap();
        assert_eq!(patch[0]["path"], "/spec/containers/1/resources");
        let expected = json!({
            "requests": {"cpu": "250m", "memory": "96Mi", "ephemeral-storage": "1Gi"}, "limits": {"memory": "96Mi"},
        });
        assert_eq!(patch[0]["value"], expected);
        assert_eq!(patch[1]["value"], json!({SIZED: "cpu=250m,memory=96Mi"}));
        let patch = patch_for(&cluster("Auto", "False"), "n", &pod(json!({"a": "b"})), 0).unwrap();
        assert_eq!(patch[1]["path"], "/metadata/annotations/windfall.dev~1sized");
    }

    #[test]
    fn pods_start_at_their_users_size_unless_the_policy_acts() {
        let patched = |mode: &str, conflict: &str, draw| {
            patch_for(&cluster(mode, conflict), "n", &pod(Value::Null), draw).is_some()
        };
        assert!(!patched("Recommend", "False", 0) && !patched("Off", "False", 0));
        assert!(!patched("Auto", "True", 0), "another autoscaler is in charge");
        assert!(patched("Canary", "False", 49) && !patched("Canary", "False", 50));
        assert!(patch_for(&cluster("Auto", "False"), "elsewhere", &pod(Value::Null), 0).is_none());
    }
}
