//! Settings of the recommender (flags) and of one VerticalPodAutoscaler (policies).

use super::amounts::Resources;

/// The recommender's flags; each field is the flag of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct RecommenderSettings {
    /// `--cpu-histogram-decay-half-life`.
    pub cpu_histogram_half_life_seconds: i64,
    /// `--memory-histogram-decay-half-life`.
    pub memory_histogram_half_life_seconds: i64,
    /// `--memory-aggregation-interval`.
    pub memory_aggregation_interval_seconds: i64,
    /// `--memory-aggregation-interval-count`.
    pub memory_aggregation_interval_count: i64,
    /// `--oom-bump-up-ratio`.
    pub oom_bump_up_ratio: f64,
    /// `--oom-min-bump-up-bytes`.
    pub oom_min_bump_up_bytes: f64,
    /// `--recommendation-margin-fraction`.
    pub safety_margin_fraction: f64,
    /// `--target-cpu-percentile` and its two bounds.
    pub cpu_percentiles: Percentiles,
    /// `--target-memory-percentile` and its two bounds.
    pub memory_percentiles: Percentiles,
    /// `--confidence-interval-cpu`.
    pub confidence_interval_cpu_seconds: i64,
    /// `--confidence-interval-memory`.
    pub confidence_interval_memory_seconds: i64,
    /// `--pod-recommendation-min-cpu-millicores`.
    pub pod_min_cpu_millicores: f64,
    /// `--pod-recommendation-min-memory-mb`, in MiB despite its name.
    pub pod_min_memory_mb: f64,
    /// `--round-cpu-millicores`.
    pub round_cpu_millicores: i64,
    /// `--round-memory-bytes`.
    pub round_memory_bytes: i64,
    /// `--container-recommendation-max-allowed-cpu` and `-memory`.
    pub global_max_allowed: Resources,
    /// Seconds between collections of unused aggregates; a constant upstream.
    pub gc_interval_seconds: i64,
}

/// Percentiles of one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// Of the target.
    pub target: f64,
    /// Of the lower bound.
    pub lower: f64,
    /// Of the upper bound.
    pub upper: f64,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { target: 0.9, lower: 0.5, upper: 0.95 }
    }
}

impl Default for RecommenderSettings {
    fn default() -> Self {
        const DAY: i64 = 86_400;
        Self {
            cpu_histogram_half_life_seconds: DAY,
            memory_histogram_half_life_seconds: DAY,
            memory_aggregation_interval_seconds: DAY,
            memory_aggregation_interval_count: 8,
            oom_bump_up_ratio: 1.2,
            oom_min_bump_up_bytes: 104_857_600.0,
            safety_margin_fraction: 0.15,
            cpu_percentiles: Percentiles::default(),
            memory_percentiles: Percentiles::default(),
            confidence_interval_cpu_seconds: DAY,
            confidence_interval_memory_seconds: DAY,
            pod_min_cpu_millicores: 25.0,
            pod_min_memory_mb: 250.0,
            round_cpu_millicores: 1,
            round_memory_bytes: 1,
            global_max_allowed: Resources::default(),
            gc_interval_seconds: 3600,
        }
    }
}

/// `spec` of one VerticalPodAutoscaler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VpaSettings {
    /// `resourcePolicy.containerPolicies`.
    pub policies: Vec<ContainerPolicy>,
    /// Containers whose CPU is rounded up to whole cores, by annotation.
    pub integer_cpu_containers: Vec<String>,
    /// `updatePolicy`.
    pub update: UpdatePolicy,
}

/// `updatePolicy`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdatePolicy {
    /// `updateMode`.
    pub mode: UpdateMode,
    /// `minReplicas`; `None` means the updater's.
    pub min_replicas: Option<u32>,
    /// `evictAfterOOMSeconds`; `None` means the updater's.
    pub evict_after_oom_seconds: Option<i64>,
    /// `evictionRequirements`.
    pub eviction_requirements: Vec<EvictionRequirement>,
}

/// `updateMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// `Off`: recommend only.
    Off,
    /// `Initial`: at creation of a pod.
    Initial,
    /// `Recreate` (and the deprecated `Auto`): by eviction.
    #[default]
    Recreate,
    /// `InPlaceOrRecreate`: live, by eviction if that fails.
    InPlaceOrRecreate,
    /// `InPlace`: live or not at all.
    InPlace,
}

/// One entry of `evictionRequirements`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionRequirement {
    /// `resources`: one of them must move.
    pub resources: Vec<super::amounts::Resource>,
    /// `changeRequirement`: whether the target must be higher than the request, else lower.
    pub must_rise: bool,
}

/// One entry of `containerPolicies`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerPolicy {
    /// `containerName`; `*` for all containers without their own policy.
    pub container: String,
    /// `mode` is `Off`.
    pub is_off: bool,
    /// `minAllowed`.
    pub min_allowed: Resources,
    /// `maxAllowed`.
    pub max_allowed: Resources,
    /// `controlledResources`; `None` means both.
    pub controlled: Option<Vec<super::amounts::Resource>>,
    /// `controlledValues` is `RequestsOnly`.
    pub is_requests_only: bool,
    /// `oomBumpUpRatio`.
    pub oom_bump_up_ratio: Option<f64>,
    /// `oomMinBumpUp`, bytes.
    pub oom_min_bump_up_bytes: Option<f64>,
    /// `memoryAggregationIntervalSeconds`.
    pub memory_aggregation_interval_seconds: Option<i64>,
    /// `memoryAggregationIntervalCount`.
    pub memory_aggregation_interval_count: Option<i64>,
}

impl VpaSettings {
    /// The policy of a container: the one with its name, else the last `*`; the two are never mixed.
    pub fn policy(&self, container: &str) -> Option<&ContainerPolicy> {
        let named = self.policies.iter().find(|policy| policy.container == container);
        named.or_else(|| self.policies.iter().rfind(|policy| policy.container == "*"))
    }
}
