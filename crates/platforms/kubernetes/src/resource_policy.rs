//! The custom resource: what a user asks for. Shaped like VPA and the proposed multidimensional pod autoscaler, so that
//! a reader of either knows where to look.

#![expect(unreachable_pub, reason = "the derive of the schema copies each type into a function")]
#![expect(clippy::duplicated_attributes, reason = "several printed columns have the same type")]

mod status;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use status::{
    AppliedChanges, Condition, ContainerRecommendation, Decided, Original, OriginalRevision,
    Recommendation, ResourcePolicyStatus, Reverted, Size,
};

/// The API group.
pub const GROUP: &str = "windfall.dev";
/// The version of the API.
pub const VERSION: &str = "v1alpha1";

/// How the resources of one workload are managed.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "windfall.dev",
    version = "v1alpha1",
    kind = "ResourcePolicy",
    plural = "resourcepolicies",
    shortname = "rpol",
    category = "autoscaling",
    namespaced,
    status = "ResourcePolicyStatus",
    derive = "PartialEq",
    doc = "Manages size and number of the pods of one Deployment or Knative Service.",
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRef.name"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(
        name = "CPU",
        type_ = "string",
        json_path = ".status.recommendation.containers[0].target.cpu"
    ),
    printcolumn(
        name = "Memory",
        type_ = "string",
        json_path = ".status.recommendation.containers[0].target.memory"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.recommendation.replicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("self.mode != 'Canary' || has(self.canary)").message("mode Canary needs canary.sharePercent"),
)]
pub struct ResourcePolicySpec {
    /// The workload, in the same namespace.
    pub target_ref: TargetReference,
    /// What the controller does with its recommendation.
    #[serde(default)]
    pub mode: Mode,
    /// Whether nothing is changed for now. Sizes that are in force stay; the recommendation goes on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Which pods are sized in mode Canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// What the workload should achieve.
    #[serde(default)]
    pub goals: Goals,
    /// What is never exceeded.
    #[serde(default)]
    pub bounds: Bounds,
    /// Who decides.
    #[serde(default)]
    pub policy: PolicyReference,
    /// What the controller may use.
    #[serde(default)]
    pub actuation: Actuation,
}

/// A workload by its name.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("(self.kind == 'Deployment' && self.apiVersion == 'apps/v1') || (self.kind == 'Service' && self.apiVersion == 'serving.knative.dev/v1')").message("targetRef is a Deployment of apps/v1 or a Service of serving.knative.dev/v1"),
    validation = Rule::new("self == oldSelf").message("targetRef cannot be changed; create another ResourcePolicy"),
)]
pub struct TargetReference {
    /// `apps/v1` or `serving.knative.dev/v1`.
    #[serde(default = "apps_v1")]
    pub api_version: String,
    /// `Deployment` or `Service`.
    pub kind: TargetKind,
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The container that is sized; the first one, or the one with the code of a Knative Service, if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub container: Option<String>,
}

/// What can be managed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum TargetKind {
    /// A Deployment of `apps/v1`.
    Deployment,
    /// A Service of Knative Serving.
    Service,
}

/// What the controller does with its recommendation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Mode {
    /// Nothing is measured, recommended or changed; what was changed is restored.
    Off,
    /// The recommendation is written to the status. Nothing else changes.
    #[default]
    Recommend,
    /// A share of the pods is sized; the number of pods is left alone.
    Canary,
    /// All pods are sized and scaled.
    Auto,
}

impl Mode {
    /// The word that users write.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "Off",
            Self::Recommend => "Recommend",
            Self::Canary => "Canary",
            Self::Auto => "Auto",
        }
    }

    /// Whether pods are changed in this mode.
    pub const fn acts(self) -> bool {
        matches!(self, Self::Canary | Self::Auto)
    }
}

/// Which pods are sized in mode Canary.
#[derive(KubeSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Canary {
    /// So many percent of the pods, at least one.
    #[schemars(range(min = 1, max = 100))]
    pub share_percent: u32,
}

