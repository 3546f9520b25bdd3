//! SIMPPO's agents as a multidimensional pod autoscaler on real pods: two Knative Services with an agent each, one of them
//! under more load than one pod may use CPU for. Agents turn replicas and size; without their policies everything is given
//! back.
//!
//! Not yet part of every run: in its first one both agents held for two minutes, with p95 at 15 ms of an objective of 300. The
//! same load is sent without a policy and under `windfall` too, and the table is written:
//!
//! ```text
//!   WINDFALL_KUBERNETES_AGENTS=results.csv cargo xtask kubernetes --test agents
//! ```

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use windfall_core::statistics::nearest_rank;
use windfall_load::Measured;

use super::bed::{Bed, Needs, knative_object, load, record, resource, until};
use super::compare::{Used, requested};
use super::controller::{Controller, install, policies};

/// Where the table goes.
const RESULTS: &str = "WINDFALL_KUBERNETES_AGENTS";
/// Seconds of load, and of the part that is judged once a policy has had time to act.
const LOAD: u64 = 120;
const JUDGED: u64 = 40;
/// The objective: p95 below so many milliseconds.
const GOAL_MS: u32 = 300;
/// The services with their calls per second; a call takes some 25 ms of CPU.
const SERVICES: [(&str, f64); 2] = [("busy", 20.0), ("calm", 3.0)];
const QUERY: &str = "prime=4000000";

/// What a service has: the floor of its pods, and CPU and memory of the newest.
type Held = (u32, u32, String);

struct Stage {
    bed: Bed,
    namespace: String,
}

/// One service under one policy.
struct Ran {
    measured: Measured,
    used: Used,
    /// What it had, one after the other.
    path: Vec<Held>,
}

impl Stage {
    async fn deploy(&self) {
        let annotations = json!({"autoscaling.knative.dev/min-scale": "1",
            "autoscaling.knative.dev/max-scale": "2", "autoscaling.knative.dev/window": "6s"});
        let resources = json!({"requests": {"cpu": "256m", "memory": "128Mi"},
            "limits": {"cpu": "512m", "memory": "256Mi"}});
        for (name, _) in SERVICES {
            let object = knative_object(&self.namespace, name, &annotations, &resources);
            self.bed.knative_ready(&object).await;
        }
    }

