//! The cluster that the tests stand on: what it has, objects in it, load on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windfall_core::Seed;
use windfall_load::{Generator, Measured, Schedule, Shape, Target};

/// Where the edge of the test cluster listens.
const EDGE: &str = "http://10.77.0.1";
/// Where measurements go; set by `cargo xtask kubernetes`.
const MEASURED: &str = "WINDFALL_KUBERNETES_MEASURED";

pub(crate) struct Bed {
    pub(crate) client: Client,
}

impl Bed {
    /// The cluster, or nothing with a word about why `test` is skipped.
    pub(crate) async fn with(test: &str, needs: Needs) -> Option<Self> {
        // The tests create and delete objects: never on a cluster that happens to be the current context.
        if std::env::var_os(MEASURED).is_none() {
            skip(test, "only `cargo xtask kubernetes` runs it");
            return None;
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Ok(client) = Client::try_default().await else {
            skip(test, "there is no cluster; `cargo xtask kubernetes` starts one");
            return None;
        };
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
        let has_node = !nodes.items.is_empty();
        if has_node {
            record("node", "kubelet");
        }
        let groups = client.list_api_groups().await.unwrap();
        let has_knative = groups.groups.iter().any(|group| group.name == "serving.knative.dev");
        match needs {
            Needs::Pods if !has_node => skip(test, "there is no node, so no pod runs"),
            Needs::Knative if !has_knative => skip(test, "Knative is not installed"),
            _ => return Some(Self { client }),
        }
        None
    }

    /// Creates or changes an object by server-side apply.
    pub(crate) async fn apply(&self, resource: &ApiResource, object: &Value) -> DynamicObject {
        let api = self.api(resource, object["metadata"]["namespace"].as_str());
        let name = object["metadata"]["name"].as_str().unwrap();
        let apply = PatchParams::apply("windfall-tests").force();
        api.patch(name, &apply, &Patch::Apply(object)).await.unwrap()
    }

    /// Deletes a namespace with all that is in it; nobody waits for the end. Policies wait for a controller before they go,
    /// and there may be none any more.
    pub(crate) async fn delete_namespace(&self, name: &str) {
        let policies = self.api(&super::controller::policies(), Some(name));
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let all = policies.list(&ListParams::default()).await.map(|list| list.items);
        for policy in all.unwrap_or_default() {
            let policy = policy.metadata.name.unwrap_or_default();
            let _ = policies.delete(&policy, &DeleteParams::default()).await;
            let _ = policies.patch(&policy, &PatchParams::default(), &free).await;
        }
        let api = self.api(&resource("", "v1", "Namespace", "namespaces"), None);
        let _ = api.delete(name, &DeleteParams::background()).await;
    }

    pub(crate) fn api(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// A fresh namespace for one test.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.apply(&resource("", "v1", "Namespace", "namespaces"), &object).await;
        let account =
            self.api(&resource("", "v1", "ServiceAccount", "serviceaccounts"), Some(name));
        until(30, "the namespace has its service account", async || {
            account.get_opt("default").await.ok().flatten()
        })
        .await;
        name.to_owned()
    }

    pub(crate) async fn pods(&self, namespace: &str, label: &str) -> Vec<Pod> {
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let list = api.list(&ListParams::default().labels(label)).await.unwrap();
        list.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
    }

    /// Pods of a Knative Service.
    pub(crate) async fn pods_of_service(&self, namespace: &str, name: &str) -> Vec<Pod> {
        self.pods(namespace, &format!("serving.knative.dev/service={name}")).await
    }

    /// Creates or changes a Knative Service and waits until it is ready.
    pub(crate) async fn knative_ready(&self, object: &Value) {
        let services = knative_services();
        let made = self.apply(&services, object).await;
        let api = self.api(&services, object["metadata"]["namespace"].as_str());
        let name = made.metadata.name.unwrap();
        until(90, "the Knative Service is ready", async || {
            condition(&api.get(&name).await.ok()?.data, "Ready").then_some(())
        })
        .await;
    }

    /// The one pod with this label, once it is ready.
    pub(crate) async fn ready_pod(&self, namespace: &str, label: &str) -> Pod {
        until(60, "a pod is ready", async || {
            self.pods(namespace, label).await.into_iter().find(is_ready)
        })
        .await
    }

    /// A Knative Service of the function under test, once it is ready.
    pub(crate) async fn knative_service(&self, namespace: &str, name: &str, annotations: Value) {
        let resources = json!({
            "requests": {"cpu": "20m", "memory": "32Mi"},
            "limits": {"cpu": "500m", "memory": "128Mi"}});
        self.knative_ready(&knative_object(namespace, name, &annotations, &resources)).await;
    }
}

/// A Knative Service of the function under test. `timeoutSeconds` is also the time that a pod may drain.
pub(crate) fn knative_object(
    namespace: &str,
    name: &str,
    annotations: &Value,
    resources: &Value,
) -> Value {
    json!({
        "apiVersion": "serving.knative.dev/v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {
            "metadata": {"annotations": annotations},
            "spec": {
                "timeoutSeconds": 5, "responseStartTimeoutSeconds": 5,
                "containers": [{
                    "image": image(), "ports": [{"containerPort": 8080}], "resources": resources}]}}}
    })
}