/// What the workload should achieve.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Goals {
    /// How long requests may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyGoal>,
    /// How many requests it must be able to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputGoal>,
    /// How much saving counts against speed: 0 keeps pods half empty, 100 nearly full.
    #[serde(default = "half")]
    #[schemars(range(min = 0, max = 100))]
    pub cost_weight_percent: u32,
}

impl Default for Goals {
    fn default() -> Self {
        Self { latency: None, throughput: None, cost_weight_percent: half() }
    }
}

/// How long requests may take.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyGoal {
    /// So many percent of the requests.
    #[serde(default = "ninety_five")]
    #[schemars(range(min = 1, max = 99))]
    pub percentile: u32,
    /// Take at most so long.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub milliseconds: u32,
    /// PromQL that returns this latency in seconds, for workloads without a queue-proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000))]
    pub query: Option<String>,
}

/// How many requests it must be able to serve.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ThroughputGoal {
    /// Room for so many requests per second is kept, whatever arrives now.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_second: u32,
    /// PromQL that returns the requests per second, for workloads without a queue-proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000))]
    pub query: Option<String>,
}

/// What is never exceeded.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bounds {
    /// Sizes of containers; the entry with a container's own name counts before the one with `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub containers: Vec<ContainerBounds>,
    /// Number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicaBounds>,
}

/// Sizes of one container.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.minAllowed) || !has(self.maxAllowed) || !has(self.minAllowed.cpu) || !has(self.maxAllowed.cpu) || quantity(self.minAllowed.cpu).compareTo(quantity(self.maxAllowed.cpu)) <= 0").message("minAllowed.cpu is above maxAllowed.cpu"),
    validation = Rule::new("!has(self.minAllowed) || !has(self.maxAllowed) || !has(self.minAllowed.memory) || !has(self.maxAllowed.memory) || quantity(self.minAllowed.memory).compareTo(quantity(self.maxAllowed.memory)) <= 0").message("minAllowed.memory is above maxAllowed.memory"),
)]
pub struct ContainerBounds {
    /// The container, or `*` for all that have no entry of their own.
    #[serde(default = "every")]
    #[schemars(length(min = 1, max = 63))]
    pub container_name: String,
    /// The least it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_allowed: Option<Amounts>,
    /// The most it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_allowed: Option<Amounts>,
}

/// CPU and memory as Kubernetes writes them, either one optional.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Amounts {
    /// Cores, for example `250m` or `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))").message("cpu is a quantity above 0, for example 250m"))]
    pub cpu: Option<String>,
    /// Bytes, for example `128Mi` or `1Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))").message("memory is a quantity above 0, for example 128Mi"))]
    pub memory: Option<String>,
}

/// Number of pods.
#[derive(KubeSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.min <= self.max").message("replicas.min is above replicas.max"))]
pub struct ReplicaBounds {
    /// At least so many.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10_000))]
    pub min: u32,
    /// At most so many.
    #[schemars(range(min = 1, max = 10_000))]
    pub max: u32,
}

/// Who decides.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!(has(self.name) && has(self.checkpoint))").message("policy has either a name or a checkpoint"))]
pub struct PolicyReference {
    /// A policy that decides at ticks: `windfall`, one of `windfall policies`, or two as `vpa+kpa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// A checkpoint of a trained policy, as a path inside the controller's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub checkpoint: Option<String>,
}

impl Default for PolicyReference {
    fn default() -> Self {
        Self { name: Some("windfall".to_owned()), checkpoint: None }
    }
}

impl PolicyReference {
    /// What the registry is asked for.
    pub fn spelling(&self) -> &str {
        self.checkpoint.as_deref().or(self.name.as_deref()).unwrap_or("windfall")
    }
}

/// What the controller may use.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Actuation {
    /// Whether a Knative Service may get a new Revision for another containerConcurrency. Each one starts cold.
    #[serde(default, skip_serializing_if = "is_false")]
    pub new_revisions: bool,
}

fn apps_v1() -> String {
    "apps/v1".to_owned()
}

fn every() -> String {
    "*".to_owned()
}

const fn half() -> u32 {
    50
}

const fn ninety_five() -> u32 {
    95
}

const fn one() -> u32 {
    1
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
