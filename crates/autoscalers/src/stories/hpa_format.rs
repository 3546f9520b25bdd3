//! The recorded form of the HorizontalPodAutoscaler's stories, and its translation.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::hpa::{
    Behavior, Change, Container, ContainerUsage, ControllerSettings, Measured, MetricSpec,
    MetricTarget, Phase, Pod, RatePolicy, Ready, Resource, Sample, Seen, SelectPolicy, Source,
    Spec, Usage, WrittenRules,
};
use crate::quantity::Quantity;

#[derive(Deserialize)]
pub(super) struct Story {
    pub(super) id: String,
    #[serde(default)]
    controller: RawController,
    spec: RawSpec,
    #[serde(default)]
    pod_containers: Vec<RawContainer>,
    pub(super) syncs: Vec<Sync>,
}

#[derive(Default, Deserialize)]
struct RawController {
    tolerance: Option<f64>,
    downscale_stabilization_s: Option<f64>,
    cpu_initialization_period_s: Option<f64>,
    initial_readiness_delay_s: Option<f64>,
    scale_to_zero_enabled: Option<bool>,
}

#[derive(Deserialize)]
struct RawSpec {
    min_replicas: Option<i32>,
    max_replicas: i32,
    #[serde(default)]
    metrics: Vec<RawMetric>,
    behavior: Option<RawBehavior>,
}

#[derive(Deserialize)]
struct RawMetric {
    r#type: String,
    resource: Option<String>,
    container: Option<String>,
    name: Option<String>,
    target_utilization_percent: Option<i32>,
    target_average_m: Option<i64>,
    target_value_m: Option<i64>,
}

#[derive(Deserialize)]
struct RawBehavior {
    scale_up: Option<RawRules>,
    scale_down: Option<RawRules>,
}

#[derive(Deserialize)]
struct RawRules {
    stabilization_window_s: Option<u32>,
    select_policy: Option<String>,
    policies: Option<Vec<RawPolicy>>,
    tolerance: Option<String>,
}

#[derive(Deserialize)]
struct RawPolicy {
    r#type: String,
    value: i32,
    period_s: u32,
}

