//! Our port of Knative's autoscaler beside the real one: the same averages and the same number of ready pods must give
//! the same number of pods, decision by decision.
//!
//! The real one decides every 2 s and publishes what each decision saw and wanted, one number after the other and without a
//! time. So its page is read ten times a second; when the numbers change gives the beat, and the numbers between two beats
//! are one decision. The stable window is 7 s: at 6 s the end of a panic would fall on a beat, and milliseconds would decide
//! about it. The ready pods it counted are not published, but follow from the excess burst capacity: with total 10 and burst capacity 211, `floor(10 ready - 211 - panic)` is -177.0 for
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

/// The page as it was so many milliseconds after the beginning.
type Reading = (u64, Published);

/// Milliseconds between two decisions.
const BEAT: u64 = 2000;

/// When in each beat the numbers change: the middle one of all changes, counted from the first.
fn phase(readings: &[Reading]) -> u64 {
    let changes = readings.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1].0);
    let changes: Vec<u64> = changes.collect();
    let first = changes.first().copied().unwrap_or(0);
    // Half a beat further, so that changes just before and just after the first one are not a beat apart.
    let mut apart: Vec<u64> = changes.iter().map(|at| (at - first + BEAT / 2) % BEAT).collect();
    apart.sort_unstable();
    let middle = apart.get(apart.len() / 2).copied().unwrap_or(BEAT / 2);
    (first + middle + BEAT / 2) % BEAT
}

/// One reading per decision, from the middle between two beats.
fn decisions(readings: &[Reading]) -> Vec<Published> {
    let (first, last) = (readings[0].0, readings[readings.len() - 1].0);
    let mut at = phase(readings) + BEAT / 2;
    let mut found = Vec::new();
    while at <= last {
        if at >= first {
            let nearest = readings.iter().min_by_key(|(time, _)| time.abs_diff(at)).unwrap();
            found.push(nearest.1);
        }
        at += BEAT;
    }
    found
}

async fn read_until(over: &AtomicBool, address: &str) -> Vec<Reading> {
    let (began, mut readings) = (Instant::now(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let text = page(address).await.unwrap_or_default();
        if let Some(published) = Published::read(&text, "beside-00001") {
            readings.push((began.elapsed().as_millis() as u64, published));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    readings
}

#[test]
fn decisions_are_found_by_the_beat() {
    let at = |time: u64| {
        let number = if time < 700 { 0.0 } else { ((time - 700) / BEAT + 1) as f64 };
        Published { stable: number, panic: 0.0, desired: number, excess: 0.0 }
    };
    let readings: Vec<Reading> = (0..100).map(|place| (place * 100, at(place * 100))).collect();
    let found: Vec<f64> = decisions(&readings).iter().map(|one| one.desired).collect();
    assert_eq!(found, [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn our_kpa_wants_what_the_real_one_wants_at_every_decision() {
    let Some(bed) = Bed::with("kpa beside", Needs::Knative).await else { return };
    let namespace = bed.namespace("windfall-kpa").await;
    let annotations =
        json!({"autoscaling.knative.dev/window": "7s", "autoscaling.knative.dev/target": "10"});
    bed.knative_service(&namespace, "beside", annotations).await;
    let autoscaler = bed.pods("knative-serving", "app=autoscaler").await;
    let address = autoscaler[0].status.as_ref().unwrap().pod_ip.clone().unwrap();
    let over = AtomicBool::new(false);
    // Up, higher, and down again: 20, 60 and 10 requests in flight.
    let drive = async {
        for (rate, seconds) in [(20.0, 12), (60.0, 12), (10.0, 14)] {
            load(&namespace, "beside", "sleep=1000", rate, seconds).await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let (readings, ()) = tokio::join!(read_until(&over, &address), drive);
    let seen = decisions(&readings);
    let cluster = ClusterSettings::default();
    let revision = RevisionSettings {
        target: Some(10.0),
        window_seconds: Some(7),
        ..RevisionSettings::default()
    };
    let first = seen.first().map_or(0, Published::ready);
    let mut ours = Decider::new(cluster.decider(&revision), 0, first);
    let mut different = Vec::new();
    for (place, published) in seen.iter().enumerate() {
        let second = place as u64 * BEAT / 1000 + 1;
        let averages = Averages { stable: published.stable, panic: published.panic };
        let scale = ours.scale(second, published.ready(), Some(averages)).unwrap();
        let is_same = f64::from(scale.desired) == published.desired
            && f64::from(scale.excess_burst_capacity) == published.excess;
        eprintln!(
            "second {second}: {published:?}, ours {scale:?}{}",
            if is_same { "" } else { " DIFFERENT" }
        );
        if !is_same {
            different.push(format!("second {second}: {published:?}, ours {scale:?}"));
        }
    }
    record("kpa_decisions", &seen.len().to_string());
    record("kpa_different", &different.len().to_string());
    assert!(seen.len() >= 15, "only {} decisions were seen", seen.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    bed.delete_namespace(&namespace).await;
}
