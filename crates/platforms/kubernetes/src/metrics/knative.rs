//! Knative's own pages, in both generations of names: OpenTelemetry's since 1.19, OpenCensus' before.
//!
//! | What | New name | Older name |
//! |---|---|---|
//! | durations of requests, queue-proxy :9091 | `kn_serving_invocation_duration_seconds` | `revision_app_request_latencies`, ms |
//! | requests in flight, autoscaler :9090 | `kn_revision_concurrency_stable` | `autoscaler_stable_request_concurrency` |
//! | requests waiting, activator :9090 | `kn_revision_request_queued` | `activator_request_concurrency` |

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;

use super::budget::Cursor;
use super::exposition::{self, Line};
use super::http::Pages;
use super::store::Histogram;
use super::{Budget, MetricsSource, Reading, SourceError, Wanted, WantedPod};
use crate::cluster::Key;
use crate::world::World;

/// Pods asked at the same time.
const AT_ONCE: usize = 16;
/// Pods of one Revision that are asked per pass: with ten the mean of equal pods is known well enough.
const SAMPLED_PODS: usize = 10;

/// Reads queue-proxies, Knative's autoscaler and its activators.
pub struct Knative {
    pages: Pages,
    pods: Cursor,
    /// Where pods of Knative itself are found.
    world: Arc<World>,
}

impl Knative {
    /// Reads the pages of Knative's components, found in the index, and those of queue-proxies.
    pub fn new(world: Arc<World>) -> Self {
        Self { pages: Pages::default(), pods: Cursor::default(), world }
    }

    /// The pages of the autoscaler and the activators.
    fn components(&self) -> Vec<String> {
        let cluster = self.world.cluster();
        let addresses = ["autoscaler", "activator"].into_iter().flat_map(|name| {
            let pods = cluster.pods_of(&Key::new("knative-serving", name)).into_iter();
            pods.filter_map(|(_, pod)| pod.address.clone()).collect::<Vec<_>>()
        });
        addresses.map(|address| format!("http://{address}:9090/metrics")).collect()
    }

    async fn queue_proxy(&self, pod: &WantedPod) -> Result<Option<Reading>, SourceError> {
        let Some(address) = &pod.address else { return Ok(None) };
        let page = self.pages.get(&format!("http://{address}:9091/metrics")).await?;
        Ok(durations(&page).map(|found| Reading::Requests(pod.key.clone(), found)))
    }
}

impl MetricsSource for Knative {
    fn name(&self) -> &'static str {
        "knative"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        Box::pin(async move {
            let of_knative = wanted.iter().filter(|one| one.revision.is_some());
            let pods: Vec<&WantedPod> =
                of_knative.flat_map(|one| one.pods.iter().take(SAMPLED_PODS)).collect();
            let mut found = Vec::new();
            if wanted.iter().all(|one| one.revision.is_none()) {
                return Ok(found);
            }
            for address in self.components() {
                if budget.take()
                    && let Ok(page) = self.pages.get(&address).await
                {
                    found.extend(revisions(&page));
                }
            }
            let chosen: Vec<&WantedPod> =
                self.pods.walk(pods.len(), budget).map(|place| pods[place]).collect();
            let asked: Vec<_> = chosen.into_iter().map(|pod| self.queue_proxy(pod)).collect();
            let asked = futures_util::stream::iter(asked);
            let answers: Vec<_> = asked.buffer_unordered(AT_ONCE).collect().await;
            // A pod that has just ended does not answer; its policy has no fresh requests then, which is noticed.
            found.extend(answers.into_iter().filter_map(|answer| answer.ok().flatten()));
            Ok(found)
        })
    }
}