/// What a test cannot do without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Objects,
    Pods,
    Knative,
}

pub(crate) fn knative_services() -> ApiResource {
    resource("serving.knative.dev", "v1", "Service", "services")
}

pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The image of the function under test.
pub(crate) fn image() -> String {
    std::env::var("WINDFALL_KUBERNETES_IMAGE").unwrap_or_else(|_| "dev.local/function:1".to_owned())
}

/// Sets the number of pods of a workload, as its user would.
pub(crate) async fn scale(
    bed: &Bed,
    kind: &ApiResource,
    namespace: &str,
    name: &str,
    replicas: u32,
) {
    let patch = json!({"spec": {"replicas": replicas}});
    let api = bed.api(kind, Some(namespace));
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

pub(crate) fn condition(object: &Value, name: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|one| one["type"] == name && one["status"] == "True"))
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// Sends `rate` requests a second for so long to a Knative Service, from a thread of its own.
pub(crate) async fn load(
    namespace: &str,
    service: &str,
    query: &str,
    rate: f64,
    seconds: u64,
) -> Measured {
    let host = format!("Host: {service}.{namespace}.example.com");
    send(Target::url(&format!("{EDGE}/?{query}"), &[host], None).unwrap(), rate, seconds).await
}

/// Sends these calls to a Knative Service.
pub(crate) async fn load_as(
    namespace: &str,
    service: &str,
    query: &str,
    schedule: Schedule,
) -> Measured {
    let host = format!("Host: {service}.{namespace}.example.com");
    play(Target::url(&format!("{EDGE}/?{query}"), &[host], None).unwrap(), schedule).await
}

/// The same to any address, until this is dropped.
pub(crate) struct Traffic(Arc<AtomicBool>);

impl Traffic {
    pub(crate) fn start(url: &str, rate: f64, seconds: u64) -> Self {
        let target = Target::url(url, &[], None).unwrap();
        let stop = Arc::<AtomicBool>::default();
        let stops = Arc::clone(&stop);
        let schedule = constant(rate, seconds);
        let send = move || windfall_load::run(&schedule, &[target], &Generator::default(), &stops);
        tokio::task::spawn_blocking(send);
        Self(stop)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn send(target: Target, rate: f64, seconds: u64) -> Measured {
    play(target, constant(rate, seconds)).await
}

fn constant(rate: f64, seconds: u64) -> Schedule {
    let length = windfall_core::Duration::from_secs(seconds);
    Schedule::generate(Shape::Constant, rate, length, 1, Seed::new(1)).unwrap()
}

async fn play(target: Target, schedule: Schedule) -> Measured {
    let send = move || {
        windfall_load::run(&schedule, &[target], &Generator::default(), &AtomicBool::new(false))
    };
    tokio::task::spawn_blocking(send).await.unwrap().unwrap()
}

/// Asks ten times a second until there is an answer.
pub(crate) async fn until<T>(seconds: u64, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A program or file that `build.sh` made; nothing where the cluster is somebody else's.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("WINDFALL_KUBERNETES_BUILD")?).join(name);
    path.exists().then_some(path)
}

/// Runs a program to its end; what it printed.
pub(crate) async fn run(program: PathBuf, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let run = move || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let output = Command::new(&program).args(&words).current_dir(folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} {words:?}: {said}{problem}", program.display());
        said
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Writes a measurement for the summary of `cargo xtask kubernetes`.
pub(crate) fn record(name: &str, value: &str) {
    eprintln!("{name} {value}");
    let Some(path) = std::env::var_os(MEASURED) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    writeln!(file.unwrap(), "{name} {value}").unwrap();
}

fn skip(test: &str, why: &str) {
    record("skipped", &format!("{test}: {why}"));
}
