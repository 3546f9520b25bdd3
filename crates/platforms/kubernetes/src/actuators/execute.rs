//! Sends one action. Every request is a patch of what it changes and nothing else, so there is no version to conflict
//! with and no field of others to overwrite.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use serde_json::{Map, Value, json};

use super::{Action, FIELD_MANAGER};
use crate::cluster::Key;

/// Why an action had no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The object is gone; there is nothing to change any more.
    #[error("it is gone")]
    Gone,
    /// Retryable: someone else changed it at the same moment, the server is busy or did not answer.
    #[error("try again: {0}")]
    Again(String),
    /// Fatal until something changes: the server refuses.
    #[error("{0}")]
    Refused(String),
    /// Fatal until someone grants it: the controller's role does not allow it.
    #[error("not permitted: {0}")]
    Forbidden(String),
    /// The node has not the room, and never will.
    #[error("there is no room: {0}")]
    NoRoom(String),
}

impl From<Error> for ActionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(status) => {
                let said = status.message.clone();
                match status.code {
                    404 => Self::Gone,
                    403 if said.contains("enough allocatable") => Self::NoRoom(said),
                    401 | 403 => Self::Forbidden(said),
                    408 | 409 | 410 | 429 | 500.. => Self::Again(said),
                    _ => Self::Refused(said),
                }
            }
            other => Self::Again(other.to_string()),
        }
    }
}

/// Sends `action`.
pub async fn execute(client: &Client, action: &Action) -> Result<(), ActionError> {
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match action {
        Action::ResizePod { pod, container, size } => {
            let resources = size.to_json();
            let patch =
                json!({"spec": {"containers": [{"name": container, "resources": resources}]}});
            let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
            pods.patch_resize(&pod.name, &params, &Patch::Strategic(patch)).await?;
        }
        Action::Scale { deployment, replicas } => {
            let patch = json!({"spec": {"replicas": replicas}});
            deployments(client, deployment)
                .patch_scale(&deployment.name, &params, &Patch::Merge(patch))
                .await?;
        }
        Action::NoteReplicas { deployment, replicas } => {
            let noted = replicas.map(|replicas| replicas.to_string());
            let key = crate::cluster::ORIGINAL_REPLICAS;
            let patch = json!({"metadata": {"annotations": {key: noted}}});
            deployments(client, deployment)
                .patch(&deployment.name, &params, &Patch::Merge(patch))
                .await?;
        }
        Action::Annotate { revision, set, original } => {
            let patch = annotation_patch(set, original);
            knative(client, "Revision", "revisions", revision)
                .patch(&revision.name, &params, &Patch::Merge(patch))
                .await?;
        }
        Action::NewRevision { service, container_concurrency, original } => {
            let noted = original.map(|limit| limit.to_string());
            let key = crate::cluster::ORIGINAL_CONCURRENCY;
            let patch = json!({
                "metadata": {"annotations": {key: noted}},
                "spec": {"template": {"spec": {"containerConcurrency": container_concurrency}}},
            });
            knative(client, "Service", "services", service)
                .patch(&service.name, &params, &Patch::Merge(patch))
                .await?;
        }
    }
    Ok(())
}

fn deployments(client: &Client, key: &Key) -> Api<Deployment> {
    Api::namespaced(client.clone(), &key.namespace)
}

fn knative(client: &Client, kind: &str, plural: &str, key: &Key) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("serving.knative.dev", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(client.clone(), &key.namespace, &resource)
}

fn annotation_patch(
    set: &std::collections::BTreeMap<String, Option<String>>,
    original: &std::collections::BTreeMap<String, Option<String>>,
) -> Value {
    let prefix = crate::cluster::AUTOSCALING;
    let mut annotations: Map<String, Value> =
        set.iter().map(|(key, value)| (format!("{prefix}{key}"), json!(value))).collect();
    let note = (!original.is_empty()).then(|| json!(original).to_string());
    annotations.insert(crate::cluster::ORIGINAL_ANNOTATIONS.to_owned(), json!(note));
    json!({"metadata": {"annotations": annotations}})
}
