//! Answers of Prometheus and of `metrics.k8s.io`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_kubernetes::metrics::{metrics_api, prometheus};

fuzz_target!(|page: &str| {
    prometheus::fuzz_answer(page);
    let _ = metrics_api::readings(page);
});
