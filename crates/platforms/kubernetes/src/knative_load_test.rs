//! Load tests of a Knative Service with a given concurrency limit: what `windfall reproduce knative-concurrency
//! --platform kubernetes` runs, one after the other.
//!
//! ```text
//!   limit ─► new Revision ─► ready ─► open-loop HTTP load ─► latencies, losses
//!                                        └─ twice a second: pods, CPU and memory from the kubelet
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windfall_core::Seed;
use windfall_load::{CallResult, Generator, LoadError, Measured, Schedule, Shape, Target};

const SERVICE: &str = "autoscale";
const FIELD_MANAGER: &str = "windfall-load-test";
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// A Revision that is not ready after this never will be.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// One load test.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LoadTest {
    /// `containerConcurrency`.
    pub limit: u32,
    /// MB that each request allocates.
    pub bloat: u32,
    /// Sieve that each request runs.
    pub prime: u32,
    /// Milliseconds that each request sleeps.
    pub sleep: u32,
    /// Requests per second.
    pub rate: f64,
    /// For so long.
    pub seconds: f64,
    /// Pods at most.
    pub pods: u32,
    /// CPU limit of a pod, millicores.
    pub cpu: u32,
    /// Memory limit of a pod, MiB.
    pub memory: u32,
}

/// What it measured, with the names that the simulated load test has.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadTestReport {
    requests: u32,
    succeeded: u32,
    refused: u32,
    killed: u32,
    timed_out: u32,
    throughput: f64,
    mean_ms: f64,
    p95_ms: f64,
    success: f64,
    mean_pods: f64,
    cpu_utilisation: f64,
    memory_utilisation: f64,
    idle_memory_utilisation: f64,
    in_service_per_pod: f64,
    took: windfall_core::Duration,
}

/// Why a load test was given up.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// The API server refused.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// The load cannot be sent.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The Revision did not start.
    #[error("the Revision with containerConcurrency {limit} was not ready within {} s: {why}", READY_WITHIN.as_secs())]
    NotReady {
        /// The limit.
        limit: u32,
        /// What the service reports.
        why: String,
    },
    /// The thread that sends ended.
    #[error("the load generator ended early: {0}")]
    Generator(#[from] tokio::task::JoinError),
}

/// Where the tests take place.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The namespace of the service.
    pub namespace: String,
    /// The image with the function: `bloat`, `prime` and `sleep` in the query.
    pub image: String,
    /// The address of the ingress.
    pub ingress: String,
    /// The domain of Knative's routes.
    pub domain: String,
}

/// Sums of what was sampled.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: f64,
    pods: f64,
    cores: f64,
    mib: f64,
    least_mib: f64,
}

/// Makes the Revision, waits for it, sends the load and reports.
pub async fn run(
    client: &Client,
    ground: &Ground,
    test: &LoadTest,
) -> Result<LoadTestReport, LoadTestError> {
    let began = Instant::now();
    let revision = roll_out(client, ground, test).await?;
    let over = AtomicBool::new(false);
    let sampling = sample(client, ground, &revision, &over);
    let sending = async {
        let sent = send(ground, test).await;
        over.store(true, Ordering::Relaxed);
        sent
    };
    let (sums, measured) = tokio::join!(sampling, sending);
    Ok(report(test, &measured?, sums, began.elapsed()))
}

fn services() -> ApiResource {
    ApiResource {
        group: "serving.knative.dev".to_owned(),
        version: "v1".to_owned(),
        api_version: "serving.knative.dev/v1".to_owned(),
        kind: "Service".to_owned(),
        plural: "services".to_owned(),
    }
}

