//! The cluster as the watches last showed it: plain facts, a few hundred bytes per pod instead of the whole object, so
//! that 10,000 pods stay far below the memory bound. Watches feed it and everything else reads it, which is also how
//! tests play any cluster they like.

mod facts;
mod knative;
mod rivals;
mod table;

use std::sync::Arc;

pub use facts::{
    ContainerFacts, DeploymentFacts, NodeFacts, ORIGINAL_REPLICAS, PodFacts, ResizeState,
    Termination, deployment_of,
};
pub use knative::{
    AUTOSCALING, ORIGINAL_ANNOTATIONS, ORIGINAL_CONCURRENCY, PodAutoscalerFacts, RevisionFacts,
    ServiceFacts,
};
pub use rivals::{Rival, RivalKind};
pub use table::Table;

use crate::resource_policy::{ResourcePolicy, TargetKind, TargetReference};

/// Namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Everything that is watched.
#[derive(Debug, Default)]
pub struct Cluster {
    /// What users ask for.
    pub policies: Table<Arc<ResourcePolicy>>,
    /// Deployments, those of Knative included.
    pub deployments: Table<DeploymentFacts>,
    /// Pods that belong to a Deployment.
    pub pods: Table<PodFacts>,
    /// Knative Services.
    pub services: Table<ServiceFacts>,
    /// Their Revisions.
    pub revisions: Table<RevisionFacts>,
    /// Knative's autoscalers, one per Revision.
    pub pod_autoscalers: Table<PodAutoscalerFacts>,
    /// Horizontal pod autoscalers.
    pub horizontal: Table<Rival>,
    /// Vertical pod autoscalers.
    pub vertical: Table<Rival>,
    /// Scaled objects of KEDA.
    pub scaled_objects: Table<Rival>,
    /// Nodes, whose namespace is empty.
    pub nodes: Table<NodeFacts>,
}

/// A workload with all that belongs to it.
#[derive(Clone, Debug)]
pub struct TargetFacts<'a> {
    /// What runs the pods.
    pub deployment: (&'a Key, &'a DeploymentFacts),
    /// The Revision behind it, of a Knative Service.
    pub revision: Option<(&'a Key, &'a RevisionFacts)>,
    /// The Knative Service.
    pub service: Option<(&'a Key, &'a ServiceFacts)>,
    /// Its pods that are not being deleted, in the order of their names.
    pub pods: Vec<(&'a Key, &'a PodFacts)>,
    /// Other Revisions of the Service that still carry settings of the controller.
    pub noted_revisions: Vec<(&'a Key, &'a RevisionFacts)>,
    /// Knative's autoscaler of that Revision.
    pub pod_autoscaler: Option<&'a PodAutoscalerFacts>,
    /// The managed container in its template.
    pub container: &'a ContainerFacts,
}

/// Why a target cannot be managed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetProblem {
    /// It does not exist, or the watch has not shown it yet.
    #[error("there is no {kind:?} `{key}`")]
    Missing {
        /// What it should be.
        kind: TargetKind,
        /// Its name.
        key: Key,
    },
    /// A Knative Service that never had a ready Revision.
    #[error("Service `{0}` has no ready Revision")]
    NoRevision(Key),
    /// The container that the policy names is not there.
    #[error("`{key}` has no container `{container}`; it has {known}")]
    NoContainer {
        /// The Deployment.
        key: Key,
        /// The container asked for.
        container: String,
        /// The containers there are.
        known: String,
    },
    /// A size could only be added by changing what kind of pod it is.
    #[error(
        "container `{container}` of `{key}` requests no CPU or no memory; give it requests to have it managed"
    )]
    NoRequests {
        /// The Deployment.
        key: Key,
        /// The container.
        container: String,
    },
}

/// The sidecar of Knative, which is never sized.
pub const QUEUE_PROXY: &str = "queue-proxy";

