//! What a cluster offers. Asked at the start and again when a watch of an optional kind fails.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Client, Error};

/// What a cluster offers beyond Deployments and Pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// In-place resize: the subresource `pods/resize`.
    pub resize: bool,
    /// Knative Serving.
    pub knative: bool,
    /// `metrics.k8s.io`.
    pub metrics_api: bool,
    /// VerticalPodAutoscalers.
    pub vertical: bool,
    /// ScaledObjects of KEDA.
    pub keda: bool,
}

impl Offers {
    /// Asks the API server.
    pub async fn ask(client: &Client) -> Result<Self, Error> {
        let core = client.list_core_api_resources("v1").await?;
        let groups = client.list_api_groups().await?;
        let has = |name: &str| groups.groups.iter().any(|group| group.name == name);
        Ok(Self {
            resize: has_resize(&core),
            knative: has("serving.knative.dev") && has("autoscaling.internal.knative.dev"),
            metrics_api: has("metrics.k8s.io"),
            vertical: has("autoscaling.k8s.io"),
            keda: has("keda.sh"),
        })
    }
}

fn has_resize(core: &APIResourceList) -> bool {
    core.resources.iter().any(|resource| resource.name == "pods/resize")
}
