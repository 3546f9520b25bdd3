//! Not a test but a measurement, some six minutes for each of three workloads: real load on real Knative Services from zero pods to several and back,
//! under Knative's autoscaler with its defaults, with the best target for the service, and with `windfall` beside it.
//!
//! ```text
//!   WINDFALL_KUBERNETES_COMPARE=results.csv cargo xtask kubernetes --test compare
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use windfall_core::statistics::nearest_rank;
use windfall_load::{Due, Measured, Placeholders, Schedule};

use super::bed::{Bed, Needs, knative_object, knative_services, load_as, record, until};
use super::controller::{Controller, install, policies};

/// Where the table goes.
const RESULTS: &str = "WINDFALL_KUBERNETES_COMPARE";
/// Only this workload.
const ONLY: &str = "WINDFALL_KUBERNETES_WORKLOAD";
const REPETITIONS: u32 = 3;
const TARGETS: [u32; 4] = [1, 3, 10, 100];
/// Seconds at a low rate, at a high one, and low again.
const PHASES: [(f64, bool); 3] = [(4.0, false), (16.0, true), (4.0, false)];
/// The search for a target looks at the middle only.
const SEARCH: [(f64, bool); 2] = [(3.0, false), (9.0, true)];

struct Workload {
    name: &'static str,
    query: &'static str,
    /// Requests per second, low and high.
    rates: (f64, f64),
    /// The memory limit of a pod.
    memory: &'static str,
}

/// On a two-core machine: the high rates of `prime` and `bloat` need 0.5 to 0.6 cores of the function, two pods of 400m
/// that are three quarters full; `sleep` has 36 requests in flight. Only `bloat` is short of memory.
const WORKLOADS: [Workload; 3] = [
    Workload { name: "prime", query: "prime=5000000", rates: (10.0, 60.0), memory: "1Gi" },
    Workload { name: "bloat", query: "bloat=48", rates: (10.0, 75.0), memory: "512Mi" },
    Workload { name: "sleep", query: "sleep=300", rates: (20.0, 120.0), memory: "256Mi" },
];

impl Workload {
    fn schedule(&self, phases: &[(f64, bool)]) -> Schedule {
        let (mut calls, mut begin) = (Vec::new(), 0.0);
        for (seconds, is_high) in phases {
            let rate = if *is_high { self.rates.1 } else { self.rates.0 };
            let count = (seconds * rate) as u32;
            calls.extend((0..count).map(|number| Due {
                at: windfall_core::Duration::from_secs_f64(begin + f64::from(number) / rate),
                target: 0,
                placeholders: Placeholders::default(),
            }));
            begin += seconds;
        }
        Schedule::new(calls, windfall_core::Duration::from_secs_f64(begin)).unwrap()
    }
}

/// What one run used.
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) pods: BTreeSet<String>,
    pub(crate) most: usize,
    pub(crate) pod_seconds: f64,
    pub(crate) core_seconds: f64,
}

/// CPU that the user's container requests, cores.
pub(crate) fn requested(pod: &Pod) -> f64 {
    let containers = &pod.spec.as_ref().unwrap().containers;
    let own = containers.iter().find(|one| one.name == "user-container").unwrap();
    let requests = own.resources.as_ref().and_then(|one| one.requests.as_ref());
    let text = requests.and_then(|one| one.get("cpu")).map_or("0", |cpu| cpu.0.as_str());
    let millis = text.strip_suffix('m').and_then(|millis| millis.parse::<f64>().ok());
    millis.map_or_else(|| text.parse().unwrap_or(0.0), |millis| millis * 1e-3)
}

impl Used {
    /// Takes in that these pods were there for so long.
    pub(crate) fn look(&mut self, pods: &[Pod], seconds: f64) {
        self.most = self.most.max(pods.len());
        self.pod_seconds += pods.len() as f64 * seconds;
        self.core_seconds += pods.iter().map(requested).sum::<f64>() * seconds;
        self.pods.extend(pods.iter().map(ResourceExt::name_any));
    }
}

/// How often each kind of failure happened.
fn failures(measured: &Measured) -> BTreeMap<String, u32> {
    let mut kinds = BTreeMap::new();
    for one in measured.samples.iter().filter(|one| !one.is_success()) {
        *kinds.entry(format!("{:?}", one.result)).or_default() += 1;
    }
    kinds
}

struct Comparison {
    bed: Bed,
    namespace: String,
    table: String,
}

