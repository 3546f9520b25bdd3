//! Small clusters for tests.

use super::*;
use crate::size::ContainerSize;

pub(crate) const CONTAINER: &str = "app";
const MIB: u64 = 1 << 20;

pub(crate) fn reference(name: &str) -> TargetReference {
    TargetReference {
        api_version: "apps/v1".to_owned(),
        kind: TargetKind::Deployment,
        name: name.to_owned(),
        container: None,
    }
}

pub(crate) fn service_reference(name: &str) -> TargetReference {
    TargetReference {
        api_version: "serving.knative.dev/v1".to_owned(),
        kind: TargetKind::Service,
        name: name.to_owned(),
        container: None,
    }
}

/// 500m with a limit of 1 core, 128 MiB of memory.
pub(crate) fn user_size() -> ContainerSize {
    ContainerSize {
        cpu_request: Some(500),
        cpu_limit: Some(1000),
        memory_request: Some(128 * MIB),
        memory_limit: Some(128 * MIB),
    }
}

fn container(name: &str, size: ContainerSize) -> ContainerFacts {
    ContainerFacts {
        name: name.to_owned(),
        size,
        in_force: Some(size),
        ..ContainerFacts::default()
    }
}

pub(crate) fn pod_key(namespace: &str, deployment: &str, place: usize) -> Key {
    Key::new(namespace, format!("{deployment}-5d4f8-{place:05}"))
}

fn add(
    cluster: &mut Cluster,
    namespace: &str,
    name: &str,
    pods: u32,
    containers: &[ContainerFacts],
) {
    let facts = DeploymentFacts {
        replicas: pods,
        ready: pods,
        containers: containers
            .iter()
            .map(|one| ContainerFacts { in_force: None, ..one.clone() })
            .collect(),
        original_replicas: None,
    };
    cluster.deployments.put(Key::new(namespace, name), facts);
    for place in 0..pods as usize {
        let pod = PodFacts {
            deployment: name.to_owned(),
            node: Some("node-1".to_owned()),
            address: Some(format!("10.0.0.{place}")),
            is_ready: true,
            is_running: true,
            ready_since: Some(11),
            created: 10,
            containers: containers.to_vec(),
            ..PodFacts::default()
        };
        cluster.pods.put(pod_key(namespace, name, place), pod);
    }
}

pub(crate) fn complete(cluster: &mut Cluster) {
    cluster.policies.end_list();
    cluster.deployments.end_list();
    cluster.pods.end_list();
}

/// A Deployment with ready pods of the user's size.
pub(crate) fn deployment(namespace: &str, name: &str, pods: u32) -> Cluster {
    let mut cluster = Cluster::default();
    add(&mut cluster, namespace, name, pods, &[container(CONTAINER, user_size())]);
    complete(&mut cluster);
    cluster
}

/// A Knative Service with one ready Revision, `NAME-00001`.
pub(crate) fn service(namespace: &str, name: &str, pods: u32) -> Cluster {
    let mut cluster = Cluster::default();
    let revision = format!("{name}-00001");
    let sidecar =
        container(QUEUE_PROXY, ContainerSize { cpu_request: Some(25), ..ContainerSize::default() });
    let containers = [sidecar, container("user-container", user_size())];
    add(&mut cluster, namespace, &format!("{revision}-deployment"), pods, &containers);
    let facts = ServiceFacts {
        latest_ready: Some(revision.clone()),
        latest_created: Some(revision.clone()),
        ..ServiceFacts::default()
    };
    cluster.services.put(Key::new(namespace, name), facts);
    let facts = RevisionFacts {
        service: Some(name.to_owned()),
        annotations: [("target".to_owned(), "50".to_owned())].into(),
        ..RevisionFacts::default()
    };
    let autoscaler = PodAutoscalerFacts {
        annotations: facts.annotations.clone(),
        ..PodAutoscalerFacts::default()
    };
    cluster.pod_autoscalers.put(Key::new(namespace, &revision), autoscaler);
    cluster.revisions.put(Key::new(namespace, revision), facts);
    complete(&mut cluster);
    cluster
}

/// Changes one pod as a watch would.
pub(crate) fn change_pod(
    cluster: &mut Cluster,
    namespace: &str,
    deployment: &str,
    place: usize,
    change: impl Fn(&mut PodFacts),
) {
    let key = pod_key(namespace, deployment, place);
    let mut pod = cluster.pods.get(&key).expect("a pod of the sample").clone();
    change(&mut pod);
    cluster.pods.put(key, pod);
}

/// Carries out actions as the API server, kubelet and Knative would.
pub(crate) fn carry_out(cluster: &mut Cluster, actions: &[crate::actuators::Action]) {
    use crate::actuators::Action;
    for action in actions {
        match action {
            Action::ResizePod { pod, container, size } => {
                let Some(mut facts) = cluster.pods.get(pod).cloned() else { continue };
                for one in facts.containers.iter_mut().filter(|one| one.name == *container) {
                    one.size = *size;
                    one.in_force = Some(*size);
                }
                cluster.pods.put(pod.clone(), facts);
            }
            Action::Scale { deployment, replicas } => {
                let Some(mut facts) = cluster.deployments.get(deployment).cloned() else {
                    continue;
                };
                facts.replicas = *replicas;
                cluster.deployments.put(deployment.clone(), facts);
            }
            Action::NoteReplicas { deployment, replicas } => {
                let Some(mut facts) = cluster.deployments.get(deployment).cloned() else {
                    continue;
                };
                facts.original_replicas = *replicas;
                cluster.deployments.put(deployment.clone(), facts);
            }
            Action::Annotate { revision, set, original } => {
                let Some(mut facts) = cluster.revisions.get(revision).cloned() else { continue };
                for (key, value) in set {
                    match value {
                        Some(value) => drop(facts.annotations.insert(key.clone(), value.clone())),
                        None => drop(facts.annotations.remove(key)),
                    }
                }
                facts.original.clone_from(original);
                let mut copied = cluster.pod_autoscalers.get(revision).cloned().unwrap_or_default();
                copied.annotations.clone_from(&facts.annotations);
                cluster.pod_autoscalers.put(revision.clone(), copied);
                cluster.revisions.put(revision.clone(), facts);
            }
            Action::NewRevision { service, container_concurrency, original } => {
                let Some(mut facts) = cluster.services.get(service).cloned() else { continue };
                facts.container_concurrency = *container_concurrency;
                facts.original_concurrency = *original;
                cluster.services.put(service.clone(), facts);
            }
        }
    }
}
