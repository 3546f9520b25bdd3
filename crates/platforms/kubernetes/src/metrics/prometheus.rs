//! Prometheus over its HTTP API, without hurting it.
//!
//! Usage of many pods is asked for in chunks: one instant query per chunk and metric, so a query returns at most as many
//! series as the chunk has pods. With 100 pods per chunk, 10,000 pods are 300 queries; with a budget of 30 queries per
//! pass and a pass every 15 s each pod is read every 150 s, and no pass asks more because of more pods. Queries of goals
//! are one each and come first.

use futures_util::future::BoxFuture;
use serde::Deserialize;

use super::budget::Cursor;
use super::http::Pages;
use super::{Budget, MetricsSource, Reading, SourceError, Wanted};
use crate::cluster::Key;

/// Pods whose names stand in one query.
const PODS_PER_QUERY: usize = 100;
/// Series that an answer may have at most; Prometheus 3 stops there itself.
const MOST_SERIES: usize = 1000;

/// What is asked about the pods of a chunk.
const METRICS: [(&str, Metric); 3] = [
    ("rate(container_cpu_usage_seconds_total{SELECTOR}[1m])", Metric::Cores),
    ("container_memory_working_set_bytes{SELECTOR}", Metric::Memory),
    (
        "rate(container_cpu_cfs_throttled_periods_total{SELECTOR}[1m]) / rate(container_cpu_cfs_periods_total{SELECTOR}[1m])",
        Metric::Throttled,
    ),
];

#[derive(Clone, Copy)]
enum Metric {
    Cores,
    Memory,
    Throttled,
}

/// Reads a Prometheus server.
pub struct Prometheus {
    address: String,
    pages: Pages,
    chunks: Cursor,
    goals: Cursor,
}

impl Prometheus {
    /// Reads the server at `address`, such as `http://prometheus.monitoring:9090`.
    pub fn new(address: &str) -> Self {
        Self {
            address: address.trim_end_matches('/').to_owned(),
            pages: Pages::default(),
            chunks: Cursor::default(),
            goals: Cursor::default(),
        }
    }

    async fn query(&self, query: &str) -> Result<Vec<Series>, SourceError> {
        let address = format!(
            "{}/api/v1/query?limit={MOST_SERIES}&query={}",
            self.address,
            percent_encoded(query)
        );
        let page = self.pages.get(&address).await?;
        answer(&page)
            .map_err(|problem| SourceError::Http { address: self.address.clone(), problem })
    }

    async fn ask_goals(
        &self,
        wanted: &[Wanted],
        budget: &Budget,
        found: &mut Vec<Reading>,
    ) -> Result<(), SourceError> {
        let queries: Vec<(&Key, &str, bool)> = wanted.iter().flat_map(goal_queries).collect();
        let chosen: Vec<usize> = self.goals.walk(queries.len(), budget).collect();
        for place in chosen {
            let (policy, query, is_latency) = queries[place];
            if let Some(series) = self.query(query).await?.first() {
                let reading = if is_latency { Reading::Latency } else { Reading::Rate };
                found.push(reading(policy.clone(), series.value));
            }
        }
        Ok(())
    }

    async fn ask_usage(
        &self,
        wanted: &[Wanted],
        budget: &Budget,
        found: &mut Vec<Reading>,
    ) -> Result<(), SourceError> {
        let queries = usage_queries(wanted);
        let chosen: Vec<usize> = self.chunks.walk(queries.len(), budget).collect();
        for place in chosen {
            let (query, metric) = &queries[place];
            for series in self.query(query).await? {
                found.extend(series.reading(*metric));
            }
        }
        Ok(())
    }
}

impl MetricsSource for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        Box::pin(async move {
            let mut found = Vec::new();
            self.ask_goals(wanted, budget, &mut found).await?;
            self.ask_usage(wanted, budget, &mut found).await?;
            Ok(found)
        })
    }
}

fn goal_queries(wanted: &Wanted) -> Vec<(&Key, &str, bool)> {
    let latency = wanted.goals.latency.as_ref().and_then(|goal| goal.query.as_deref());
    let rate = wanted.goals.throughput.as_ref().and_then(|goal| goal.query.as_deref());
    let one = |query, is_latency| (&wanted.policy, query, is_latency);
    latency
        .map(|query| one(query, true))
        .into_iter()
        .chain(rate.map(|query| one(query, false)))
        .collect()
}