#[derive(Deserialize)]
struct RawContainer {
    name: String,
    cpu_request_m: Option<i64>,
    memory_request_bytes: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct Sync {
    pub(super) t: f64,
    replicas: i32,
    status_replicas: i32,
    #[serde(default)]
    pods: Vec<RawPod>,
    #[serde(default)]
    orphans: Vec<RawPod>,
    #[serde(default)]
    object: BTreeMap<String, Option<i64>>,
    #[serde(default)]
    external: BTreeMap<String, Option<Vec<i64>>>,
    pub(super) out: Out,
}

#[derive(Deserialize)]
struct RawPod {
    name: String,
    phase: Option<String>,
    #[serde(default)]
    deleted: bool,
    ready: Option<String>,
    ready_changed_at: Option<f64>,
    started_at: Option<f64>,
    containers: Option<Vec<RawContainer>>,
    usage: Option<RawUsage>,
    #[serde(default)]
    custom: BTreeMap<String, RawSample>,
}

#[derive(Deserialize)]
struct RawUsage {
    at: f64,
    window_s: f64,
    containers: Vec<RawContainerUsage>,
}

#[derive(Deserialize)]
struct RawContainerUsage {
    name: String,
    cpu_m: Option<i64>,
    memory_bytes: Option<i64>,
}

#[derive(Deserialize)]
struct RawSample {
    value_m: i64,
    at: f64,
    window_s: f64,
}

/// Recorded result of a sync.
#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Out {
    pub(super) desired: i32,
    pub(super) rescaled: bool,
    #[serde(default)]
    pub(super) failed: bool,
    pub(super) reason: Option<String>,
    pub(super) able_to_scale: Option<String>,
    pub(super) scaling_active: Option<String>,
    pub(super) scaling_limited: Option<String>,
    pub(super) metrics_desired: Option<i32>,
    pub(super) stabilized: Option<i32>,
    pub(super) rate_limit: Option<i32>,
    pub(super) metrics: Option<Vec<OutMetric>>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct OutMetric {
    pub(super) proposal: Option<i32>,
    pub(super) error: Option<String>,
    pub(super) utilization_percent: Option<i32>,
    pub(super) average_m: Option<i64>,
    pub(super) value_m: Option<i64>,
    pub(super) pod_groups: Option<OutGroups>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct OutGroups {
    pub(super) ready: usize,
    pub(super) unready: usize,
    pub(super) missing: usize,
    pub(super) ignored: usize,
}

/// Times are whole milliseconds, written as seconds.
fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

impl Story {
    pub(super) fn settings(&self) -> ControllerSettings {
        let usual = ControllerSettings::default();
        let raw = &self.controller;
        let or = |seconds: Option<f64>, usual| seconds.map_or(usual, ms);
        ControllerSettings {
            tolerance: raw.tolerance.unwrap_or(usual.tolerance),
            downscale_stabilization_ms: or(
                raw.downscale_stabilization_s,
                usual.downscale_stabilization_ms,
            ),
            cpu_initialization_period_ms: or(
                raw.cpu_initialization_period_s,
                usual.cpu_initialization_period_ms,
            ),
            initial_readiness_delay_ms: or(
                raw.initial_readiness_delay_s,
                usual.initial_readiness_delay_ms,
            ),
            scale_to_zero_enabled: raw.scale_to_zero_enabled.unwrap_or(false),
        }
    }

    pub(super) fn spec(&self) -> Result<Spec, String> {
        let raw = &self.spec;
        let rules = |rules: &Option<RawRules>| rules.as_ref().map(RawRules::written).transpose();
        let behavior = match &raw.behavior {
            None => None,
            Some(both) => {
                Some(Behavior::defaulted(rules(&both.scale_up)?, rules(&both.scale_down)?))
            }
        };
        Ok(Spec {
            min_replicas: raw.min_replicas.unwrap_or(1),
            max_replicas: raw.max_replicas,
            metrics: raw.metrics.iter().map(RawMetric::spec).collect::<Result<_, _>>()?,
            behavior,
        })
    }

    pub(super) fn seen(&self, sync: &Sync) -> Result<Seen, String> {
        let pod = |raw: &RawPod| {
            let containers = raw.containers.as_ref().unwrap_or(&self.pod_containers);
            raw.pod(containers.iter().map(RawContainer::container).collect())
        };
        Ok(Seen {
            now_ms: ms(sync.t),
            replicas: sync.replicas,
            status_replicas: sync.status_replicas,
            pods: sync.pods.iter().map(pod).collect::<Result<_, _>>()?,
            orphans: sync.orphans.iter().map(|raw| (raw.name.clone(), raw.measured())).collect(),
            object: sync.object.clone(),
            external: sync.external.clone(),
        })
    }
}

impl RawMetric {
    fn spec(&self) -> Result<MetricSpec, String> {
        let named = |what: &Option<String>, field: &str| {
            what.clone().ok_or(format!("a metric of type {} lacks its {field}", self.r#type))
        };
        let resource = || match named(&self.resource, "resource")?.as_str() {
            "cpu" => Ok(Resource::Cpu),
            "memory" => Ok(Resource::Memory),
            other => Err(format!("resource is {other:?}, allowed are cpu and memory")),
        };
        let source = match self.r#type.as_str() {
            "Resource" => Source::Resource(resource()?),
            "ContainerResource" => {
                Source::ContainerResource(resource()?, named(&self.container, "container")?)
            }
            "Pods" => Source::Pods(named(&self.name, "name")?),
            "Object" => {
                Source::Object { metric: named(&self.name, "name")?, kind: "Service".to_owned() }
            }
            "External" => Source::External(named(&self.name, "name")?),
            other => return Err(format!("metric type is {other:?}")),
        };
        let utilization = self.target_utilization_percent.map(MetricTarget::Utilization);
        let target = utilization
            .or(self.target_average_m.map(MetricTarget::Average))
            .or(self.target_value_m.map(MetricTarget::Value))
            .ok_or("a metric lacks its target")?;
        Ok(MetricSpec { source, target })
    }
}

impl RawRules {
    fn written(&self) -> Result<WrittenRules, String> {
        let select = |text: &String| match text.as_str() {
            "Max" => Ok(SelectPolicy::Max),
            "Min" => Ok(SelectPolicy::Min),
            "Disabled" => Ok(SelectPolicy::Disabled),
            other => Err(format!("select_policy is {other:?}")),
        };
        let policy = |raw: &RawPolicy| {
            let change = match raw.r#type.as_str() {
                "Pods" => Change::Pods(raw.value),
                "Percent" => Change::Percent(raw.value),
                other => return Err(format!("policy type is {other:?}")),
            };
            Ok(RatePolicy { change, period_seconds: raw.period_s })
        };
        let policies = self.policies.as_ref();
        let tolerance = self.tolerance.as_ref().map(|text| text.parse::<Quantity>()).transpose();
        Ok(WrittenRules {
            stabilization_window_seconds: self.stabilization_window_s,
            select_policy: self.select_policy.as_ref().map(select).transpose()?,
            policies: policies.map(|list| list.iter().map(policy).collect()).transpose()?,
            tolerance: tolerance.map_err(|error| error.to_string())?.map(Quantity::approximate),
        })
    }
}

impl RawContainer {
    fn container(&self) -> Container {
        Container {
            name: self.name.clone(),
            cpu_request_m: self.cpu_request_m,
            memory_request_m: self.memory_request_bytes.map(|bytes| bytes.wrapping_mul(1000)),
        }
    }
}

impl RawPod {
    fn pod(&self, containers: Vec<Container>) -> Result<Pod, String> {
        let phase = match self.phase.as_deref() {
            None | Some("Running") => Phase::Running,
            Some("Pending") => Phase::Pending,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            Some(other) => return Err(format!("pod {}: phase is {other:?}", self.name)),
        };
        let ready = match self.ready.as_deref() {
            None => None,
            Some("True") => Some(Ready::True),
            Some("False") => Some(Ready::False),
            Some("Unknown") => Some(Ready::Unknown),
            Some(other) => return Err(format!("pod {}: ready is {other:?}", self.name)),
        };
        Ok(Pod {
            name: self.name.clone(),
            phase,
            is_deleted: self.deleted,
            ready: ready.map(|ready| (ready, self.ready_changed_at.map_or(0, ms))),
            started_at_ms: self.started_at.map(ms),
            containers,
            measured: self.measured(),
        })
    }

    fn measured(&self) -> Measured {
        let usage = self.usage.as_ref().map(|usage| Usage {
            at_ms: ms(usage.at),
            window_ms: ms(usage.window_s),
            containers: (usage.containers.iter())
                .map(|it| ContainerUsage {
                    name: it.name.clone(),
                    cpu_m: it.cpu_m,
                    memory_m: it.memory_bytes.map(|bytes| bytes.wrapping_mul(1000)),
                })
                .collect(),
        });
        let custom = self.custom.iter().map(|(name, it)| {
            let sample =
                Sample { value_m: it.value_m, at_ms: ms(it.at), window_ms: ms(it.window_s) };
            (name.clone(), sample)
        });
        Measured { usage, custom: custom.collect() }
    }
}
