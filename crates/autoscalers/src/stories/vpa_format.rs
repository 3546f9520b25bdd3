//! The recorded form of the VerticalPodAutoscaler's stories, shared by recommender and updater.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::vpa::{
    ContainerPolicy, ContainerRecommendation, Percentiles, RecommenderSettings, Resource, Resources,
};

/// Maximum of any time or length in a story, seconds: about 35 000 years, far below where sums overflow.
const SECONDS_LIMIT: i64 = 1 << 40;

/// A time, or a length that may be negative.
pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    within(i64::deserialize(from)?, -SECONDS_LIMIT)
}

/// A time that may be missing.
pub(super) fn seconds_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Option::<i64>::deserialize(from)?.map(|value| within(value, -SECONDS_LIMIT)).transpose()
}

/// A length or a count above zero.
fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    within(i64::deserialize(from)?, 1)
}

/// A length or a count above zero that may be missing.
fn positive_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Option::<i64>::deserialize(from)?.map(|value| within(value, 1)).transpose()
}

fn within<E: serde::de::Error>(value: i64, least: i64) -> Result<i64, E> {
    if (least..=SECONDS_LIMIT).contains(&value) {
        return Ok(value);
    }
    Err(E::custom(format!("{value} is out of bounds, allowed is {least} to {SECONDS_LIMIT}")))
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) struct RawResources {
    pub(super) cpu_millicores: Option<i64>,
    pub(super) memory_bytes: Option<i64>,
}

impl RawResources {
    pub(super) fn resources(self) -> Resources {
        Resources { cpu_millicores: self.cpu_millicores, memory_bytes: self.memory_bytes }
    }
}

#[derive(Deserialize)]
pub(super) struct RawPolicy {
    container: String,
    mode: String,
    #[serde(default)]
    min_allowed: Option<RawResources>,
    #[serde(default)]
    max_allowed: Option<RawResources>,
    controlled_resources: Option<Vec<String>>,
    #[serde(default)]
    requests_only: bool,
    oom_bump_up_ratio: Option<f64>,
    oom_min_bump_up_bytes: Option<f64>,
    #[serde(default, deserialize_with = "positive_if_any")]
    memory_aggregation_interval_s: Option<i64>,
    #[serde(default, deserialize_with = "positive_if_any")]
    memory_aggregation_interval_count: Option<i64>,
}

impl RawPolicy {
    pub(super) fn policy(&self) -> Result<ContainerPolicy, String> {
        let controlled = self.controlled_resources.as_deref().map(resources).transpose()?;
        Ok(ContainerPolicy {
            container: self.container.clone(),
            is_off: self.mode.eq_ignore_ascii_case("off"),
            min_allowed: self.min_allowed.unwrap_or_default().resources(),
            max_allowed: self.max_allowed.unwrap_or_default().resources(),
            controlled,
            is_requests_only: self.requests_only,
            oom_bump_up_ratio: self.oom_bump_up_ratio,
            oom_min_bump_up_bytes: self.oom_min_bump_up_bytes,
            memory_aggregation_interval_seconds: self.memory_aggregation_interval_s,
            memory_aggregation_interval_count: self.memory_aggregation_interval_count,
        })
    }
}