impl Comparison {
    async fn deploy(&self, workload: &Workload, name: &str, target: Option<u32>) {
        let mut annotations = json!({"autoscaling.knative.dev/window": "6s",
            "autoscaling.knative.dev/max-scale": "6"});
        if let Some(target) = target {
            annotations["autoscaling.knative.dev/target"] = json!(target.to_string());
        }
        let resources = json!({"requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "400m", "memory": workload.memory}});
        let object = knative_object(&self.namespace, name, &annotations, &resources);
        self.bed.knative_ready(&object).await;
    }

    async fn remove(&self, name: &str) {
        let api = self.bed.api(&knative_services(), Some(&self.namespace));
        api.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
        self.at_zero(name).await;
    }

    async fn pods(&self, name: &str) -> Vec<Pod> {
        self.bed.pods_of_service(&self.namespace, name).await
    }

    async fn at_zero(&self, name: &str) {
        until(150, "no pods are left", async || self.pods(name).await.is_empty().then_some(()))
            .await;
    }

    /// Sends the load while pods are looked at, and goes on looking until none is left where `to_zero`.
    async fn run(
        &self,
        workload: &Workload,
        name: &str,
        phases: &[(f64, bool)],
        to_zero: bool,
    ) -> (Measured, Used, f64) {
        let over = AtomicBool::new(false);
        let looking = async {
            let (mut used, mut last) = (Used::default(), Instant::now());
            let mut ended: Option<Instant> = None;
            loop {
                let pods = self.pods(name).await;
                let now = Instant::now();
                used.look(&pods, now.duration_since(last).as_secs_f64());
                last = now;
                if over.load(Ordering::Relaxed) {
                    let since = *ended.get_or_insert(now);
                    let is_late = since.elapsed() > Duration::from_secs(120);
                    if !to_zero || pods.is_empty() || is_late {
                        return (used, since.elapsed().as_secs_f64());
                    }
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        };
        let sending = async {
            let schedule = workload.schedule(phases);
            let measured = load_as(&self.namespace, name, workload.query, schedule).await;
            over.store(true, Ordering::Relaxed);
            measured
        };
        let ((used, to_zero_s), measured) = tokio::join!(looking, sending);
        (measured, used, to_zero_s)
    }

    fn note(
        &mut self,
        (workload, arm, repetition): (&str, &str, u32),
        measured: &Measured,
        used: &Used,
        to_zero_s: f64,
    ) -> f64 {
        let mut latencies: Vec<f64> =
            measured.samples.iter().map(|one| one.latency().as_millis_f64()).collect();
        let first = latencies.first().copied().unwrap_or(0.0);
        latencies.sort_by(f64::total_cmp);
        let at = |share| nearest_rank(&latencies, share).unwrap_or(0.0);
        let failed = measured.samples.iter().filter(|one| !one.is_success()).count();
        let line = format!(
            "{workload},{arm},{repetition},{},{failed},{:.1},{:.1},{:.1},{first:.1},{},{},{:.1},{:.2},{to_zero_s:.1}",
            latencies.len(),
            at(0.5),
            at(0.95),
            at(0.99),
            used.pods.len(),
            used.most,
            used.pod_seconds,
            used.core_seconds,
        );
        eprintln!("{line} {:?}", failures(measured));
        writeln!(self.table, "{line}").unwrap();
        std::fs::write(std::env::var_os(RESULTS).unwrap(), &self.table).unwrap();
        at(0.95)
    }

    /// The target with the lowest p95; of those within a tenth of it, the one that used the fewest pods.
    async fn best_target(&mut self, workload: &Workload) -> u32 {
        let mut tried = Vec::new();
        for target in TARGETS {
            let name = format!("{}-{target}", workload.name);
            self.deploy(workload, &name, Some(target)).await;
            let (measured, used, _) = self.run(workload, &name, &SEARCH, false).await;
            let arm = format!("search-{target}");
            let p95 = self.note((workload.name, &arm, 1), &measured, &used, 0.0);
            tried.push((target, p95, used.pod_seconds));
            self.remove(&name).await;
        }
        let least = tried.iter().map(|one| one.1).fold(f64::INFINITY, f64::min);
        let near = tried.iter().filter(|one| one.1 <= 1.1 * least);
        near.min_by(|a, b| a.2.total_cmp(&b.2)).map_or(100, |one| one.0)
    }

    async fn compare(&mut self, workload: &Workload) {
        let best = self.best_target(workload).await;
        record(&format!("compare_{}_best", workload.name), &best.to_string());
        let arms = [("default", None), ("best", Some(best)), ("windfall", None)];
        for (arm, target) in arms {
            self.deploy(workload, &format!("{}-{arm}", workload.name), target).await;
        }
        self.manage(workload, &format!("{}-windfall", workload.name)).await;
        for (arm, _) in arms {
            self.at_zero(&format!("{}-{arm}", workload.name)).await;
        }
        for repetition in 0..REPETITIONS {
            // Another arm begins each time.
            for place in 0..arms.len() {
                let arm = arms[(place + repetition as usize) % arms.len()].0;
                let name = format!("{}-{arm}", workload.name);
                let (measured, used, to_zero_s) = self.run(workload, &name, &PHASES, true).await;
                self.note((workload.name, arm, repetition + 1), &measured, &used, to_zero_s);
            }
        }
    }

    /// A policy that may make pods smaller and not larger than their user did, and moves the target.
    async fn manage(&self, workload: &Workload, service: &str) {
        let target: Value =
            json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": service});
        let object = json!({
            "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
            "metadata": {"name": service, "namespace": self.namespace},
            "spec": {"targetRef": target, "mode": "Auto", "bounds": {"containers": [{
                "containerName": "*", "minAllowed": {"cpu": "25m", "memory": "64Mi"},
                "maxAllowed": {"cpu": "100m", "memory": workload.memory}}]}},
        });
        self.bed.apply(&policies(), &object).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn compare_windfall_with_knatives_autoscaler() {
    let Some(bed) = Bed::with("compare", Needs::Knative).await else { return };
    if std::env::var_os(RESULTS).is_none() {
        record("skipped", &format!("compare: it takes twenty minutes; {RESULTS}=FILE runs it"));
        return;
    }
    install(&bed).await;
    let namespace = bed.namespace("windfall-compare").await;
    let _controller = Controller::start_every(2, &namespace, "one", 9, true);
    let columns = "workload,arm,repetition,requests,failed,p50_ms,p95_ms,p99_ms,first_ms,\
        pods_started,most_pods,pod_seconds,core_seconds_requested,to_zero_s\n";
    let mut comparison = Comparison { bed, namespace, table: columns.to_owned() };
    let only = std::env::var(ONLY).ok();
    let is_meant = |workload: &&Workload| only.as_ref().is_none_or(|only| only == workload.name);
    for workload in WORKLOADS.iter().filter(is_meant) {
        comparison.compare(workload).await;
    }
    comparison.bed.delete_namespace(&comparison.namespace).await;
}