    /// Lets `policy` decide about both services, within what the node has room for.
    async fn manage(&self, policy: &str) {
        for (name, _) in SERVICES {
            let size = |cpu, memory| json!({"cpu": cpu, "memory": memory});
            let object = json!({
                "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "targetRef": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": name},
                    "policy": {"name": policy}, "mode": "Auto",
                    "goals": {"latency": {"percentile": 95, "milliseconds": GOAL_MS}},
                    "bounds": {
                        "containers": [{"containerName": "*",
                            "minAllowed": size("64m", "64Mi"), "maxAllowed": size("400m", "320Mi")}],
                        "replicas": {"min": 1, "max": 2}}},
            });
            self.bed.apply(&policies(), &object).await;
        }
    }

    /// Deletes the policies and waits until they are gone, which is after everything was given back.
    async fn give_back(&self) {
        let api = self.bed.api(&policies(), Some(&self.namespace));
        for (name, _) in SERVICES {
            api.delete(name, &DeleteParams::default()).await.unwrap();
            until(60, "the policy is gone", async || {
                api.get_opt(name).await.ok()?.is_none().then_some(())
            })
            .await;
        }
    }

    async fn held(&self, name: &str) -> Option<Held> {
        let revisions = resource("serving.knative.dev", "v1", "Revision", "revisions");
        let api = self.bed.api(&revisions, Some(&self.namespace));
        let revision = api.get(&format!("{name}-00001")).await.ok()?;
        let floor = revision.annotations().get("autoscaling.knative.dev/min-scale")?;
        let pods = self.bed.pods_of_service(&self.namespace, name).await;
        let newest = pods.iter().max_by_key(|pod| pod.creation_timestamp())?;
        let containers = &newest.spec.as_ref()?.containers;
        let own = containers.iter().find(|one| one.name == "user-container")?;
        let memory = own.resources.as_ref()?.limits.as_ref()?.get("memory")?.0.clone();
        Some((floor.parse().ok()?, (requested(newest) * 1e3).round() as u32, memory))
    }

    /// Sends the load to one service and looks at what it has meanwhile.
    async fn run(&self, name: &str, rate: f64) -> Ran {
        let over = AtomicBool::new(false);
        let looking = async {
            let (mut used, mut path, mut last) = (Used::default(), Vec::new(), Instant::now());
            while !over.load(Ordering::Relaxed) {
                let pods = self.bed.pods_of_service(&self.namespace, name).await;
                let now = Instant::now();
                used.look(&pods, now.duration_since(last).as_secs_f64());
                last = now;
                if let Some(held) = self.held(name).await.filter(|held| path.last() != Some(held)) {
                    path.push(held);
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            (used, path)
        };
        let sending = async {
            let measured = load(&self.namespace, name, QUERY, rate, LOAD).await;
            over.store(true, Ordering::Relaxed);
            measured
        };
        let ((used, path), measured) = tokio::join!(looking, sending);
        Ran { measured, used, path }
    }

    /// Both services under `policy`, or as their user wrote them.
    async fn arm(&self, policy: Option<&str>) -> [Ran; 2] {
        if let Some(policy) = policy {
            self.manage(policy).await;
        }
        let [busy, calm] = SERVICES;
        let (busy, calm) = tokio::join!(self.run(busy.0, busy.1), self.run(calm.0, calm.1));
        if policy.is_some() {
            self.give_back().await;
        }
        [busy, calm]
    }
}

impl Ran {
    /// The 95th percentile of the last part, milliseconds.
    fn late_p95(&self) -> f64 {
        let begin = self.measured.samples.len() as u64 * (LOAD - JUDGED) / LOAD;
        let last = &self.measured.samples[begin as usize..];
        let mut latencies: Vec<f64> =
            last.iter().map(|one| one.latency().as_millis_f64()).collect();
        latencies.sort_by(f64::total_cmp);
        nearest_rank(&latencies, 0.95).unwrap_or(0.0)
    }

    fn failed(&self) -> usize {
        self.measured.samples.iter().filter(|one| !one.is_success()).count()
    }

    fn line(&self, policy: &str, service: &str) -> String {
        let Used { pod_seconds, core_seconds, .. } = &self.used;
        let steps = self.path.iter().map(|(floor, cpu, memory)| format!("{floor}x{cpu}m/{memory}"));
        let path = steps.collect::<Vec<_>>().join(" ");
        format!(
            "{policy},{service},{},{},{:.0},{pod_seconds:.0},{core_seconds:.1},{path}",
            self.measured.samples.len(),
            self.failed(),
            self.late_p95(),
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn agents_turn_replicas_and_size_of_real_pods() {
    let Some(bed) = Bed::with("agents", Needs::Knative).await else { return };
    let Some(results) = std::env::var_os(RESULTS) else {
        record("skipped", &format!("agents: it takes seven minutes; {RESULTS}=FILE runs it"));
        return;
    };
    install(&bed).await;
    let namespace = bed.namespace("windfall-agents").await;
    let stage = Stage { bed, namespace };
    stage.deploy().await;
    // Agents learned at ticks of five seconds.
    let _controller = Controller::start_every(5, &stage.namespace, "one", 12, true);
    let mut table =
        "policy,service,requests,failed,late_p95_ms,pod_seconds,core_seconds_requested,path\n"
            .to_owned();
    for policy in [None, Some("windfall")] {
        let ran = stage.arm(policy).await;
        for (one, (service, _)) in ran.iter().zip(SERVICES) {
            writeln!(table, "{}", one.line(policy.unwrap_or("none"), service)).unwrap();
        }
    }
    let ran = stage.arm(Some("simppo")).await;
    for (one, (service, _)) in ran.iter().zip(SERVICES) {
        let line = one.line("simppo", service);
        record("agents", &line);
        writeln!(table, "{line}").unwrap();
    }
    std::fs::write(results, &table).unwrap();
    assert!(ran.iter().any(|one| one.path.len() > 1), "an agent moved something");
    assert_eq!(ran.iter().map(Ran::failed).sum::<usize>(), 0, "no request was lost");
    for (service, _) in SERVICES {
        let users: Held = (1, 256, "256Mi".to_owned());
        until(30, "the user's floor and size are back", async || {
            (stage.held(service).await? == users).then_some(())
        })
        .await;
    }
    stage.bed.delete_namespace(&stage.namespace).await;
}
