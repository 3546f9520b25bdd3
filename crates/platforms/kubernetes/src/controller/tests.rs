//! Passes over a cluster that is played: the index is filled by hand, the API server is a service that answers with a chosen status.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::cluster::samples;
use crate::discovery::Offers;
use crate::fake_api::{self, Answered, Asked};
use crate::metrics::{Reading, SourceError};
use crate::resource_policy::ResourcePolicy;
use futures_util::future::BoxFuture;

/// What was asked of the API server.
#[derive(Clone, Default)]
struct Api {
    requests: Arc<Mutex<Vec<Asked>>>,
    /// The code of every answer, 200 if nothing is said.
    status: Arc<AtomicU32>,
}

impl Api {
    fn client(&self) -> Client {
        let api = self.clone();
        fake_api::client(move |asked| {
            let Asked { verb, path, body } = asked;
            let asked = Asked { verb: verb.clone(), path: path.clone(), body: body.clone() };
            api.requests.lock().unwrap().push(asked);
            match api.status.load(Ordering::Relaxed) {
                0 => Answered::ok(&json!({
                    "apiVersion": "v1", "kind": "Any", "metadata": {"name": "x", "namespace": "n"},
                    "spec": {"targetRef": {"kind": "Deployment", "name": "x"}, "selector": {}, "template": {}, "containers": []},
                })),
                code => Answered::failure(code as u16),
            }
        })
    }

    fn writes(&self) -> Vec<(String, String)> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|asked| (asked.verb.clone(), asked.path.clone())).collect()
    }

    fn bodies(&self, path: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|asked| asked.path.contains(path))
            .map(|asked| asked.body.clone())
            .collect()
    }
}

/// Measures every pod alike, or nothing at all.
struct Even(Arc<AtomicU32>);

impl MetricsSource for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        _: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>> {
        let millis = self.0.load(Ordering::Relaxed);
        Box::pin(async move {
            if millis == 0 {
                return Err(SourceError::Api { what: "usage".into(), problem: "gone".into() });
            }
            let of_pod = |one: &Wanted, key: &Key| {
                let cores = f64::from(millis) * 1e-3;
                [
                    Reading::CpuCores(key.clone(), one.container.clone(), cores),
                    Reading::MemoryBytes(key.clone(), one.container.clone(), 50.0 * 1_048_576.0),
                ]
            };
            let readings = wanted
                .iter()
                .flat_map(|one| one.pods.iter().flat_map(move |pod| of_pod(one, &pod.key)));
            Ok(readings.collect())
        })
    }
}

struct Stage {
    api: Api,
    world: Arc<World>,
    millis: Arc<AtomicU32>,
    controller: Controller,
    second: u64,
}

fn policy(mode: &str, finalizers: &[&str]) -> ResourcePolicy {
    serde_json::from_value(json!({
        "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
        "metadata": {"name": "hello", "namespace": "n", "generation": 3, "resourceVersion": "7", "finalizers": finalizers},
        "spec": {"targetRef": {"kind": "Deployment", "name": "hello"}, "mode": mode, "canary": {"sharePercent": 50}},
    }))
    .unwrap()
}

impl Stage {
    fn new(policy: ResourcePolicy) -> Self {
        let (api, world) = (Api::default(), Arc::<World>::default());
        *world.cluster() = samples::deployment("n", "hello", 2);
        world.cluster().policies.put(Key::new("n", "hello"), Arc::new(policy));
        let node = crate::cluster::NodeFacts { millis: 8000, bytes: 16 << 30, is_ready: true };
        world.cluster().nodes.put(Key::new("", "node-1"), node);
        world.set_offers(Offers { resize: true, ..Offers::default() });
        let millis = Arc::new(AtomicU32::new(50));
        let controller = Controller::new(
            api.client(),
            Arc::clone(&world),
            Arc::default(),
            vec![Box::new(Even(Arc::clone(&millis)))],
            Settings::default(),
            (Arc::default(), Arc::new(Leadership::alone())),
        );
        Self { api, world, millis, controller, second: 1_790_000_000 }
    }

