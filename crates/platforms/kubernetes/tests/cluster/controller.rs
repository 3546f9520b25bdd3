//! The controller as a process of its own beside the cluster, and policies for it.

use std::path::PathBuf;
use std::process::{Child, Command};

use kube::CustomResourceExt;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use windfall_kubernetes::resource_policy::ResourcePolicy;

use super::bed::{Bed, condition, resource, until};

/// Where the API server of the test cluster reaches the webhook of a controller outside it.
const NODE: &str = "10.77.0.1";

/// A running controller; dropping it kills it without a warning, as a lost machine would.
pub(crate) struct Controller {
    process: Child,
    log: PathBuf,
}

impl Controller {
    /// Starts one that passes every second. Each needs its own `place` for its ports.
    pub(crate) fn start(namespace: &str, identity: &str, place: u16, webhook: bool) -> Self {
        let log = std::env::temp_dir().join(format!("{namespace}-{identity}.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_windfall-kubernetes"));
        command.args(["controller", "--interval", "1", "--plain-logs", "--namespace", namespace]);
        command.args(["--identity", identity]);
        command.args(["--listen", &format!("127.0.0.1:{}", 18_080 + place)]);
        if webhook {
            let address = format!("{NODE}:{}", 19_443 + place);
            command.args(["--webhook-listen", &address]);
            command.args(["--webhook-url", &format!("https://{address}")]);
        }
        command.stderr(std::fs::File::create(&log).unwrap());
        Self { process: command.spawn().unwrap(), log }
    }

    /// What it wrote, for a test that failed.
    pub(crate) fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Whether it never ended.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Ends it without a warning.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the controller's last lines:\n{}", self.last_lines());
        }
        self.kill();
    }
}

pub(crate) fn policies() -> ApiResource {
    resource("windfall.dev", "v1alpha1", "ResourcePolicy", "resourcepolicies")
}

/// Installs the custom resource.
pub(crate) async fn install(bed: &Bed) {
    let definitions = resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    bed.apply(&definitions, &serde_json::to_value(ResourcePolicy::crd()).unwrap()).await;
    let api = bed.api(&definitions, None);
    until(30, "the definition is established", async || {
        let object = api.get("resourcepolicies.windfall.dev").await.ok()?;
        condition(&object.data, "Established").then_some(())
    })
    .await;
}

/// A policy for the Deployment `function`.
pub(crate) async fn policy(bed: &Bed, namespace: &str, mode: &str) {
    let object = json!({
        "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": "function", "namespace": namespace},
        "spec": {
            "targetRef": {"kind": "Deployment", "name": "function"}, "mode": mode,
            "bounds": {
                "containers": [{"containerName": "*", "minAllowed": {"cpu": "50m", "memory": "48Mi"}}],
                "replicas": {"min": 1, "max": 3}}}
    });
    bed.apply(&policies(), &object).await;
}

/// Another mode for it.
pub(crate) async fn set_mode(bed: &Bed, namespace: &str, mode: &str) -> DynamicObject {
    let patch = json!({"spec": {"mode": mode}});
    let api = bed.api(&policies(), Some(namespace));
    api.patch("function", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
}

/// Its object, if it is there.
pub(crate) async fn seen(bed: &Bed, namespace: &str) -> Option<Value> {
    let object = bed.api(&policies(), Some(namespace)).get_opt("function").await.ok()??;
    Some(object.data)
}
