//! What can be changed on a cluster, and at which cost. Each actuator compares what is desired with what is there and
//! names the requests that close the difference; an executor sends them.
//!
//! | Actuator | Changes | Costs |
//! |---|---|---|
//! | `revision-annotations` | target, least and most pods, window of a Knative Service | one patch; no new Revision |
//! | `pod-resize` | CPU and memory of running pods | one patch per pod; no restart |
//! | `deployment-scale` | number of pods | one patch; new pods start cold |
//! | `new-revision` | hard limit of requests per pod | a new Revision: every pod starts cold |

mod annotations;
mod execute;
mod new_revision;
mod resize;
mod scale;

use std::collections::BTreeMap;

pub use execute::{ActionError, execute};

use crate::cluster::{Key, TargetFacts};
use crate::desired::{Desired, Scope};
use crate::discovery::Offers;
use crate::resource_policy::{ResourcePolicySpec, TargetKind};
use crate::size::ContainerSize;

pub use annotations::settings_of;

/// The name under which changes are made, as in `kubectl get -o yaml --show-managed-fields`.
pub const FIELD_MANAGER: &str = "windfall";

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Another size for a running pod.
    ResizePod {
        /// The pod.
        pod: Key,
        /// The container.
        container: String,
        /// Its new size.
        size: ContainerSize,
    },
    /// Another number of pods.
    Scale {
        /// The Deployment.
        deployment: Key,
        /// Its new number.
        replicas: u32,
    },
    /// Notes on a Deployment what its user had, or removes that note.
    NoteReplicas {
        /// The Deployment.
        deployment: Key,
        /// What to note.
        replicas: Option<u32>,
    },
    /// Other annotations for Knative's autoscaler, with the note of what its user had.
    Annotate {
        /// The Revision.
        revision: Key,
        /// Keys without prefix; nothing removes one.
        set: BTreeMap<String, Option<String>>,
        /// The note; empty removes it.
        original: BTreeMap<String, Option<String>>,
    },
    /// Another hard limit, which makes a new Revision.
    NewRevision {
        /// The Service.
        service: Key,
        /// The limit.
        container_concurrency: u32,
        /// What to note as the user's; nothing removes the note.
        original: Option<u32>,
    },
}

impl Action {
    /// The actuator's name, for logs and counters.
    pub const fn actuator(&self) -> &'static str {
        match self {
            Self::ResizePod { .. } => resize::NAME,
            Self::Scale { .. } | Self::NoteReplicas { .. } => scale::NAME,
            Self::Annotate { .. } => annotations::NAME,
            Self::NewRevision { .. } => new_revision::NAME,
        }
    }
}

/// What a change costs beyond its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// One request.
    Request,
    /// One request per pod.
    RequestPerPod,
    /// New pods start cold.
    ColdStart,
    /// All pods are replaced.
    Replacement,
}

/// A way to change something.
pub trait Actuator: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it costs.
    fn cost(&self) -> Cost;
    /// Whether this cluster and this policy have it.
    fn is_offered(&self, offers: &Offers, spec: &ResourcePolicySpec) -> bool;
    /// The requests that bring `target` closer to `desired`; none when it is there.
    fn pursue(&self, target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Vec<Action>;
    /// The requests that give the user back what the controller changed; none when nothing is left.
    fn restore(&self, target: &TargetFacts<'_>) -> Vec<Action>;
}

/// All actuators, the cheapest first.
pub const ALL: [&dyn Actuator; 4] = [
    &annotations::RevisionAnnotations,
    &resize::PodResize,
    &scale::DeploymentScale,
    &new_revision::NewRevision,
];

/// The requests that bring `target` closer to `desired`.
pub fn pursue(
    target: &TargetFacts<'_>,
    desired: &Desired,
    scope: Scope,
    offers: &Offers,
    spec: &ResourcePolicySpec,
) -> Vec<Action> {
    let offered = ALL.iter().filter(|one| one.is_offered(offers, spec));
    offered.flat_map(|one| one.pursue(target, desired, scope)).collect()
}

/// The requests that give the user back what was changed.
pub fn restore(
    target: &TargetFacts<'_>,
    offers: &Offers,
    spec: &ResourcePolicySpec,
) -> Vec<Action> {
    // A restore undoes what an earlier spec allowed, so only the cluster is asked.
    let anything = ResourcePolicySpec {
        actuation: crate::resource_policy::Actuation { new_revisions: true },
        ..spec.clone()
    };
    let offered = ALL.iter().filter(|one| one.is_offered(offers, &anything));
    offered.flat_map(|one| one.restore(target)).collect()
}

/// The requests with which the controller steps back for other autoscalers: sizes are given back unless one of them
/// sizes pods, and the number is left to them.
pub fn step_back(target: &TargetFacts<'_>, rivals: &[String], offers: &Offers) -> Vec<Action> {
    let mut actions = Vec::new();
    if offers.resize && !crate::controller::sizes_pods(rivals) {
        actions.extend(resize::PodResize.restore(target));
    }
    if target.deployment.1.original_replicas.is_some() {
        let deployment = target.deployment.0.clone();
        actions.push(Action::NoteReplicas { deployment, replicas: None });
    }
    actions.extend(annotations::RevisionAnnotations.restore(target));
    actions
}

/// Whether the target is a Knative Service.
fn is_knative(spec: &ResourcePolicySpec) -> bool {
    spec.target_ref.kind == TargetKind::Service
}

#[cfg(test)]
mod tests;