    async fn passes(&mut self, count: u32) {
        for _ in 0..count {
            self.second += 15;
            self.controller.pass(Timestamp::from_secs(self.second)).await;
        }
    }

    /// Takes in the last written status, as the watch would.
    fn status(&self) -> ResourcePolicyStatus {
        let last = self.api.bodies("/resourcepolicies/hello/status").pop().expect("a status");
        serde_json::from_value(last["status"].clone()).unwrap()
    }

    fn condition(&self, kind: &str) -> (String, String, String) {
        let status = self.status();
        let found = status.conditions.iter().find(|one| one.type_ == kind).expect("the condition");
        (found.status.clone(), found.reason.clone(), found.message.clone())
    }

    fn wrote_to(&self, part: &str) -> usize {
        self.api.writes().iter().filter(|(verb, path)| verb != "GET" && path.contains(part)).count()
    }
}

#[tokio::test]
async fn recommend_writes_a_status_and_touches_no_pod() {
    let mut stage = Stage::new(policy("Recommend", &[]));
    stage.passes(20).await;
    let status = stage.status();
    assert_eq!(status.observed_generation, Some(3));
    let recommended = &status.recommendation.as_ref().unwrap().containers[0];
    assert_eq!(
        (recommended.user.cpu.as_str(), recommended.user.memory.as_str()),
        ("500m", "128Mi")
    );
    assert_eq!(recommended.target.cpu, "58m", "50m of use and 15 % on top");
    assert_eq!(stage.condition("Ready").0, "True");
    assert_eq!((stage.wrote_to("/resize"), stage.wrote_to("/scale")), (0, 0));
    assert!(status.last_decision.unwrap().reason.contains("cores"));
}

#[tokio::test]
async fn nothing_is_changed_before_the_finalizer_is_there() {
    let mut stage = Stage::new(policy("Auto", &[]));
    stage.passes(20).await;
    assert_eq!(stage.wrote_to("/resize"), 0);
    let finalizers = stage.api.bodies("/resourcepolicies/hello?");
    assert!(finalizers.iter().any(|body| body["metadata"]["finalizers"] == json!([FINALIZER])));
}

#[tokio::test]
async fn auto_resizes_pods_and_a_canary_its_share() {
    for (mode, pods) in [("Auto", 2), ("Canary", 1)] {
        let mut stage = Stage::new(policy(mode, &[FINALIZER]));
        stage.passes(10).await;
        let asked: std::collections::BTreeSet<String> = stage
            .api
            .writes()
            .into_iter()
            .filter(|(_, path)| path.contains("/resize"))
            .map(|(_, path)| path)
            .collect();
        assert_eq!(asked.len(), pods, "{mode}");
        let patch = &stage.api.bodies("/resize")[0];
        assert_eq!(patch["spec"]["containers"][0]["name"], samples::CONTAINER);
    }
}

#[tokio::test]
async fn without_measurements_nothing_changes_and_the_condition_says_so() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    stage.millis.store(0, Ordering::Relaxed);
    stage.passes(10).await;
    assert_eq!(stage.wrote_to("/resize"), 0);
    let (status, reason, message) = stage.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoMetrics"));
    assert!(message.contains("even: usage: gone"), "{message}");
}

#[tokio::test]
async fn another_autoscaler_makes_it_recommend_only() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    let rival = crate::cluster::Rival {
        target_kind: "Deployment".into(),
        target: "hello".into(),
        is_passive: false,
    };
    stage.world.cluster().horizontal.put(Key::new("n", "mine"), rival);
    stage.passes(10).await;
    assert_eq!((stage.wrote_to("/resize"), stage.wrote_to("/scale")), (0, 0));
    let (status, _, message) = stage.condition("Conflict");
    assert_eq!(status, "True");
    assert!(message.contains("HorizontalPodAutoscaler mine"), "{message}");
}

#[tokio::test]
async fn a_role_that_was_taken_away_is_a_condition_and_no_end() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    stage.api.status.store(403, Ordering::Relaxed);
    stage.passes(12).await;
    assert!(stage.wrote_to("/resize") > 0);
    let (status, reason, message) = stage.condition("Applied");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Refused"));
    assert!(message.contains("not permitted"), "{message}");
}

