//! A Knative Service without pods answers its first request.

use serde_json::json;
use windfall_load::CallResult;

use super::bed::{Bed, Needs, load, record, until};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn the_first_request_starts_a_pod_and_the_last_pod_leaves() {
    let Some(bed) = Bed::with("scale from zero", Needs::Knative).await else { return };
    let namespace = bed.namespace("windfall-zero").await;
    let annotations = json!({"autoscaling.knative.dev/window": "6s"});
    bed.knative_service(&namespace, "hello", annotations).await;
    let label = "serving.knative.dev/service=hello";
    let mut took = Vec::new();
    for _ in 0..3 {
        until(120, "the service has no pods", async || {
            bed.pods(&namespace, label).await.is_empty().then_some(())
        })
        .await;
        let measured = load(&namespace, "hello", "sleep=1", 1.0, 1).await;
        assert!(measured.samples.iter().all(|sample| sample.result == CallResult::Status(200)));
        took.push(measured.samples[0].latency().as_millis_f64());
    }
    took.sort_by(f64::total_cmp);
    record("scale_from_zero_ms", &format!("{:.1}", took[1]));
    bed.delete_namespace(&namespace).await;
}
