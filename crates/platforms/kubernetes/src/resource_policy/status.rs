//! What the controller answers. Written only when something a reader would act on has changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcePolicyStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The sizes and the number of pods that the policy recommends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// The last decision and its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<Decided>,
    /// What is in force because of this policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedChanges>,
    /// What the user had, and gets back when the policy is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// The last automatic return to what the user had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted: Option<Reverted>,
    /// Ready, Measured, Applied, Conflict and Reverted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Sizes and number of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Recommendation {
    /// One entry per managed container.
    pub containers: Vec<ContainerRecommendation>,
    /// Number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Requests that one pod should serve at the same time, on Knative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How sure the policy is, percent: 100 from a day of measurements on.
    pub confidence_percent: u32,
    /// Measurements behind it.
    pub samples: u64,
}

/// Sizes of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRecommendation {
    /// Its name.
    pub container_name: String,
    /// The recommended size.
    pub target: Size,
    /// The size its user wrote.
    pub user: Size,
}

/// CPU request and memory limit, as Kubernetes writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Size {
    /// Cores.
    pub cpu: String,
    /// Bytes.
    pub memory: String,
}

/// A decision and its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Decided {
    /// When, RFC 3339.
    pub time: String,
    /// Who.
    pub policy: String,
    /// Why, in one sentence; what safeguards held back is part of it.
    pub reason: String,
}

/// What is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedChanges {
    /// Pods there are.
    pub pods: u32,
    /// Pods that have another size than the user's.
    pub resized: u32,
    /// Pods whose node has no room for their new size now.
    pub deferred: u32,
    /// Pods whose new size their node will never hold.
    pub infeasible: u32,
    /// Replicas that were set, where the policy sets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
}

/// What the user had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Original {
    /// The size in the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Replicas before the first change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The hard limit of requests per pod before the first new Revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_concurrency: Option<u32>,
    /// Annotations of Revisions before the first change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<OriginalRevision>,
}

/// Annotations of a Revision before the first change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OriginalRevision {
    /// The Revision.
    pub name: String,
    /// `key=value`, or `key` alone where there was no such annotation.
    pub annotations: Vec<String>,
}

/// An automatic return to what the user had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Reverted {
    /// When, RFC 3339.
    pub time: String,
    /// Why.
    pub reason: String,
    /// Returns in a row; each doubles the time until the next try.
    pub times: u32,
    /// Nothing is changed before this, RFC 3339.
    pub until: String,
}

/// One aspect of the state, as in other Kubernetes objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Which aspect.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word in CamelCase.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// When the status last changed, RFC 3339.
    pub last_transition_time: String,
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
