//! A real pod gets another size while it runs.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::bed::{Bed, Needs, image, record, resource};
use super::control_groups::{ContainerGroup, Limits};

pub(crate) fn deployment(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "function", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "function"}},
            "template": {
                "metadata": {"labels": {"app": "function"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "function", "image": image(),
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "64Mi"},
                            "limits": {"cpu": "500m", "memory": "128Mi"}},
                        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}]}}}
    })
}

/// Container id and restarts.
pub(crate) fn container(pod: &Pod) -> (String, i32) {
    let statuses = pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap();
    (statuses[0].container_id.clone().unwrap(), statuses[0].restart_count)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn a_resize_reaches_the_kernel_without_a_restart() {
    let Some(bed) = Bed::with("resize", Needs::Pods).await else { return };
    let namespace = bed.namespace("windfall-resize").await;
    bed.apply(&resource("apps", "v1", "Deployment", "deployments"), &deployment(&namespace)).await;
    let pod = bed.ready_pod(&namespace, "app=function").await;
    let before = container(&pod);
    let Some(group) = ContainerGroup::find(&before.0) else {
        record("skipped", "resize: the node is another machine, its control groups cannot be read");
        return;
    };
    assert_eq!(group.limits(), Limits { cpu_quota: 50_000, memory: 128 << 20 });
    // The kubelet is still busy with a pod that has just become ready; a settled one is what a controller meets.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let api = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    let mut took = Vec::new();
    for (cpu, memory, wanted) in [
        ("800m", "256Mi", Limits { cpu_quota: 80_000, memory: 256 << 20 }),
        ("300m", "192Mi", Limits { cpu_quota: 30_000, memory: 192 << 20 }),
        ("700m", "160Mi", Limits { cpu_quota: 70_000, memory: 160 << 20 }),
    ] {
        let patch = json!({"spec": {"containers": [{"name": "function",
            "resources": {"limits": {"cpu": cpu, "memory": memory}}}]}});
        let sent = Instant::now();
        api.patch_resize(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch))
            .await
            .unwrap();
        while group.limits() != wanted {
            assert!(
                sent.elapsed() < Duration::from_secs(30),
                "{:?} is not {wanted:?}",
                group.limits()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took.push(sent.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    took.sort_by(f64::total_cmp);
    record("resize_ms", &format!("{:.1}", took[1]));
    let after = container(&api.get(&pod.name_any()).await.unwrap());
    assert_eq!(after, before, "the same container, never restarted");
    let refused = json!({"spec": {"containers": [{"name": "function",
        "resources": {"requests": {"cpu": "700m", "memory": "160Mi"}}}]}});
    let refused = api
        .patch_resize(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&refused))
        .await;
    assert!(refused.unwrap_err().to_string().contains("QOS"), "the class of a pod stays");
    bed.delete_namespace(&namespace).await;
}
