//! Requests in flight, as activators and queue-proxies report them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Pod;
use prost::Message;
use windfall_autoscalers::kpa::sample_size;

/// A page that is longer is not read.
const LONGEST_PAGE: usize = 4 << 20;
/// A pod that does not answer within this has no say in this second.
const PATIENCE: Duration = Duration::from_millis(800);
/// Pods asked at the same time.
const AT_ONCE: usize = 16;

/// The report of a queue-proxy, by the field numbers of Knative's `Stat`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Stat {
    /// The pod.
    #[prost(string, tag = "1")]
    pub(super) pod: String,
    /// Requests in flight, averaged over the last second.
    #[prost(double, tag = "2")]
    pub(super) concurrent: f64,
    /// Those of them that came through an activator, which counts them itself.
    #[prost(double, tag = "3")]
    pub(super) proxied: f64,
}

/// Reads activators and pods.
pub(super) struct Sensors {
    /// Addresses of activators.
    pub(super) activators: Vec<String>,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Default for Sensors {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(PATIENCE));
        Self {
            activators: Vec::new(),
            client: Client::builder(TokioExecutor::new()).build(connector),
        }
    }
}

impl Sensors {
    /// Requests at activators, by namespace and Revision.
    pub(super) async fn proxied(&self) -> BTreeMap<(String, String), f64> {
        let mut found = BTreeMap::new();
        for address in &self.activators {
            let page = self.get(&format!("http://{address}:9090/metrics"), "text/plain").await;
            let text =
                page.map(|page| String::from_utf8_lossy(&page).into_owned()).unwrap_or_default();
            add_proxied(&text, &mut found);
        }
        found
    }

    /// Requests that pods received directly: a sample of them is asked, and stands for all.
    pub(super) async fn direct(&self, pods: &[String]) -> f64 {
        let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let asked = sample_size(count) as usize;
        // Collected first: a closure over borrowed addresses that lives across an await keeps the future from being
        // sent to another thread.
        let pages: Vec<_> = pods.iter().take(asked).map(|address| self.stat(address)).collect();
        let stats: Vec<Option<Stat>> =
            futures_util::stream::iter(pages).buffer_unordered(AT_ONCE).collect().await;
        let answered: Vec<f64> = stats
            .into_iter()
            .flatten()
            .map(|stat| (stat.concurrent - stat.proxied).max(0.0))
            .collect();
        if answered.is_empty() {
            return 0.0;
        }
        answered.iter().sum::<f64>() * pods.len() as f64 / answered.len() as f64
    }

    async fn stat(&self, address: &str) -> Option<Stat> {
        let address = format!("http://{address}:9090/metrics");
        Stat::decode(self.get(&address, "application/protobuf").await?).ok()
    }

    async fn get(&self, address: &str, accept: &str) -> Option<Bytes> {
        let request =
            http::Request::get(address).header("accept", accept).body(Empty::new()).ok()?;
        let fetch = async {
            let answer = self.client.request(request).await.ok()?;
            let is_fine = answer.status().is_success();
            let body = Limited::new(answer.into_body(), LONGEST_PAGE).collect().await.ok()?;
            is_fine.then(|| body.to_bytes())
        };
        tokio::time::timeout(PATIENCE, fetch).await.ok().flatten()
    }
}

/// Adds what one activator reports. Names of labels are those of OpenTelemetry's exporter.
fn add_proxied(page: &str, into: &mut BTreeMap<(String, String), f64>) {
    for line in page.lines() {
        let Some(rest) = line.strip_prefix("kn_revision_request_concurrency{") else { continue };
        let Some((labels, value)) = rest.rsplit_once('}') else { continue };
        let label = |name: &str| {
            let (_, after) = labels.split_once(&format!("{name}=\""))?;
            after.split('"').next().map(str::to_owned)
        };
        let value = value.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
        let names = label("k8s_namespace_name").zip(label("kn_revision_name"));
        if let (Some(names), Some(value)) = (names, value.filter(|value| value.is_finite())) {
            *into.entry(names).or_default() += value;
        }
    }
}

/// The address of a pod that is ready and stays.
pub(super) fn address(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is_ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
    let stays = pod.metadata.deletion_timestamp.is_none();
    (is_ready && stays).then(|| status.pod_ip.clone()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activators_are_added_up() {
        let page = "# TYPE kn_revision_request_concurrency gauge\n\
            kn_revision_request_concurrency{k8s_namespace_name=\"n\",kn_revision_name=\"a-00001\",kn_service_name=\"a\"} 2.5\n\
            kn_revision_request_queued{k8s_namespace_name=\"n\",kn_revision_name=\"a-00001\"} 9\n\
            kn_revision_request_concurrency{broken 1\n";
        let mut found = BTreeMap::new();
        add_proxied(page, &mut found);
        add_proxied(page, &mut found);
        assert_eq!(found, BTreeMap::from([(("n".to_owned(), "a-00001".to_owned()), 5.0)]));
    }

    #[test]
    fn a_stat_has_the_field_numbers_of_knative() {
        let bytes: &[u8] = &[
            0x0a, 1, b'p', 0x11, 0, 0, 0, 0, 0, 0, 0x08, 0x40, 0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
        ];
        let stat = Stat::decode(bytes).unwrap();
        assert_eq!((stat.pod.as_str(), stat.concurrent, stat.proxied), ("p", 3.0, 1.0));
    }
}
