//! The controller as a process of its own beside the cluster, and policies for it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
        Self::start_every(1, namespace, identity, place, webhook)
    }

    /// The same with so many seconds between two passes.
    pub(crate) fn start_every(
        seconds: u32,
        namespace: &str,
        identity: &str,
        place: u16,
        webhook: bool,
    ) -> Self {
        let mut command = Self::command(seconds, namespace, identity, place);
        if webhook {
            let address = format!("{NODE}:{}", 19_443 + place);
            command.args(["--webhook-listen", &address]);
            command.args(["--webhook-url", &format!("https://{address}")]);
        }
        Self::spawn(command, namespace, identity)
    }

    /// One with these variables in its environment, such as KUBECONFIG.
    pub(crate) fn start_with(
        namespace: &str,
        identity: &str,
        place: u16,
        variables: &[(&str, &Path)],
    ) -> Self {
        let mut command = Self::command(1, namespace, identity, place);
        command.envs(variables.iter().copied());
        Self::spawn(command, namespace, identity)
    }

    fn command(seconds: u32, namespace: &str, identity: &str, place: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windfall-kubernetes"));
        command.args(["controller", "--interval", &seconds.to_string(), "--plain-logs"]);
        command.args(["--namespace", namespace, "--identity", identity]);
        command.args(["--listen", &format!("127.0.0.1:{}", 18_080 + place)]);
        command
    }

    fn spawn(mut command: Command, namespace: &str, identity: &str) -> Self {
        let log = std::env::temp_dir().join(format!("{namespace}-{identity}.log"));
        // Without a hold on our output, whoever reads that to its end does not wait for a controller that outlives us.
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
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
    let bounds = json!({
        "containers": [{"containerName": "*", "minAllowed": {"cpu": "50m", "memory": "48Mi"}}],
        "replicas": {"min": 1, "max": 3}});
    let target = json!({"kind": "Deployment", "name": "function"});
    bed.apply(&policies(), &written(namespace, &target, mode, &bounds)).await;
}

/// A policy that allows one size only, so that a test knows what is wanted.
pub(crate) async fn fixed_policy(
    bed: &Bed,
    namespace: &str,
    target: &Value,
    mode: &str,
    (cpu, memory): (&str, &str),
) {
    let size = json!({"cpu": cpu, "memory": memory});
    let container = json!({"containerName": "*", "minAllowed": size, "maxAllowed": size});
    let bounds = json!({"containers": [container]});
    bed.apply(&policies(), &written(namespace, target, mode, &bounds)).await;
}

fn written(namespace: &str, target: &Value, mode: &str, bounds: &Value) -> Value {
    json!({
        "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": "function", "namespace": namespace},
        "spec": {"targetRef": target, "mode": mode, "bounds": bounds},
    })
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