/// One query per metric and chunk of pods of one namespace.
fn usage_queries(wanted: &[Wanted]) -> Vec<(String, Metric)> {
    let mut pods: Vec<&Key> = wanted.iter().flat_map(|one| &one.pods).map(|pod| &pod.key).collect();
    pods.sort_unstable();
    pods.dedup();
    let mut queries = Vec::new();
    for of_namespace in pods.chunk_by(|a, b| a.namespace == b.namespace) {
        for chunk in of_namespace.chunks(PODS_PER_QUERY) {
            let names: Vec<&str> = chunk.iter().map(|key| key.name.as_str()).collect();
            // Names of pods have no characters that mean anything in a regular expression but dots, which match dots.
            let selector = format!(
                "namespace=\"{}\",pod=~\"{}\",container!=\"\"",
                chunk[0].namespace,
                names.join("|")
            );
            queries.extend(
                METRICS.map(|(query, metric)| (query.replace("SELECTOR", &selector), metric)),
            );
        }
    }
    queries
}

/// One series of an answer.
struct Series {
    namespace: Option<String>,
    pod: Option<String>,
    container: Option<String>,
    value: f64,
}

impl Series {
    fn reading(self, metric: Metric) -> Option<Reading> {
        let (pod, container) = (Key::new(self.namespace?, self.pod?), self.container?);
        Some(match metric {
            Metric::Cores => Reading::CpuCores(pod, container, self.value),
            Metric::Memory => Reading::MemoryBytes(pod, container, self.value),
            Metric::Throttled => Reading::ThrottledShare(pod, container, self.value),
        })
    }
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<VectorEntry>),
    Scalar((f64, String)),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct VectorEntry {
    #[serde(default)]
    metric: Labels,
    value: (f64, String),
}

#[derive(Default, Deserialize)]
struct Labels {
    namespace: Option<String>,
    pod: Option<String>,
    container: Option<String>,
}

/// The series of an answer to an instant query.
fn answer(page: &str) -> Result<Vec<Series>, String> {
    let answer: Answer = serde_json::from_str(page).map_err(|error| error.to_string())?;
    if answer.status != "success" {
        return Err(format!("answered {}: {}", answer.status, answer.error));
    }
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("{text:?} is no number"));
    match answer.data {
        Some(Data::Vector(entries)) => entries
            .into_iter()
            .take(MOST_SERIES)
            .map(|VectorEntry { metric, value }| {
                let Labels { namespace, pod, container } = metric;
                Ok(Series { namespace, pod, container, value: number(&value.1)? })
            })
            .collect(),
        Some(Data::Scalar((_, value))) => {
            Ok(vec![Series { namespace: None, pod: None, container: None, value: number(&value)? }])
        }
        Some(Data::Other) | None => Err("the answer is neither a vector nor a scalar".to_owned()),
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Reads any bytes as an answer of Prometheus, for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn fuzz_answer(page: &str) {
    let _ = answer(page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::WantedPod;

    fn wanted(pods: usize) -> Vec<Wanted> {
        let pod = |place| WantedPod {
            key: Key::new("n", format!("p-{place:03}")),
            ..WantedPod::default()
        };
        vec![Wanted {
            policy: Key::new("n", "x"),
            pods: (0..pods).map(pod).collect(),
            ..Wanted::default()
        }]
    }

    #[test]
    fn pods_are_asked_about_in_chunks() {
        let queries = usage_queries(&wanted(250));
        assert_eq!(queries.len(), 3 * METRICS.len());
        assert!(queries[0].0.contains("namespace=\"n\",pod=~\"p-000|p-001|"));
        assert!(usage_queries(&[]).is_empty());
    }

    #[test]
    fn vectors_and_scalars_are_read() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"n","pod":"p","container":"c"},"value":[1,"0.25"]}]}}"#;
        let series = answer(vector).unwrap().remove(0);
        assert!(
            matches!(series.reading(Metric::Cores), Some(Reading::CpuCores(_, _, value)) if value == 0.25)
        );
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}"#;
        assert_eq!(answer(scalar).unwrap()[0].value, 7.0);
        let failed = r#"{"status":"error","error":"too many samples"}"#;
        assert_eq!(answer(failed).err().unwrap(), "answered error: too many samples");
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert!(answer(matrix).is_err());
    }

    #[test]
    fn queries_survive_the_address() {
        assert_eq!(percent_encoded("a{b=\"c\"}"), "a%7Bb%3D%22c%22%7D");
    }
}