impl Cluster {
    /// The workload behind a reference.
    pub fn target(
        &self,
        namespace: &str,
        reference: &TargetReference,
    ) -> Result<TargetFacts<'_>, TargetProblem> {
        let named = Key::new(namespace, &reference.name);
        let missing = || TargetProblem::Missing { kind: reference.kind, key: named.clone() };
        let (service, revision, deployment) = match reference.kind {
            TargetKind::Deployment => {
                (None, None, self.deployments.entry(&named).ok_or_else(missing)?)
            }
            TargetKind::Service => {
                let service = self.services.entry(&named).ok_or_else(missing)?;
                let no_revision = || TargetProblem::NoRevision(named.clone());
                let name = service.1.latest_ready.as_ref().ok_or_else(no_revision)?;
                let revision =
                    self.revisions.entry(&Key::new(namespace, name)).ok_or_else(no_revision)?;
                let deployment = self.deployment_of(revision.0);
                let deployment = self.deployments.entry(&deployment).ok_or_else(no_revision)?;
                (Some(service), Some(revision), deployment)
            }
        };
        let container = managed_container(deployment, reference.container.as_deref())?;
        let pods = self.pods_of(deployment.0);
        let pod_autoscaler = revision.and_then(|(key, _)| self.pod_autoscalers.get(key));
        let noted_revisions = match (service, revision) {
            (Some((service, _)), Some((present, _))) => self.noted_revisions(service, present),
            _ => Vec::new(),
        };
        Ok(TargetFacts {
            deployment,
            revision,
            service,
            noted_revisions,
            pods,
            pod_autoscaler,
            container,
        })
    }

    fn noted_revisions(&self, service: &Key, present: &Key) -> Vec<(&Key, &RevisionFacts)> {
        let first = Key::new(&service.namespace, "");
        self.revisions
            .from(&first)
            .take_while(|(key, _)| key.namespace == service.namespace)
            .filter(|(key, revision)| {
                *key != present
                    && !revision.original.is_empty()
                    && revision.service.as_deref() == Some(service.name.as_str())
            })
            .collect()
    }

    /// The Deployment of a Revision: its PodAutoscaler knows, and most are named by one rule.
    fn deployment_of(&self, revision: &Key) -> Key {
        let known = self.pod_autoscalers.get(revision).and_then(|known| known.target.clone());
        let name = known.unwrap_or_else(|| format!("{}-deployment", revision.name));
        Key::new(&revision.namespace, name)
    }

    /// The living pods of a Deployment, in the order of their names.
    pub fn pods_of(&self, deployment: &Key) -> Vec<(&Key, &PodFacts)> {
        let mut prefix = format!("{}-", deployment.name);
        // The API server cuts what it adds five random characters to.
        prefix.truncate(58);
        let first = Key::new(&deployment.namespace, prefix);
        self.pods
            .from(&first)
            .take_while(|(key, _)| {
                key.namespace == first.namespace && key.name.starts_with(&first.name)
            })
            .filter(|(_, pod)| pod.deployment == deployment.name && !pod.is_going)
            .collect()
    }

    /// Autoscalers of others on the same workload.
    pub fn rivals_of(&self, target: &TargetFacts<'_>) -> Vec<(RivalKind, &Key)> {
        let mut names: Vec<(&str, &Key)> = vec![("Deployment", target.deployment.0)];
        names.extend(target.service.map(|(key, _)| ("Service", key)));
        let mut found = Vec::new();
        for (kind, table) in [
            (RivalKind::Horizontal, &self.horizontal),
            (RivalKind::Vertical, &self.vertical),
            (RivalKind::Keda, &self.scaled_objects),
        ] {
            let namespace = &target.deployment.0.namespace;
            let first = Key::new(namespace, "");
            let in_namespace =
                table.from(&first).take_while(|(key, _)| key.namespace == *namespace);
            found.extend(
                in_namespace.filter(|(_, rival)| rival.acts_on(&names)).map(|(key, _)| (kind, key)),
            );
        }
        // An HPA that KEDA made is KEDA's, and is named once.
        let has_keda = found.iter().any(|(kind, _)| *kind == RivalKind::Keda);
        found.retain(|(kind, key)| {
            !(has_keda && *kind == RivalKind::Horizontal && key.name.starts_with("keda-hpa-"))
        });
        found
    }
}

fn managed_container<'a>(
    (key, deployment): (&'a Key, &'a DeploymentFacts),
    wanted: Option<&str>,
) -> Result<&'a ContainerFacts, TargetProblem> {
    let mut containers = deployment.containers.iter().filter(|one| one.name != QUEUE_PROXY);
    let found = match wanted {
        Some(name) => containers.find(|one| one.name == name),
        None => containers.next(),
    };
    let known = || {
        let names: Vec<&str> = deployment.containers.iter().map(|one| one.name.as_str()).collect();
        names.join(", ")
    };
    let found = found.ok_or_else(|| TargetProblem::NoContainer {
        key: key.clone(),
        container: wanted.unwrap_or("(any)").to_owned(),
        known: known(),
    })?;
    if found.size.allocation().is_none() {
        let container = found.name.clone();
        return Err(TargetProblem::NoRequests { key: key.clone(), container });
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
