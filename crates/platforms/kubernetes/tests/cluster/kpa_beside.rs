//! Our port of Knative's autoscaler beside the real one: the same averages and the same number of ready pods must give
//! the same number of pods, decision by decision.
//!
//! The real one publishes what each decision saw and wanted. The ready pods it counted are not published, but follow
//! from the excess burst capacity: with total 10 and burst capacity 211, `floor(10 ready - 211 - panic)` is -177.0 for
//! 4 ready pods and 6 requests in flight.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use windfall_autoscalers::kpa::{Averages, ClusterSettings, Decider, RevisionSettings};

use super::bed::{Bed, Needs, load, record};

const TOTAL: f64 = 10.0;
const BURST: f64 = 211.0;

/// One decision of the real autoscaler.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Published {
    stable: f64,
    panic: f64,
    desired: f64,
    excess: f64,
}

impl Published {
    fn read(page: &str, revision: &str) -> Option<Self> {
        let own = format!("kn_revision_name=\"{revision}\"");
        let values: BTreeMap<&str, f64> = page
            .lines()
            .filter(|line| line.contains(&own))
            .filter_map(|line| {
                Some((line.split('{').next()?, line.rsplit(' ').next()?.parse().ok()?))
            })
            .collect();
        let value = |name: &str| values.get(name).copied();
        Some(Self {
            stable: value("kn_revision_concurrency_stable")?,
            panic: value("kn_revision_concurrency_panic")?,
            desired: value("kn_revision_pods_desired")?,
            excess: value("kn_revision_capacity_excess")?,
        })
    }

    fn ready(&self) -> u32 {
        ((self.excess + BURST + self.panic) / TOTAL).ceil().max(0.0) as u32
    }
}

async fn page(address: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect((address, 9090)).await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: autoscaler\r\n\r\n").await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn our_kpa_wants_what_the_real_one_wants_at_every_decision() {
    let Some(bed) = Bed::with("kpa beside", Needs::Knative).await else { return };
    let namespace = bed.namespace("windfall-kpa").await;
    let annotations =
        json!({"autoscaling.knative.dev/window": "6s", "autoscaling.knative.dev/target": "10"});
    bed.knative_service(&namespace, "beside", annotations).await;
    let autoscaler = bed.pods("knative-serving", "app=autoscaler").await;
    let address = autoscaler[0].status.as_ref().unwrap().pod_ip.clone().unwrap();
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let watch = async {
        let mut seen: Vec<(u64, Published)> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let text = page(&address).await.unwrap_or_default();
            if let Some(published) = Published::read(&text, "beside-00001")
                && seen.last().is_none_or(|(_, last)| *last != published)
            {
                seen.push((began.elapsed().as_secs(), published));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        seen
    };
    // Up, higher, and down again: 20, 60 and 10 requests in flight.
    let drive = async {
        for (rate, seconds) in [(20.0, 12), (60.0, 12), (10.0, 14)] {
            load(&namespace, "beside", "sleep=1000", rate, seconds).await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let (seen, ()) = tokio::join!(watch, drive);
    let cluster = ClusterSettings::default();
    let revision = RevisionSettings {
        target: Some(10.0),
        window_seconds: Some(6),
        ..RevisionSettings::default()
    };
    let mut ours =
        Decider::new(cluster.decider(&revision), 0, seen.first().map_or(0, |(_, one)| one.ready()));
    let mut different = Vec::new();
    for (second, published) in &seen {
        let averages = Averages { stable: published.stable, panic: published.panic };
        let scale = ours.scale(second + 1, published.ready(), Some(averages)).unwrap();
        if f64::from(scale.desired) != published.desired
            || f64::from(scale.excess_burst_capacity) != published.excess
        {
            different.push(format!("second {second}: {published:?}, ours {scale:?}"));
        }
    }
    record("kpa_decisions", &seen.len().to_string());
    record("kpa_different", &different.len().to_string());
    assert!(seen.len() >= 10, "only {} decisions were seen", seen.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    bed.delete_namespace(&namespace).await;
}
