//! One run as one row. The names of the fields are the columns of every table, file and script.

use serde::{Deserialize, Serialize};

/// What tells one run from another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLabel {
    /// The policy's name in the registry.
    pub policy: String,
    /// What users reserve per second over the cluster's capacity.
    pub load: f64,
    /// The seed.
    pub seed: u64,
}

/// One run in numbers. What each means, its unit and which way is better stands in
/// [`METRICS`](crate::metric_table::METRICS).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the table of metrics documents every field once, for all readers")]
pub struct RunSummary {
    pub policy: String,
    pub load: f64,
    pub seed: u64,
    pub calls: u64,
    pub rfet_mean: f64,
    pub slowdown_p50: f64,
    pub slowdown_p95: f64,
    pub slowdown_p99: f64,
    pub bounded_slowdown_p99: f64,
    pub violation_share: f64,
    pub harvested_violation_share: f64,
    pub cold_share: f64,
    pub oom_kills: u64,
    pub core_seconds_granted: f64,
    pub core_seconds_used: f64,
    pub mib_seconds_granted: f64,
    pub mib_seconds_used: f64,
    pub instance_seconds: f64,
    pub changes_per_hour: f64,
    pub slowdown_p999: f64,
    pub bounded_slowdown_p999: f64,
    pub core_seconds_held: f64,
    pub core_seconds_held_back: f64,
    pub completed: u64,
    pub failed: u64,
    pub rejected: u64,
    pub warm_up_calls: u64,
    pub measured_hours: f64,
    pub rfet_p50: f64,
    pub rfet_p95: f64,
    pub rfet_p99: f64,
    pub slowdown_mean: f64,
    pub slowdown_max: f64,
    pub latency_p50_seconds: f64,
    pub latency_p95_seconds: f64,
    pub latency_p99_seconds: f64,
    pub violation_depth_mean: f64,
    pub violation_depth_max: f64,
    pub harvested_share: f64,
    pub accelerated_share: f64,
    pub idle_mib_seconds: f64,
    pub looks: u64,
    pub fallbacks: u64,
    pub amendments: u64,
    #[serde(default)]
    pub calls_without_baseline: u64,
}

impl RunSummary {
    /// Which run this is.
    pub fn label(&self) -> RunLabel {
        RunLabel { policy: self.policy.clone(), load: self.load, seed: self.seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_are_those_that_scripts_rely_on() {
        let text = serde_json::to_string(&RunSummary::default()).unwrap();
        let order = [
            "policy",
            "load",
            "seed",
            "calls",
            "rfet_mean",
            "slowdown_p50",
            "slowdown_p95",
            "slowdown_p99",
            "bounded_slowdown_p99",
            "violation_share",
            "harvested_violation_share",
            "cold_share",
            "oom_kills",
            "core_seconds_granted",
            "core_seconds_used",
            "mib_seconds_granted",
            "mib_seconds_used",
            "instance_seconds",
            "changes_per_hour",
            "slowdown_p999",
            "bounded_slowdown_p999",
            "core_seconds_held",
            "core_seconds_held_back",
        ];
        let places: Vec<usize> =
            order.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    }
}
