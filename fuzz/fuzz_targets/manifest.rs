//! Manifests of the incumbents: ConfigMap, HorizontalPodAutoscaler, VerticalPodAutoscaler.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_autoscalers::hpa::Spec;
use windfall_autoscalers::kpa::ClusterSettings;
use windfall_autoscalers::vpa::VpaSettings;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = ClusterSettings::from_yaml(text);
        let _ = Spec::from_yaml(text);
        let _ = VpaSettings::from_yaml(text);
    }
});
