//! The chart as a user installs it: two replicas in the cluster with the rights of the chart and no others, a policy, the
//! plug-in, and an uninstallation that gives everything back.

use std::path::PathBuf;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;

use super::bed::{Bed, Needs, built, record, resource, run, until};
use super::controller::seen;
use super::faults_of_the_server::{
    ALLOWED, USERS_CPU, managed_pod, requested_cpu, until_requested,
};
use super::resize::container;

const NAMESPACE: &str = "windfall-installed";

/// Helm and the image of the controller; nothing where the cluster is somebody else's.
fn helm() -> Option<PathBuf> {
    let images = PathBuf::from(std::env::var_os("WINDFALL_KUBERNETES_IMAGES")?);
    built("bin/helm").filter(|_| images.join("windfall-kubernetes.tar").exists())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn the_chart_is_installed_manages_a_pod_and_is_removed() {
    let Some(bed) = Bed::with("installed", Needs::Pods).await else { return };
    let Some(helm) = helm() else {
        record("skipped", "installed: helm or the controller's image is not here");
        return;
    };
    let image = "image.repository=dev.local/windfall-kubernetes,interval=2";
    let install = [
        "install",
        "windfall",
        "deploy/helm/windfall",
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set",
        image,
        "--set-string",
        "image.tag=1",
        "--wait",
        "--timeout",
        "90s",
    ];
    run(helm.clone(), &install).await;
    let controllers = Api::<Deployment>::namespaced(bed.client.clone(), NAMESPACE);
    let ready = controllers.get("windfall").await.unwrap().status.unwrap().ready_replicas;
    assert_eq!(ready, Some(2), "both replicas are ready");

    let namespace = bed.namespace("windfall-user").await;
    let pod = managed_pod(&bed, &namespace).await;
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    until_requested(&pods, &pod.name_any(), ALLOWED.0, 120).await;
    let plugin = PathBuf::from(env!("CARGO_BIN_EXE_kubectl-windfall"));
    let status = run(plugin.clone(), &["status", "-A"]).await;
    record("kubectl_windfall_status", &status.replace('\n', " | "));
    assert!(status.contains("function") && status.contains("50m"), "{status}");
    let explained = run(plugin, &["explain", "function", "-n", &namespace]).await;
    assert!(explained.contains("50m"), "{explained}");
    // The API server reaches the webhook by its Service: a new pod has the size from its creation.
    let deployments = resource("apps", "v1", "Deployment", "deployments");
    let more = super::bed::scale(&bed, &deployments, &namespace, "function", 2);
    more.await;
    let sized = until(60, "a second pod", async || {
        let all = bed.pods(&namespace, "app=function").await;
        all.into_iter().find(|one| one.name_any() != pod.name_any())
    })
    .await;
    assert_eq!(requested_cpu(&sized), ALLOWED.0, "the webhook sized it");

    run(helm, &["uninstall", "windfall", "--namespace", NAMESPACE, "--wait", "--timeout", "120s"])
        .await;
    let after = pods.get(&pod.name_any()).await.unwrap();
    assert_eq!(requested_cpu(&after), USERS_CPU, "given back before the controller went");
    assert_eq!(container(&after), container(&pod), "never restarted");
    let policy = bed.api(&super::controller::policies(), Some(&namespace));
    assert!(policy.get("function").await.unwrap().finalizers().is_empty(), "it can be deleted");
    assert!(seen(&bed, &namespace).await.is_some(), "the definition and its objects stay");
    record("installed", "complete");
    bed.delete_namespace(&namespace).await;
    bed.delete_namespace(NAMESPACE).await;
}
