//! How the controller fares on a large cluster: objects are created on a given API server, marked as running, measured
//! by a source that makes numbers up, and passed over. No pod runs: their scheduler does not exist.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Error, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::metrics::{Budget, MetricsSource, Reading, SourceError, Wanted};
use crate::resource_policy::ResourcePolicy;

/// Where the objects are.
pub const NAMESPACE: &str = "windfall-bench";
const AT_ONCE: usize = 32;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Policies.
    pub policies: usize,
    /// Pods.
    pub pods: usize,
    /// Passes that were measured.
    pub passes: usize,
    /// Longest pass, seconds.
    pub longest_pass_seconds: f64,
    /// Median pass, seconds.
    pub median_pass_seconds: f64,
    /// Longest time in a pass that waited for nobody, seconds.
    pub longest_deciding_seconds: f64,
    /// Most requests for measurements in a pass.
    pub most_reads: u64,
    /// Most writes in a pass.
    pub most_writes: u64,
    /// Writes in the last pass, when nothing is left to say.
    pub last_writes: u64,
    /// Resident memory after the last pass, MB.
    pub resident_mb: f64,
    /// The most resident memory there was, MB.
    pub peak_resident_mb: f64,
}

/// Usage of any pod, made up from its name and the time.
pub struct MadeUp;

impl MetricsSource for MadeUp {
    fn name(&self) -> &'static str {
        "made-up"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        Box::pin(async move {
            let mut readings = Vec::new();
            if !budget.take() {
                return Ok(readings);
            }
            for one in wanted {
                for pod in &one.pods {
                    let spread = pod.key.name.bytes().fold(0_u32, |sum, byte| {
                        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
                    }) % 50;
                    let (pod, container) = (pod.key.clone(), one.container.clone());
                    readings.push(Reading::CpuCores(
                        pod.clone(),
                        container.clone(),
                        0.02 + f64::from(spread) * 1e-3,
                    ));
                    readings.push(Reading::MemoryBytes(
                        pod,
                        container,
                        4e7 + f64::from(spread) * 1e5,
                    ));
                }
            }
            Ok(readings)
        })
    }
}

fn deployment(place: usize, replicas: usize) -> serde_json::Value {
    let name = format!("bench-{place:05}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "schedulerName": "nobody",
                    "containers": [{"name": "app", "image": "none", "resources": {
                        "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"},
                    }}],
                },
            },
        },
    })
}

fn policy(place: usize, mode: &str) -> serde_json::Value {
    let name = format!("bench-{place:05}");
    json!({
        "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"targetRef": {"kind": "Deployment", "name": name}, "mode": mode},
    })
}

async fn apply<K>(api: &Api<K>, objects: Vec<serde_json::Value>) -> Result<(), Error>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let params = PatchParams::apply("windfall-bench").force();
    let params = &params;
    let requests = objects.into_iter().map(|object| async move {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        api.patch(&name, params, &Patch::Apply(object)).await.map(|_| ())
    });
    let requests: Vec<_> = requests.collect();
    let mut sent = futures_util::stream::iter(requests).buffer_unordered(AT_ONCE);
    while let Some(outcome) = sent.next().await {
        outcome?;
    }
    Ok(())
}

/// Creates the objects and waits until all pods exist and are marked as running.
pub async fn create(
    client: &Client,
    policies: usize,
    pods: usize,
    mode: &str,
    progress: &dyn Fn(String),
) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    apply(
        &namespaces,
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})],
    )
    .await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let of_each = |place: usize| pods / policies + usize::from(place < pods % policies);
    apply(&deployments, (0..policies).map(|place| deployment(place, of_each(place))).collect())
        .await?;
    let all: Api<ResourcePolicy> = Api::namespaced(client.clone(), NAMESPACE);
    apply(&all, (0..policies).map(|place| policy(place, mode)).collect()).await?;
    progress(format!("{policies} policies and Deployments created"));
    let running = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let begin = Instant::now();
    let mut marked = BTreeMap::new();
    while marked.len() < pods {
        let new: Vec<String> =
            names(&running).await?.into_iter().filter(|name| !marked.contains_key(name)).collect();
        mark_running(&running, &new).await?;
        marked.extend(new.into_iter().map(|name| (name, ())));
        progress(format!("{} of {pods} pods after {} s", marked.len(), begin.elapsed().as_secs()));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn names(pods: &Api<Pod>) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(500);
    loop {
        let page = pods.list_metadata(&params).await?;
        names.extend(page.items.iter().map(|pod| pod.name_any()));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(names),
        }
    }
}

async fn mark_running(pods: &Api<Pod>, names: &[String]) -> Result<(), Error> {
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let status = &status;
    let requests = names.iter().map(|name| async move {
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.map(|_| ())
    });
    let requests: Vec<_> = requests.collect();
    let mut sent = futures_util::stream::iter(requests).buffer_unordered(AT_ONCE);
    while let Some(outcome) = sent.next().await {
        match outcome {
            // A pod that was replaced meanwhile is listed again.
            Err(Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            other => other?,
        }
    }
    Ok(())
}

/// Removes everything that was created.
pub async fn remove(client: &Client) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let policies: Api<ResourcePolicy> = Api::namespaced(client.clone(), NAMESPACE);
    // Finalizers would keep the namespace from going while no controller runs.
    let params = PostParams::default();
    for mut policy in policies.list(&ListParams::default()).await?.items {
        if policy.metadata.finalizers.take().is_some() {
            policies.replace(&policy.name_any(), &params, &policy).await?;
        }
    }
    namespaces.delete(NAMESPACE, &DeleteParams::background()).await?;
    Ok(())
}

/// Resident memory of this process now and at its most, MB.
pub fn resident_mb() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0)
    };
    (kb("VmRSS:") / 1024.0, kb("VmHWM:") / 1024.0)
}