/// Durations of all requests on a queue-proxy's page.
pub fn durations(page: &str) -> Option<Histogram> {
    const NEW: &str = "kn_serving_invocation_duration_seconds";
    const OLD: &str = "revision_app_request_latencies";
    let mut found = Histogram::default();
    let mut is_there = false;
    for line in exposition::lines(page) {
        let (part, unit) = match line.name.strip_prefix(NEW) {
            Some(part) => (part, 1.0),
            None => match line.name.strip_prefix(OLD) {
                Some(part) => (part, 1e-3),
                None => continue,
            },
        };
        if !line.value.is_finite() {
            continue;
        }
        is_there = true;
        match part {
            "_count" => found.count += line.value,
            "_sum" => found.sum += line.value * unit,
            "_bucket" => {
                if let Some(bound) = line.label("le").and_then(|bound| bound.parse::<f64>().ok()) {
                    found.put_bucket(bound * unit, line.value);
                }
            }
            _ => {}
        }
    }
    is_there.then_some(found)
}

/// Concurrency and waiting requests of Revisions, from the page of the autoscaler or an activator.
pub fn revisions(page: &str) -> Vec<Reading> {
    let mut concurrency: BTreeMap<Key, f64> = BTreeMap::new();
    let mut queued: BTreeMap<Key, f64> = BTreeMap::new();
    for line in exposition::lines(page) {
        let table = match line.name {
            "kn_revision_concurrency_stable" | "autoscaler_stable_request_concurrency" => {
                &mut concurrency
            }
            "kn_revision_request_queued" | "activator_request_concurrency" => &mut queued,
            _ => continue,
        };
        if let Some(revision) = revision_of(&line) {
            *table.entry(revision).or_default() += line.value;
        }
    }
    let concurrency = concurrency.into_iter().map(|(key, value)| Reading::Concurrency(key, value));
    let queued = queued.into_iter().map(|(key, value)| Reading::Queued(key, value));
    concurrency.chain(queued).collect()
}

fn revision_of(line: &Line<'_>) -> Option<Key> {
    let namespace = line.any_label(&["k8s_namespace_name", "namespace_name"])?;
    let name = line.any_label(&["kn_revision_name", "revision_name"])?;
    Some(Key::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_of_durations_are_read() {
        let new = "kn_serving_invocation_duration_seconds_bucket{code=\"200\",le=\"0.1\"} 3\n\
            kn_serving_invocation_duration_seconds_bucket{code=\"500\",le=\"0.1\"} 1\n\
            kn_serving_invocation_duration_seconds_bucket{code=\"200\",le=\"+Inf\"} 4\n\
            kn_serving_invocation_duration_seconds_sum{code=\"200\"} 0.5\n\
            kn_serving_invocation_duration_seconds_count{code=\"200\"} 4\n";
        let found = durations(new).unwrap();
        assert_eq!((found.count, found.sum, found.buckets[0]), (4.0, 0.5, (0.1, 4.0)));
        let old = "revision_app_request_latencies_bucket{le=\"100\"} 2\n\
            revision_app_request_latencies_sum 150\nrevision_app_request_latencies_count 2\n";
        let found = durations(old).unwrap();
        assert_eq!((found.count, found.sum, found.buckets[0]), (2.0, 0.15, (0.1, 2.0)));
        assert_eq!(durations("go_goroutines 7\n"), None);
    }

    #[test]
    fn both_generations_of_concurrency_are_read() {
        let key = Key::new("n", "hello-00001");
        let new = "kn_revision_concurrency_stable{k8s_namespace_name=\"n\",kn_revision_name=\"hello-00001\"} 7.5\n\
            kn_revision_request_queued{k8s_namespace_name=\"n\",kn_revision_name=\"hello-00001\"} 2\n";
        assert_eq!(
            revisions(new),
            [Reading::Concurrency(key.clone(), 7.5), Reading::Queued(key.clone(), 2.0)]
        );
        let old = "autoscaler_stable_request_concurrency{namespace_name=\"n\",revision_name=\"hello-00001\"} 3\n";
        assert_eq!(revisions(old), [Reading::Concurrency(key, 3.0)]);
    }
}
