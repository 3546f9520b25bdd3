//! Our own autoscaler class scales a real Knative Service from zero to several pods and back.

use serde_json::json;
use windfall_kubernetes::guests::class::{CLASS, pod_autoscalers};
use windfall_load::CallResult;

use super::bed::{Bed, Needs, condition, load, record, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn our_class_scales_from_zero_to_several_pods_and_back() {
    let Some(bed) = Bed::with("class", Needs::Knative).await else { return };
    let guest = tokio::spawn(windfall_kubernetes::guests::serve_class(bed.client.clone()));
    let namespace = bed.namespace("windfall-class").await;
    let annotations = json!({
        "autoscaling.knative.dev/class": CLASS,
        "autoscaling.knative.dev/target": "5",
        "autoscaling.knative.dev/window": "6s",
        "autoscaling.knative.dev/max-scale": "8",
    });
    bed.knative_service(&namespace, "ours", annotations).await;
    let label = "serving.knative.dev/service=ours";
    let gone = async || bed.pods(&namespace, label).await.is_empty().then_some(());
    until(120, "no traffic, no pods", &gone).await;
    // 20 requests in flight and 3.5 per pod: six pods.
    let watch = async {
        let mut most = 0;
        for _ in 0..110 {
            most = most.max(bed.pods(&namespace, label).await.len());
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        most
    };
    let (measured, most) = tokio::join!(load(&namespace, "ours", "sleep=500", 40.0, 20), watch);
    let lost =
        measured.samples.iter().filter(|sample| sample.result != CallResult::Status(200)).count();
    assert_eq!(lost, 0, "no request was lost over all changes");
    assert!((5..=8).contains(&most), "{most} pods at most; 6 were expected");
    record("class_pods", &most.to_string());
    record("class_first_ms", &format!("{:.0}", measured.samples[0].latency().as_millis_f64()));
    let object = bed.api(&pod_autoscalers(), Some(&namespace)).get("ours-00001").await.unwrap();
    assert!(condition(&object.data, "ScaleTargetInitialized"));
    assert!(object.data["status"]["serviceName"].is_string());
    until(120, "no traffic, no pods again", &gone).await;
    guest.abort();
    bed.delete_namespace(&namespace).await;
}
