//! The custom resource on a real API server: schema, rules, columns.

use kube::CustomResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windfall_kubernetes::resource_policy::ResourcePolicy;

use super::bed::{Bed, Needs, resource, until};

fn policy(namespace: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn the_api_server_keeps_the_rules_of_the_definition() {
    let Some(bed) = Bed::with("definition", Needs::Objects).await else { return };
    let definitions = resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let definition = serde_json::to_value(ResourcePolicy::crd()).unwrap();
    bed.apply(&definitions, &definition).await;
    let api = bed.api(&definitions, None);
    until(30, "the definition is established", async || {
        let object = api.get("resourcepolicies.windfall.dev").await.ok()?;
        super::bed::condition(&object.data, "Established").then_some(())
    })
    .await;
    let namespace = bed.namespace("windfall-definition").await;
    let policies = bed.api(
        &resource("windfall.dev", "v1alpha1", "ResourcePolicy", "resourcepolicies"),
        Some(&namespace),
    );
    let apply = PatchParams::apply("windfall-tests").force();
    let target = json!({"kind": "Deployment", "name": "web"});
    let put = async |name: &str, spec: Value| {
        policies.patch(name, &apply, &Patch::Apply(&policy(&namespace, name, spec))).await
    };
    let made = put("good", json!({"targetRef": target})).await.unwrap();
    assert_eq!(made.data["spec"]["mode"], "Recommend", "the default is filled in");
    for (name, spec, message) in [
        (
            "canary",
            json!({"targetRef": target, "mode": "Canary"}),
            "mode Canary needs canary.sharePercent",
        ),
        ("kind", json!({"targetRef": {"kind": "DaemonSet", "name": "web"}}), "targetRef.kind"),
        (
            "bounds",
            json!({"targetRef": target, "bounds": {"containers": [
                {"minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "500m"}}]}}),
            "minAllowed.cpu is above maxAllowed.cpu",
        ),
        (
            "replicas",
            json!({"targetRef": target, "bounds": {"replicas": {"min": 3, "max": 2}}}),
            "replicas.min is above",
        ),
    ] {
        let problem = put(name, spec).await.unwrap_err().to_string();
        assert!(problem.contains(message), "{name}: {problem}");
    }
    let moved = put("good", json!({"targetRef": {"kind": "Deployment", "name": "other"}})).await;
    assert!(moved.unwrap_err().to_string().contains("targetRef cannot be changed"));
    bed.delete_namespace(&namespace).await;
}
