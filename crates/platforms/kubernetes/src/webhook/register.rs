//! The webhook's entry at the API server.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::{Certificate, PATH};
use crate::actuators::FIELD_MANAGER;

/// The name of the configuration.
const NAME: &str = "windfall";

/// How the API server reaches the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An address of its own, for a controller outside the cluster: `https://10.0.0.1:9443`.
    Url(String),
}

impl Endpoint {
    /// What its certificate must be for.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                vec![
                    format!("{name}.{namespace}.svc"),
                    format!("{name}.{namespace}.svc.cluster.local"),
                ]
            }
            Self::Url(url) => {
                let host = url.trim_start_matches("https://");
                vec![host.split([':', '/']).next().unwrap_or(host).to_owned()]
            }
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Service { namespace, name } => {
                json!({"service": {"namespace": namespace, "name": name, "path": PATH, "port": 443}})
            }
            Self::Url(url) => json!({"url": format!("{}{PATH}", url.trim_end_matches('/'))}),
        }
    }
}

/// The configuration that sends new pods of Deployments to `endpoint`.
fn configuration(endpoint: &Endpoint, certificate: &Certificate) -> Value {
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.encode(&certificate.certificate);
    let mut client = endpoint.to_json();
    client["caBundle"] = json!(bundle);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [{
            "name": "pods.windfall.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            // Without an answer pods start at their users' size.
            "failurePolicy": "Ignore",
            "timeoutSeconds": 2,
            "reinvocationPolicy": "Never",
            "clientConfig": client,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "Namespaced"}],
            // Only pods of Deployments are ever sized; the system's own never wait for us.
            "objectSelector": {"matchExpressions": [{"key": "pod-template-hash", "operator": "Exists"}]},
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "knative-serving"]},
            ]},
        }],
    })
}

/// Writes the configuration.
pub async fn register(
    client: &Client,
    endpoint: &Endpoint,
    certificate: &Certificate,
) -> Result<(), Error> {
    let all: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    all.patch(NAME, &params, &Patch::Apply(configuration(endpoint, certificate))).await?;
    Ok(())
}

/// Takes the webhook out of the way of new pods. The object stays, without an entry: deleting it would be a right more.
pub async fn unregister(client: &Client) -> Result<(), Error> {
    let all: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    if all.get_opt(NAME).await?.is_none() {
        return Ok(());
    }
    let empty = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME}, "webhooks": [],
    });
    all.patch(NAME, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(empty)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_start_without_an_answer() {
        let certificate = Certificate { certificate: "c".into(), key: "k".into() };
        let endpoint = Endpoint::Service { namespace: "windfall".into(), name: "webhook".into() };
        let written = configuration(&endpoint, &certificate);
        assert_eq!(written["webhooks"][0]["failurePolicy"], "Ignore");
        let read: MutatingWebhookConfiguration = serde_json::from_value(written).unwrap();
        assert_eq!(read.webhooks.unwrap().len(), 1);
    }

    #[test]
    fn the_certificate_is_for_how_the_webhook_is_reached() {
        let service = Endpoint::Service { namespace: "n".into(), name: "w".into() };
        assert_eq!(service.names()[0], "w.n.svc");
        assert_eq!(Endpoint::Url("https://10.0.0.1:9443/x".into()).names(), ["10.0.0.1"]);
    }
}
