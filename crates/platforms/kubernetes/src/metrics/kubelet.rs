//! The kubelet's own pages, through the API server's proxy to the node: CPU time and memory per container, and how much
//! of it was throttled. Works on clusters without metrics-server and without Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use kube::Client;
use windfall_core::Timestamp;

use super::budget::Cursor;
use super::exposition::{self, Line};
use super::metrics_api::api_page;
use super::{Budget, MetricsSource, Reading, SourceError, Wanted};
use crate::cluster::Key;

/// Nodes asked at the same time.
const AT_ONCE: usize = 8;

/// Reads `/metrics/resource` and `/metrics/cadvisor` of every node that has a managed pod.
pub struct Kubelet {
    client: Client,
    nodes: Cursor,
}

impl Kubelet {
    /// Reads them through `client`.
    pub fn new(client: Client) -> Self {
        Self { client, nodes: Cursor::default() }
    }

    async fn node(&self, node: &str) -> Result<Vec<Reading>, SourceError> {
        let page = |name: &str| format!("/api/v1/nodes/{node}/proxy/metrics/{name}");
        let mut found = usage(&api_page(&self.client, &page("resource")).await?);
        // Throttling is worth knowing and not worth failing for: the page is large and may be switched off.
        if let Ok(text) = api_page(&self.client, &page("cadvisor")).await {
            found.extend(throttling(&text));
        }
        Ok(found)
    }
}

impl MetricsSource for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        Box::pin(async move {
            let nodes: BTreeSet<&str> = wanted
                .iter()
                .flat_map(|one| &one.pods)
                .filter_map(|pod| pod.node.as_deref())
                .collect();
            let nodes: Vec<&str> = nodes.into_iter().collect();
            let chosen: Vec<&str> =
                self.nodes.walk(nodes.len(), budget).map(|place| nodes[place]).collect();
            let asked: Vec<_> = chosen.into_iter().map(|node| self.node(node)).collect();
            let asked = futures_util::stream::iter(asked);
            let answers: Vec<_> = asked.buffer_unordered(AT_ONCE).collect().await;
            let (mut found, mut failed, total) = (Vec::new(), None, answers.len());
            let mut failures = 0;
            for answer in answers {
                match answer {
                    Ok(readings) => found.extend(readings),
                    Err(error) => {
                        failures += 1;
                        failed = Some(error);
                    }
                }
            }
            // One node that is down must not hide the others.
            match failed {
                Some(error) if failures == total => Err(error),
                _ => Ok(found),
            }
        })
    }
}

fn container_of(line: &Line<'_>) -> Option<(Key, String)> {
    let container = line.label("container").filter(|name| !name.is_empty() && *name != "POD")?;
    Some((Key::new(line.label("namespace")?, line.label("pod")?), container.to_owned()))
}

/// CPU time and memory of `/metrics/resource`.
pub fn usage(page: &str) -> Vec<Reading> {
    let reading = |line: Line<'_>| {
        let (pod, container) = container_of(&line)?;
        match line.name {
            "container_cpu_usage_seconds_total" => {
                let sampled =
                    line.millis.map(|ms| Timestamp::from_nanos(ms.saturating_mul(1_000_000)));
                Some(Reading::CpuSeconds { pod, container, seconds: line.value, sampled })
            }
            "container_memory_working_set_bytes" => {
                Some(Reading::MemoryBytes(pod, container, line.value))
            }
            _ => None,
        }
    };
    exposition::lines(page).filter_map(reading).collect()
}

/// Throttled periods of `/metrics/cadvisor`.
pub fn throttling(page: &str) -> Vec<Reading> {
    let mut periods: BTreeMap<(Key, String), (f64, f64)> = BTreeMap::new();
    for line in exposition::lines(page) {
        let is_all = match line.name {
            "container_cpu_cfs_periods_total" => true,
            "container_cpu_cfs_throttled_periods_total" => false,
            _ => continue,
        };
        let Some(container) = container_of(&line) else { continue };
        let entry = periods.entry(container).or_default();
        if is_all {
            entry.0 = line.value;
        } else {
            entry.1 = line.value;
        }
    }
    periods
        .into_iter()
        .map(|((pod, container), (periods, throttled))| Reading::Throttling {
            pod,
            container,
            periods,
            throttled,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_and_throttling_are_read_from_their_pages() {
        let resource = "container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} 1.5 1\n\
            container_memory_working_set_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} 100 1\n\
            node_cpu_usage_seconds_total 7 1\n";
        let pod = Key::new("n", "p");
        assert_eq!(
            usage(resource),
            [
                Reading::CpuSeconds {
                    pod: pod.clone(),
                    container: "c".into(),
                    seconds: 1.5,
                    sampled: Some(Timestamp::from_nanos(1_000_000)),
                },
                Reading::MemoryBytes(pod.clone(), "c".into(), 100.0)
            ]
        );
        let cadvisor = "container_cpu_cfs_periods_total{container=\"c\",namespace=\"n\",pod=\"p\"} 10\n\
            container_cpu_cfs_throttled_periods_total{container=\"c\",namespace=\"n\",pod=\"p\"} 4\n\
            container_cpu_cfs_periods_total{container=\"\",namespace=\"n\",pod=\"p\"} 99\n";
        let expected =
            Reading::Throttling { pod, container: "c".into(), periods: 10.0, throttled: 4.0 };
        assert_eq!(throttling(cadvisor), [expected]);
    }
}
