//! Windfall as a guest of other autoscalers, with the programs of these projects on the other side: the updater of the
//! Vertical Pod Autoscaler carries out our recommendation, and KEDA's client reads our number of pods.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use windfall_kubernetes::guests::{serve_keda, serve_vpa, vpa};

use super::bed::{Bed, Needs, Traffic, built, condition, record, resource, run, until};
use super::controller::{Controller, install, policy, seen};
use super::faults_of_the_server::{ALLOWED, until_requested};
use super::resize::{container, deployment};

/// Where KEDA would find us.
const SCALER: &str = "127.0.0.1:19090";

/// The updater of the Vertical Pod Autoscaler; dropping it ends it.
struct Updater(Child);

impl Updater {
    /// One that looks every two seconds, also at a single pod and at one that is within its bounds.
    fn start(program: PathBuf) -> Self {
        let kubeconfig = std::env::var("KUBECONFIG").unwrap();
        let mut command = Command::new(program);
        command.args(["--kubeconfig", &kubeconfig, "--updater-interval=2s", "--min-replicas=1"]);
        command.args(["--use-admission-controller-status=false", "--address=127.0.0.1:18943"]);
        command.arg("--in-recommendation-bounds-eviction-lifetime-threshold=1s");
        let log = std::fs::File::create(std::env::temp_dir().join("vpa-updater.log")).unwrap();
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Updater {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A VPA object that leaves recommending to us and allows one size only, so that the test knows what is wanted.
fn vertical(namespace: &str) -> Value {
    let size = json!({"cpu": ALLOWED.0, "memory": ALLOWED.1});
    json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "function", "namespace": namespace},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "function"},
            "recommenders": [{"name": vpa::RECOMMENDER}],
            "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
            "resourcePolicy": {"containerPolicies": [
                {"containerName": "*", "minAllowed": size, "maxAllowed": size}]}},
    })
}

/// A Deployment under load in a namespace of its own.
async fn loaded(bed: &Bed, name: &str) -> (String, Pod, Traffic) {
    install(bed).await;
    let namespace = bed.namespace(name).await;
    bed.apply(&resource("apps", "v1", "Deployment", "deployments"), &deployment(&namespace)).await;
    let pod = bed.ready_pod(&namespace, "app=function").await;
    let address = pod.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let traffic = Traffic::start(&format!("http://{address}:8080/?cpu=100"), 10.0, 300);
    (namespace, pod, traffic)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn the_updater_of_vpa_carries_out_our_recommendation_in_place() {
    let Some(bed) = Bed::with("guest of vpa", Needs::Pods).await else { return };
    let parts = (built("bin/kubernetes"), built("vpa-definitions.yaml"), built("bin/vpa-updater"));
    let (Some(kubernetes), Some(definitions), Some(updater)) = parts else {
        record("skipped", "guest of vpa: its updater and definitions were not built");
        return;
    };
    let file = definitions.display().to_string();
    run(kubernetes, &["kubectl", "apply", "--server-side", "-f", &file]).await;
    let verticals = bed.api(&vpa::api_resource(), None);
    until(30, "the definition of VPA objects is served", async || {
        verticals.list(&ListParams::default()).await.ok()
    })
    .await;
    let (namespace, pod, _traffic) = loaded(&bed, "windfall-vpa").await;
    let _controller = Controller::start(&namespace, "one", 10, false);
    let guest = tokio::spawn(serve_vpa(bed.client.clone()));
    let before = container(&pod);
    bed.apply(&vpa::api_resource(), &vertical(&namespace)).await;

    let own = bed.api(&vpa::api_resource(), Some(&namespace));
    let recommended = until(120, "the VPA object has our recommendation", async || {
        let object = own.get("function").await.ok()?;
        let rows = &object.data["status"]["recommendation"]["containerRecommendations"];
        let is_provided = condition(&object.data, "RecommendationProvided");
        is_provided.then(|| rows[0].clone())
    })
    .await;
    assert_eq!(recommended["target"], json!({"cpu": ALLOWED.0, "memory": ALLOWED.1}));
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    let before_updater = pods.get(&pod.name_any()).await.unwrap();
    assert_eq!(before_updater.metadata.generation, pod.metadata.generation, "we change nothing");

    let updater = Updater::start(updater);
    let took = until_requested(&pods, &pod.name_any(), ALLOWED.0, 60).await;
    record("vpa_updater_s", &format!("{took:.1}"));
    assert_eq!(container(&pods.get(&pod.name_any()).await.unwrap()), before, "never restarted");
    drop(updater);
    guest.abort();
    bed.delete_namespace(&namespace).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn kedas_client_reads_the_recommended_number_of_pods() {
    let Some(bed) = Bed::with("guest of keda", Needs::Pods).await else { return };
    let Some(client) = built("bin/keda") else {
        record("skipped", "guest of keda: its client was not built");
        return;
    };
    let (namespace, _pod, _traffic) = loaded(&bed, "windfall-keda").await;
    let _controller = Controller::start(&namespace, "one", 11, false);
    let guest = tokio::spawn(serve_keda(bed.client.clone(), SCALER.parse().unwrap()));
    policy(&bed, &namespace, "Recommend").await;
    let recommended = async || {
        let policy = seen(&bed, &namespace).await?;
        policy["status"]["recommendation"]["replicas"].as_f64()
    };
    until(120, "a number of pods is recommended", &recommended).await;
    // The number may change between the two questions; KEDA asks again just so.
    let answers = until(30, "KEDA's client and the status agree", async || {
        let said = run(client.clone(), &[SCALER, &namespace, "function"]).await;
        let answers: Value = serde_json::from_str(&said).unwrap();
        (answers["value"].as_f64() == recommended().await).then_some(answers)
    })
    .await;
    record("keda_answers", &answers.to_string());
    assert_eq!((&answers["active"], &answers["streamed"]), (&json!(true), &json!(true)));
    assert_eq!((&answers["metric"], &answers["target"]), (&json!("windfall-replicas"), &json!(1)));
    guest.abort();
    bed.delete_namespace(&namespace).await;
}
