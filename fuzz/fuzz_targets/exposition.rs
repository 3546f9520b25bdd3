//! Pages of pods, kubelets and Knative's components, in the text format of Prometheus.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_kubernetes::metrics::{exposition, knative, kubelet};

fuzz_target!(|page: &str| {
    assert!(exposition::lines(page).count() <= page.lines().count());
    kubelet::usage(page);
    kubelet::throttling(page);
    knative::revisions(page);
    if let Some(found) = knative::durations(page) {
        found.quantile(0.95);
        assert!(found.buckets.is_sorted_by(|a, b| a.0.total_cmp(&b.0).is_le()));
    }
});
