//! What is kept of Pods and Deployments.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Node, Pod, PodStatus};
use kube::ResourceExt;

use super::Key;
use crate::size::ContainerSize;

/// Where a Deployment notes the replicas that its user wrote, while the controller sets others.
pub const ORIGINAL_REPLICAS: &str = "windfall.dev/original-replicas";

/// A Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// Pods it should have.
    pub replicas: u32,
    /// Pods that can serve.
    pub ready: u32,
    /// The containers of its template.
    pub containers: Vec<ContainerFacts>,
    /// Replicas before the first change of the controller.
    pub original_replicas: Option<u32>,
}

/// A container, of a template or of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its name.
    pub name: String,
    /// What its spec says.
    pub size: ContainerSize,
    /// What is in force on the node; as in the spec, where the node does not say.
    pub in_force: Option<ContainerSize>,
    /// How often it was started again.
    pub restarts: u32,
    /// How it ended before its last start.
    pub terminated: Option<Termination>,
    /// Whether a resize of its memory or CPU would restart it.
    pub restarts_on_resize: bool,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// `OOMKilled`, `Error`, `Completed`.
    pub reason: String,
    /// When, seconds since 1970.
    pub at: i64,
}

/// What a node says about a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResizeState {
    /// Nothing is pending.
    #[default]
    Settled,
    /// Under way.
    InProgress,
    /// The node has no room now.
    Deferred(String),
    /// The node will never have the room.
    Infeasible(String),
    /// The node tried and could not.
    Error(String),
}

/// A pod of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// The Deployment.
    pub deployment: String,
    /// Where it runs.
    pub node: Option<String>,
    /// Its address.
    pub address: Option<String>,
    /// Whether it can serve.
    pub is_ready: bool,
    /// Whether it runs; a pod without a node cannot be resized.
    pub is_running: bool,
    /// Whether it is being deleted or has ended.
    pub is_going: bool,
    /// When it became ready, seconds since 1970.
    pub ready_since: Option<i64>,
    /// When it was created, seconds since 1970.
    pub created: i64,
    /// Its containers.
    pub containers: Vec<ContainerFacts>,
    /// What its node says about a resize.
    pub resize: ResizeState,
}

impl PodFacts {
    /// The facts of a pod, if it belongs to a Deployment.
    pub fn read(pod: &Pod) -> Option<(Key, Self)> {
        let key = Key::new(pod.namespace()?, pod.name_any());
        let spec = pod.spec.as_ref()?;
        let empty = PodStatus::default();
        let status = pod.status.as_ref().unwrap_or(&empty);
        let phase = status.phase.as_deref().unwrap_or("Pending");
        let ready = condition(status, "Ready").filter(|(is_true, _)| *is_true);
        let statuses = status.container_statuses.as_deref().unwrap_or_default();
        let facts = Self {
            deployment: deployment_of(pod)?,
            node: spec.node_name.clone(),
            address: status.pod_ip.clone(),
            is_ready: ready.is_some(),
            is_running: phase == "Running",
            is_going: pod.metadata.deletion_timestamp.is_some()
                || matches!(phase, "Succeeded" | "Failed"),
            ready_since: ready.map(|(_, since)| since),
            created: pod.creation_timestamp().map_or(0, |time| time.0.as_second()),
            containers: spec.containers.iter().map(|one| running(one, statuses)).collect(),
            resize: resize_state(status),
        };
        Some((key, facts))
    }

    /// A container by its name.
    pub fn container(&self, name: &str) -> Option<&ContainerFacts> {
        self.containers.iter().find(|one| one.name == name)
    }
}

impl DeploymentFacts {
    /// The facts of a Deployment.
    pub fn read(deployment: &Deployment) -> Option<(Key, Self)> {
        let key = Key::new(deployment.namespace()?, deployment.name_any());
        let spec = deployment.spec.as_ref()?;
        let template = spec.template.spec.as_ref()?;
        let count = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok());
        let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
        let noted = deployment.annotations().get(ORIGINAL_REPLICAS);
        let facts = Self {
            replicas: count(spec.replicas).unwrap_or(1),
            ready: count(ready).unwrap_or(0),
            containers: template.containers.iter().map(|one| running(one, &[])).collect(),
            original_replicas: noted.and_then(|noted| noted.parse().ok()),
        };
        Some((key, facts))
    }
}

/// A node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// CPU that pods may request, millicores.
    pub millis: u32,
    /// Memory that pods may request, bytes.
    pub bytes: u64,
    /// Whether it runs pods.
    pub is_ready: bool,
}

impl NodeFacts {
    /// The facts of a node.
    pub fn read(node: &Node) -> Option<(Key, Self)> {
        let status = node.status.as_ref()?;
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let amount = |name: &str| Some(&status.allocatable.as_ref()?.get(name)?.0);
        let facts = Self {
            millis: amount("cpu").and_then(|text| crate::size::millicores(text)).unwrap_or(0),
            bytes: amount("memory").and_then(|text| crate::size::bytes(text)).unwrap_or(0),
            is_ready: conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True"),
        };
        Some((Key::new("", node.name_any()), facts))
    }
}

/// The Deployment of a pod: its ReplicaSet is named after the Deployment and the hash of the template.
pub fn deployment_of(pod: &Pod) -> Option<String> {
    let owner = pod.owner_references().iter().find(|owner| owner.kind == "ReplicaSet")?;
    let hash = pod.labels().get("pod-template-hash")?;
    let name = owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
    Some(name.to_owned())
}

fn running(container: &Container, statuses: &[ContainerStatus]) -> ContainerFacts {
    let status = statuses.iter().find(|status| status.name == container.name);
    let size = ContainerSize::read(container.resources.as_ref());
    let last = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref());
    let now = status.and_then(|status| status.state.as_ref()?.terminated.as_ref());
    let policies = container.resize_policy.as_deref().unwrap_or_default();
    ContainerFacts {
        name: container.name.clone(),
        size,
        in_force: status
            .and_then(|status| status.resources.as_ref())
            .map(|resources| ContainerSize::read(Some(resources))),
        restarts: status.and_then(|status| u32::try_from(status.restart_count).ok()).unwrap_or(0),
        terminated: now.or(last).map(|ended| Termination {
            reason: ended.reason.clone().unwrap_or_default(),
            at: ended.finished_at.as_ref().map_or(0, |time| time.0.as_second()),
        }),
        restarts_on_resize: policies.iter().any(|one| one.restart_policy == "RestartContainer"),
    }
}

/// Whether a condition is true, and since when.
fn condition(status: &PodStatus, kind: &str) -> Option<(bool, i64)> {
    let found = status.conditions.as_ref()?.iter().find(|one| one.type_ == kind)?;
    let since = found.last_transition_time.as_ref().map_or(0, |time| time.0.as_second());
    Some((found.status == "True", since))
}

fn resize_state(status: &PodStatus) -> ResizeState {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let find = |kind: &str| conditions.iter().find(|one| one.type_ == kind && one.status == "True");
    let said = |message: &Option<String>| message.clone().unwrap_or_default();
    if let Some(pending) = find("PodResizePending") {
        return match pending.reason.as_deref() {
            Some("Infeasible") => ResizeState::Infeasible(said(&pending.message)),
            _ => ResizeState::Deferred(said(&pending.message)),
        };
    }
    match find("PodResizeInProgress") {
        Some(failing) if failing.reason.as_deref() == Some("Error") => {
            ResizeState::Error(said(&failing.message))
        }
        Some(_) => ResizeState::InProgress,
        None => ResizeState::Settled,
    }
}