fn manifest(ground: &Ground, test: &LoadTest) -> Value {
    let Ground { namespace, image, .. } = ground;
    let (cpu, memory) = (format!("{}m", test.cpu), format!("{}Mi", test.memory));
    json!({
        "apiVersion": "serving.knative.dev/v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": namespace},
        "spec": {"template": {
            "metadata": {"annotations": {"autoscaling.knative.dev/max-scale": test.pods.to_string()}},
            "spec": {
                "containerConcurrency": test.limit,
                // Also the time that a pod may drain; old Revisions would crowd the node otherwise.
                "timeoutSeconds": 30, "responseStartTimeoutSeconds": 30,
                "containers": [{
                    "image": image, "ports": [{"containerPort": 8080}],
                    "resources": {
                        "requests": {"cpu": "20m", "memory": "32Mi"},
                        "limits": {"cpu": cpu, "memory": memory}}}]}}}
    })
}

/// The name of the Revision that has this limit, once all traffic goes there.
async fn roll_out(
    client: &Client,
    ground: &Ground,
    test: &LoadTest,
) -> Result<String, LoadTestError> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &ground.namespace, &services());
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    let made = api.patch(SERVICE, &apply, &Patch::Apply(&manifest(ground, test))).await?;
    let began = Instant::now();
    loop {
        let object = api.get(SERVICE).await?;
        let status = &object.data["status"];
        let is_current = status["observedGeneration"].as_i64() >= made.metadata.generation;
        let ready = status["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
        let is_ready = ready.is_some_and(|one| one["status"] == "True");
        let created = status["latestCreatedRevisionName"].as_str();
        if is_current
            && is_ready
            && created.is_some()
            && created == status["latestReadyRevisionName"].as_str()
        {
            return Ok(created.unwrap_or_default().to_owned());
        }
        if began.elapsed() > READY_WITHIN {
            let why =
                ready.map_or_else(|| "no status".to_owned(), |one| one["message"].to_string());
            return Err(LoadTestError::NotReady { limit: test.limit, why });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn send(ground: &Ground, test: &LoadTest) -> Result<Measured, LoadTestError> {
    let LoadTest { bloat, prime, sleep, .. } = test;
    let url = format!(
        "{}/?bloat={bloat}&prime={prime}&sleep={sleep}",
        ground.ingress.trim_end_matches('/')
    );
    let host = format!("Host: {SERVICE}.{}.{}", ground.namespace, ground.domain);
    let target = Target::url(&url, &[host], None)?;
    let length = windfall_core::Duration::from_secs_f64(test.seconds);
    let schedule = Schedule::generate(Shape::Constant, test.rate, length, 1, Seed::new(1))?;
    let generator =
        Generator { timeout: windfall_core::Duration::from_secs(30), ..Generator::default() };
    let sending =
        move || windfall_load::run(&schedule, &[target], &generator, &AtomicBool::new(false));
    Ok(tokio::task::spawn_blocking(sending).await??)
}

/// Looks at pods and their usage until the load is over. A sample that fails is left out.
async fn sample(client: &Client, ground: &Ground, revision: &str, over: &AtomicBool) -> Sums {
    let mut sums = Sums { least_mib: f64::INFINITY, ..Sums::default() };
    while !over.load(Ordering::Relaxed) {
        if let Ok(seen) = sample_once(client, ground, revision).await {
            sums.samples += 1.0;
            sums.pods += seen.pods;
            sums.cores += seen.cores;
            sums.mib += seen.mib;
            sums.least_mib = sums.least_mib.min(seen.least_mib);
        }
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    sums
}

async fn sample_once(
    client: &Client,
    ground: &Ground,
    revision: &str,
) -> Result<Sums, kube::Error> {
    let label = format!("serving.knative.dev/revision={revision}");
    let pods = Api::<Pod>::namespaced(client.clone(), &ground.namespace);
    let pods = pods.list(&ListParams::default().labels(&label).match_any()).await?;
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
    };
    let names: Vec<String> =
        pods.items.iter().filter(is_ready).map(ResourceExt::name_any).collect();
    let mut sums = Sums { pods: names.len() as f64, least_mib: f64::INFINITY, ..Sums::default() };
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default().match_any()).await?;
    for node in nodes.items {
        let path = format!("/api/v1/nodes/{}/proxy/stats/summary", node.name_any());
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        add_usage(&client.request::<Value>(request).await?, &names, &mut sums);
    }
    Ok(sums)
}

/// Adds the use of the user's containers of these pods.
fn add_usage(summary: &Value, names: &[String], sums: &mut Sums) {
    let pods = summary["pods"].as_array().into_iter().flatten();
    for pod in pods.filter(|pod| names.iter().any(|name| pod["podRef"]["name"] == *name)) {
        let containers = pod["containers"].as_array().into_iter().flatten();
        for container in containers.filter(|one| one["name"] == "user-container") {
            let mib =
                container["memory"]["workingSetBytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
            sums.cores += container["cpu"]["usageNanoCores"].as_f64().unwrap_or(0.0) / 1e9;
            sums.mib += mib;
            sums.least_mib = sums.least_mib.min(mib);
        }
    }
}

fn report(test: &LoadTest, measured: &Measured, sums: Sums, took: Duration) -> LoadTestReport {
    let mut counted = LoadTestReport::default();
    let mut latencies = Vec::new();
    for sample in &measured.samples {
        counted.requests += 1;
        latencies.push(sample.latency().as_millis_f64());
        match &sample.result {
            CallResult::Status(200) => counted.succeeded += 1,
            CallResult::Status(429 | 503) => counted.refused += 1,
            // The data path answers for a container that the kernel killed.
            CallResult::Status(_) => counted.killed += 1,
            CallResult::Failed(_) => counted.timed_out += 1,
        }
    }
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len().max(1) as f64;
    let (cpu, memory) = (f64::from(test.cpu) / 1e3, f64::from(test.memory));
    let pods = sums.pods.max(1e-9);
    let idle = if sums.least_mib.is_finite() { sums.least_mib / memory } else { 0.0 };
    let in_flight: f64 =
        latencies.iter().sum::<f64>() / 1e3 / measured.total.as_secs_f64().max(1e-9);
    let mean_pods = sums.pods / sums.samples.max(1.0);
    LoadTestReport {
        throughput: f64::from(counted.succeeded) / measured.total.as_secs_f64().max(1e-9),
        mean_ms: latencies.iter().sum::<f64>() / count,
        p95_ms: windfall_core::statistics::nearest_rank(&latencies, 0.95).unwrap_or(0.0),
        success: f64::from(counted.succeeded) / count,
        mean_pods,
        cpu_utilisation: (sums.cores / pods / cpu).min(1.0),
        memory_utilisation: (sums.mib / pods / memory).min(1.0),
        idle_memory_utilisation: idle.min(1.0),
        in_service_per_pod: (in_flight / mean_pods.max(1.0)).min(f64::from(test.limit)),
        took: windfall_core::Duration::from_secs_f64(took.as_secs_f64()),
        ..counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_containers_of_the_revision_count() {
        let container = |name: &str, cores: f64, bytes: u64| json!({"name": name, "cpu": {"usageNanoCores": cores * 1e9}, "memory": {"workingSetBytes": bytes}});
        let summary = json!({"pods": [
            {"podRef": {"name": "a"}, "containers": [container("user-container", 0.1, 64 << 20), container("queue-proxy", 9.0, 1)]},
            {"podRef": {"name": "b"}, "containers": [container("user-container", 0.2, 32 << 20)]},
            {"podRef": {"name": "other"}, "containers": [container("user-container", 5.0, 1)]}]});
        let mut sums = Sums { least_mib: f64::INFINITY, ..Sums::default() };
        add_usage(&summary, &["a".to_owned(), "b".to_owned()], &mut sums);
        assert!((sums.cores - 0.3).abs() < 1e-9);
        assert_eq!((sums.mib, sums.least_mib), (96.0, 32.0));
    }
}