#[tokio::test]
async fn conflicts_and_a_busy_server_are_tried_again() {
    for code in [409, 429, 500, 503] {
        let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
        stage.api.status.store(code, Ordering::Relaxed);
        stage.passes(10).await;
        let before = stage.wrote_to("/resize");
        stage.api.status.store(0, Ordering::Relaxed);
        stage.passes(2).await;
        assert!(before > 0 && stage.wrote_to("/resize") > before, "{code}");
    }
}

#[tokio::test]
async fn a_memory_kill_gives_the_workload_back_and_waits() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    stage.passes(10).await;
    let resized: Vec<Action> = {
        let size = samples::user_size().resized(windfall_core::Allocation::new(58, 58), None);
        let pod = |place| Action::ResizePod {
            pod: samples::pod_key("n", "hello", place),
            container: samples::CONTAINER.into(),
            size,
        };
        vec![pod(0), pod(1)]
    };
    samples::carry_out(&mut stage.world.cluster(), &resized);
    let at = stage.second as i64 + 20;
    samples::change_pod(&mut stage.world.cluster(), "n", "hello", 0, |pod| {
        pod.containers[0].terminated =
            Some(crate::cluster::Termination { reason: "OOMKilled".into(), at });
    });
    stage.passes(2).await;
    let (status, reason, message) = stage.condition("Reverted");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Harm"));
    assert!(message.contains("killed for its memory"), "{message}");
    let last = stage.api.bodies("/resize").pop().unwrap();
    assert_eq!(last["spec"]["containers"][0]["resources"]["requests"]["cpu"], "500m");
    assert_eq!(stage.status().reverted.unwrap().times, 1);
}

#[tokio::test]
async fn a_deleted_policy_gives_back_first_and_goes_then() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    let size = samples::user_size().resized(windfall_core::Allocation::new(100, 64), None);
    let resize = Action::ResizePod {
        pod: samples::pod_key("n", "hello", 0),
        container: samples::CONTAINER.into(),
        size,
    };
    samples::carry_out(&mut stage.world.cluster(), &[resize]);
    let mut leaving = policy("Auto", &[FINALIZER]);
    leaving.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::now()));
    stage.world.cluster().policies.put(Key::new("n", "hello"), Arc::new(leaving));
    stage.passes(1).await;
    assert_eq!(stage.wrote_to("/resize"), 1);
    assert!(stage.api.bodies("/resourcepolicies/hello?").is_empty(), "it is still needed");
    // The watch shows the pod at its user's size.
    let back = Action::ResizePod {
        pod: samples::pod_key("n", "hello", 0),
        container: samples::CONTAINER.into(),
        size: samples::user_size(),
    };
    samples::carry_out(&mut stage.world.cluster(), &[back]);
    stage.passes(1).await;
    let last = stage.api.bodies("/resourcepolicies/hello?").pop().unwrap();
    assert_eq!(last["metadata"]["finalizers"], json!([]));
}

#[tokio::test]
async fn a_new_controller_keeps_what_an_earlier_one_set() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    let size = samples::user_size().resized(windfall_core::Allocation::new(100, 64), None);
    let resizes: Vec<Action> = [0, 1]
        .map(|place| Action::ResizePod {
            pod: samples::pod_key("n", "hello", place),
            container: samples::CONTAINER.into(),
            size,
        })
        .into();
    samples::carry_out(&mut stage.world.cluster(), &resizes);
    stage.passes(2).await;
    assert_eq!(stage.wrote_to("/resize"), 0, "nothing jumps back to the user's size");
}

#[tokio::test]
async fn writes_of_a_pass_are_bounded() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    stage.controller.settings.writes = 1;
    stage.passes(10).await;
    let report = stage.controller.instruments.last_pass();
    assert!(report.writes <= 1 && report.put_off > 0, "{report:?}");
}

#[tokio::test]
async fn who_has_lost_the_lease_sends_nothing() {
    let mut stage = Stage::new(policy("Auto", &[FINALIZER]));
    stage.controller.leadership = Arc::default();
    stage.passes(10).await;
    assert!(stage.api.writes().is_empty());
}
