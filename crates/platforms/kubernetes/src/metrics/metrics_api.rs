//! The resource metrics API, `metrics.k8s.io`: what `kubectl top` shows. One list has all pods of the cluster.

use futures_util::future::BoxFuture;
use kube::Client;
use serde::Deserialize;

use super::{Budget, MetricsSource, Reading, SourceError, Wanted};
use crate::cluster::Key;
use crate::size;

/// Reads `metrics.k8s.io`.
pub struct MetricsApi {
    client: Client,
}

impl MetricsApi {
    /// Reads it through `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[derive(Deserialize)]
struct PodMetricsList {
    items: Vec<PodMetrics>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Metadata,
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    name: String,
    usage: Usage,
}

#[derive(Deserialize)]
struct Usage {
    cpu: String,
    memory: String,
}

/// The readings of a list of pod metrics.
pub fn readings(list: &str) -> Result<Vec<Reading>, serde_json::Error> {
    let list: PodMetricsList = serde_json::from_str(list)?;
    let mut readings = Vec::new();
    for PodMetrics { metadata, containers } in list.items {
        let pod = Key::new(metadata.namespace, metadata.name);
        for ContainerMetrics { name, usage } in containers {
            // An idle container uses `0`, which is a measurement like any other.
            let cores = usage.cpu.parse::<windfall_autoscalers::Quantity>();
            if let Ok(cores) = cores {
                readings.push(Reading::CpuCores(pod.clone(), name.clone(), cores.approximate()));
            }
            let bytes = size::bytes(&usage.memory).unwrap_or(0);
            readings.push(Reading::MemoryBytes(pod.clone(), name, bytes as f64));
        }
    }
    Ok(readings)
}

impl MetricsSource for MetricsApi {
    fn name(&self) -> &'static str {
        "metrics.k8s.io"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        Box::pin(async move {
            if wanted.is_empty() || !budget.take() {
                return Ok(Vec::new());
            }
            let path = "/apis/metrics.k8s.io/v1beta1/pods";
            let page = api_page(&self.client, path).await?;
            readings(&page).map_err(|error| SourceError::Api {
                what: path.to_owned(),
                problem: error.to_string(),
            })
        })
    }
}

/// A page of the API server, as text.
pub(super) async fn api_page(client: &Client, path: &str) -> Result<String, SourceError> {
    let failed = |problem: String| SourceError::Api { what: path.to_owned(), problem };
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| failed(error.to_string()))?;
    let answered = tokio::time::timeout(super::http::PATIENCE, client.request_text(request)).await;
    match answered {
        Ok(page) => page.map_err(|error| failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {} s", super::http::PATIENCE.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_per_container() {
        let list = r#"{"kind":"PodMetricsList","items":[{"metadata":{"name":"p","namespace":"n"},"timestamp":"x",
            "containers":[{"name":"c","usage":{"cpu":"2500000n","memory":"10Mi"}},{"name":"d","usage":{"cpu":"0","memory":"1Ki"}}]}]}"#;
        let found = readings(list).unwrap();
        let pod = Key::new("n", "p");
        assert!(matches!(&found[0], Reading::CpuCores(key, name, cores)
            if *key == pod && name == "c" && (cores - 0.0025).abs() < 1e-12));
        assert_eq!(found[1], Reading::MemoryBytes(pod.clone(), "c".into(), 10.0 * 1_048_576.0));
        assert_eq!(found[2], Reading::CpuCores(pod, "d".into(), 0.0));
    }
}
