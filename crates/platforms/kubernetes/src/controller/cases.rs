//! What each policy calls for, from its spec and what is in the cluster.

use std::sync::Arc;

use kube::ResourceExt;

use super::GroupKey;
use crate::cluster::{Cluster, Key, RivalKind, TargetProblem};
use crate::desired::Scope;
use crate::resource_policy::{Mode, ResourcePolicy};

/// What keeps a deleted policy until everything is given back.
pub const FINALIZER: &str = "windfall.dev/restore";

/// A policy and what it calls for.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// Its key.
    pub key: Key,
    /// The object.
    pub policy: Arc<ResourcePolicy>,
    /// What it calls for.
    pub case: Case,
}

/// What a policy calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// To be decided about.
    Managed {
        /// What is changed.
        scope: Scope,
        /// Autoscalers of others on the same workload, or another policy.
        rivals: Vec<String>,
    },
    /// Switched off: what was changed is given back.
    Off,
    /// Deleted: what was changed is given back, then it may go.
    Leaving,
    /// Its target cannot be managed.
    Broken(TargetProblem),
}

impl Case {
    /// Whether a policy decides about it.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Managed { .. })
    }

    /// Whether it is being deleted.
    pub fn is_leaving(&self) -> bool {
        matches!(self, Self::Leaving)
    }

    /// What is changed.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Managed { scope, .. } => *scope,
            Self::Off | Self::Leaving | Self::Broken(_) => Scope::Nothing,
        }
    }
}

impl Sorted {
    /// Whether it waits for the controller before it goes.
    pub fn has_finalizer(&self) -> bool {
        self.policy.finalizers().iter().any(|one| one == FINALIZER)
    }

    pub(super) fn group(&self) -> GroupKey {
        let spec = &self.policy.spec;
        (spec.policy.spelling().to_owned(), spec.target_ref.kind)
    }
}

/// All policies with what they call for; nothing but to be given back, if `give_back`.
pub(super) fn sort(cluster: &Cluster, give_back: bool) -> Vec<Sorted> {
    let mut taken = std::collections::BTreeMap::new();
    let mut sorted = Vec::new();
    for (key, policy) in cluster.policies.iter() {
        let case = match case(cluster, key, policy, &mut taken) {
            Case::Managed { .. } if give_back => Case::Off,
            case => case,
        };
        sorted.push(Sorted { key: key.clone(), policy: Arc::clone(policy), case });
    }
    sorted
}

fn case<'a>(
    cluster: &'a Cluster,
    key: &'a Key,
    policy: &ResourcePolicy,
    taken: &mut std::collections::BTreeMap<&'a Key, &'a Key>,
) -> Case {
    if policy.metadata.deletion_timestamp.is_some() {
        return Case::Leaving;
    }
    if policy.spec.mode == Mode::Off {
        return Case::Off;
    }
    let target = match cluster.target(&key.namespace, &policy.spec.target_ref) {
        Ok(target) => target,
        Err(problem) => return Case::Broken(problem),
    };
    let mut rivals: Vec<String> = cluster
        .rivals_of(&target)
        .into_iter()
        .map(|(kind, key)| format!("{} {}", kind.word(), key.name))
        .collect();
    if let Some(class) =
        target.pod_autoscaler.map(|one| one.class.as_str()).filter(|class| is_foreign(class))
    {
        rivals.push(format!("autoscaler class {class}"));
    }
    // The first policy by name has a workload; a second one would undo its work.
    if let Some(first) = taken.insert(target.deployment.0, key) {
        taken.insert(target.deployment.0, first);
        rivals.push(format!("ResourcePolicy {}", first.name));
    }
    let scope = match (policy.spec.mode, rivals.is_empty()) {
        (Mode::Auto, true) => Scope::Everything,
        (Mode::Canary, true) => {
            Scope::Share(policy.spec.canary.map_or(10, |canary| canary.share_percent))
        }
        (Mode::Auto | Mode::Canary | Mode::Recommend | Mode::Off, _) => Scope::Nothing,
    };
    Case::Managed { scope, rivals }
}

/// Whether a class of Knative's autoscaler is not the one whose annotations the controller sets.
fn is_foreign(class: &str) -> bool {
    !class.is_empty() && class != "kpa.autoscaling.knative.dev"
}

/// Whether one of these rivals sizes pods.
pub fn sizes_pods(rivals: &[String]) -> bool {
    rivals.iter().any(|rival| {
        rival.starts_with(RivalKind::Vertical.word()) || rival.starts_with("ResourcePolicy")
    })
}