pub(super) fn resources(names: &[String]) -> Result<Vec<Resource>, String> {
    let resource = |name: &String| match name.as_str() {
        "cpu" => Ok(Resource::Cpu),
        "memory" => Ok(Resource::Memory),
        other => Err(format!("resource is {other:?}, allowed are cpu and memory")),
    };
    names.iter().map(resource).collect()
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct RawRecommendation {
    pub(super) container: String,
    pub(super) target: RawResources,
    pub(super) lower_bound: RawResources,
    pub(super) upper_bound: RawResources,
    pub(super) uncapped_target: RawResources,
}

impl RawRecommendation {
    pub(super) fn recommendation(&self) -> ContainerRecommendation {
        ContainerRecommendation {
            container: self.container.clone(),
            target: self.target.resources(),
            lower_bound: self.lower_bound.resources(),
            upper_bound: self.upper_bound.resources(),
            uncapped_target: self.uncapped_target.resources(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Story {
    pub(super) id: String,
    #[serde(deserialize_with = "seconds")]
    pub(super) start_unix_s: i64,
    pub(super) config: RawConfig,
    pub(super) events: Vec<Event>,
    pub(super) recommendations: Vec<Tick>,
}

#[derive(Deserialize)]
pub(super) struct RawConfig {
    #[serde(deserialize_with = "positive")]
    cpu_histogram_half_life_s: i64,
    #[serde(deserialize_with = "positive")]
    memory_histogram_half_life_s: i64,
    #[serde(deserialize_with = "positive")]
    memory_aggregation_interval_s: i64,
    #[serde(deserialize_with = "positive")]
    memory_aggregation_interval_count: i64,
    oom_bump_up_ratio: f64,
    oom_min_bump_up_bytes: f64,
    safety_margin_fraction: f64,
    target_cpu_percentile: f64,
    lower_bound_cpu_percentile: f64,
    upper_bound_cpu_percentile: f64,
    target_memory_percentile: f64,
    lower_bound_memory_percentile: f64,
    upper_bound_memory_percentile: f64,
    #[serde(deserialize_with = "positive")]
    confidence_interval_cpu_s: i64,
    #[serde(deserialize_with = "positive")]
    confidence_interval_memory_s: i64,
    pod_min_cpu_millicores: f64,
    pod_min_memory_mb: f64,
    round_cpu_millicores: i64,
    round_memory_bytes: i64,
    global_max_allowed: Option<RawResources>,
    #[serde(default)]
    pub(super) integer_cpu_containers: Vec<String>,
    #[serde(deserialize_with = "positive")]
    gc_interval_s: i64,
    #[serde(default)]
    pub(super) container_policies: Vec<RawPolicy>,
}

impl RawConfig {
    pub(super) fn settings(&self) -> RecommenderSettings {
        RecommenderSettings {
            cpu_histogram_half_life_seconds: self.cpu_histogram_half_life_s,
            memory_histogram_half_life_seconds: self.memory_histogram_half_life_s,
            memory_aggregation_interval_seconds: self.memory_aggregation_interval_s,
            memory_aggregation_interval_count: self.memory_aggregation_interval_count,
            oom_bump_up_ratio: self.oom_bump_up_ratio,
            oom_min_bump_up_bytes: self.oom_min_bump_up_bytes,
            safety_margin_fraction: self.safety_margin_fraction,
            cpu_percentiles: Percentiles {
                target: self.target_cpu_percentile,
                lower: self.lower_bound_cpu_percentile,
                upper: self.upper_bound_cpu_percentile,
            },
            memory_percentiles: Percentiles {
                target: self.target_memory_percentile,
                lower: self.lower_bound_memory_percentile,
                upper: self.upper_bound_memory_percentile,
            },
            confidence_interval_cpu_seconds: self.confidence_interval_cpu_s,
            confidence_interval_memory_seconds: self.confidence_interval_memory_s,
            pod_min_cpu_millicores: self.pod_min_cpu_millicores,
            pod_min_memory_mb: self.pod_min_memory_mb,
            round_cpu_millicores: self.round_cpu_millicores,
            round_memory_bytes: self.round_memory_bytes,
            global_max_allowed: self.global_max_allowed.unwrap_or_default().resources(),
            gc_interval_seconds: self.gc_interval_s,
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Event {
    PodStart {
        #[serde(deserialize_with = "seconds")]
        t: i64,
        pod: String,
        revision: String,
        containers: Vec<String>,
    },
    PodStop {
        #[serde(deserialize_with = "seconds")]
        t: i64,
        pod: String,
    },
    Cpu(Samples),
    Memory(Samples),
    Oom(Oom),
    Tick {
        #[serde(deserialize_with = "seconds")]
        t: i64,
        #[serde(default)]
        checkpoint: bool,
    },
    RecommenderRestart {
        #[serde(deserialize_with = "seconds")]
        t: i64,
    },
}

#[derive(Deserialize)]
pub(super) struct Samples {
    #[serde(deserialize_with = "seconds")]
    pub(super) t: i64,
    #[serde(default, deserialize_with = "seconds")]
    pub(super) step: i64,
    pub(super) pod: String,
    pub(super) container: String,
    #[serde(alias = "millicores", alias = "bytes")]
    pub(super) values: Vec<i64>,
    #[serde(default)]
    pub(super) discarded: Vec<usize>,
}

#[derive(Deserialize)]
pub(super) struct Oom {
    #[serde(deserialize_with = "seconds")]
    pub(super) t: i64,
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) requested_memory_bytes: i64,
    #[serde(default)]
    pub(super) discarded: Vec<usize>,
}

/// Recorded result of one tick.
#[derive(Debug, Deserialize)]
pub(super) struct Tick {
    pub(super) containers: Vec<RawRecommendation>,
    pub(super) aggregates: Option<Vec<RawAggregate>>,
    pub(super) container_states: Option<Vec<RawContainerState>>,
    pub(super) saved_checkpoint: Option<Vec<RawCheckpoint>>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct RawAggregate {
    pub(super) container: String,
    pub(super) first_sample_t: Option<i64>,
    pub(super) last_sample_t: Option<i64>,
    pub(super) total_samples_count: u64,
    pub(super) cpu: RawHistogram,
    pub(super) memory: RawHistogram,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct RawHistogram {
    pub(super) reference_t: Option<i64>,
    pub(super) total_weight: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct RawContainerState {
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) last_cpu_sample_t: Option<i64>,
    pub(super) memory_window_end_t: Option<i64>,
    pub(super) max_memory_peak_bytes: i64,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct RawCheckpoint {
    pub(super) container: String,
    pub(super) first_sample_t: Option<i64>,
    pub(super) last_sample_t: Option<i64>,
    pub(super) total_samples_count: u64,
    pub(super) cpu: RawSavedHistogram,
    pub(super) memory: RawSavedHistogram,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct RawSavedHistogram {
    pub(super) reference_t: Option<i64>,
    pub(super) total_weight: f64,
    pub(super) bucket_weights: BTreeMap<usize, u32>,
}
