//! HTTPS for the API server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Json;
use axum::routing::post;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::core::v1::Pod;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::{Certificate, PATH, patch_for};
use crate::instruments::Instruments;
use crate::world::World;

/// What the webhook answers from.
#[derive(Clone)]
struct Sizer {
    world: Arc<World>,
    instruments: Arc<Instruments>,
}

/// What is read of a review.
#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    namespace: String,
    object: Pod,
}

/// Answers a review. Whatever comes, the pod is allowed.
async fn mutate(State(sizer): State<Sizer>, Json(review): Json<Value>) -> Json<Value> {
    let uid = review.pointer("/request/uid").cloned().unwrap_or_default();
    let patch = serde_json::from_value::<Review>(review).ok().and_then(|Review { request }| {
        patch_for(&sizer.world.cluster(), &request.namespace, &request.object, draw(&request.uid))
    });
    sizer.instruments.admitted(if patch.is_some() { "sized" } else { "unchanged" });
    Json(answer(&uid, patch.as_ref()))
}

fn answer(uid: &Value, patch: Option<&Value>) -> Value {
    use base64::Engine as _;
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(patch) = patch {
        let encoded = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(encoded);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// A number below 100 from the id of a review, which is random.
fn draw(uid: &str) -> u32 {
    let sum =
        uid.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    sum % 100
}

/// Serves the webhook at `address` until the task is stopped.
pub async fn serve(
    address: SocketAddr,
    certificate: &Certificate,
    world: Arc<World>,
    instruments: Arc<Instruments>,
) -> io::Result<()> {
    let acceptor = acceptor(certificate).map_err(io::Error::other)?;
    let router = Router::new().route(PATH, post(mutate)).with_state(Sizer { world, instruments });
    let listener = tokio::net::TcpListener::bind(address).await?;
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "webhook: a connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let connection = Builder::new(TokioExecutor::new());
            let served = connection.serve_connection(TokioIo::new(stream), service).await;
            if let Err(error) = served {
                tracing::debug!(%error, "webhook: a connection ended early");
            }
        });
    }
}

fn acceptor(
    certificate: &Certificate,
) -> Result<TlsAcceptor, Box<dyn std::error::Error + Send + Sync>> {
    let chain = CertificateDer::pem_slice_iter(certificate.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_review_that_makes_no_sense_is_allowed() {
        let sizer = Sizer { world: Arc::default(), instruments: Arc::default() };
        let review = json!({"request": {"uid": "7", "object": {"spec": 5}}});
        let Json(answer) = mutate(State(sizer), Json(review)).await;
        assert_eq!(answer["response"], json!({"uid": "7", "allowed": true}));
    }

    #[test]
    fn draws_are_spread_and_below_a_hundred() {
        let draws: std::collections::BTreeSet<u32> =
            (0..500).map(|number| draw(&format!("{number}-4a5b"))).collect();
        assert!(draws.iter().all(|draw| *draw < 100) && draws.len() > 80);
    }

    #[test]
    fn a_made_certificate_can_be_served() {
        let made = Certificate::make(&["localhost".into()]).unwrap();
        assert!(acceptor(&made).is_ok());
    }
}
