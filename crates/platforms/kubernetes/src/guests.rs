//! Windfall inside another autoscaler, which keeps its own actuation.
//!
//! | Guest | Host asks | We answer |
//! |---|---|---|
//! | [`vpa`] | VPA objects that name the recommender `windfall` | `status.recommendation` |
//! | [`keda`] | KEDA, over gRPC | the recommended number of pods |
//! | [`class`] | Revisions of the class `windfall.dev` | scale, path of requests, status |

pub mod class;
pub mod keda;
pub mod vpa;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client};

use crate::resource_policy::ResourcePolicy;

/// Who owns the fields that guests write.
const FIELD_MANAGER: &str = "windfall-guest";
/// VPA's own recommender runs once a minute; its updater reads at the same pace.
const VPA_EVERY: Duration = Duration::from_secs(10);
const CLASS_EVERY: Duration = Duration::from_secs(1);

/// Why a guest cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The API server refused or did not answer.
    #[error("{during}: {problem}")]
    Api {
        /// What was tried.
        during: &'static str,
        /// The answer.
        problem: Box<kube::Error>,
    },
    /// The gRPC server ended.
    #[error("serving KEDA on {address}: {problem}")]
    Serve {
        /// Where it listened.
        address: SocketAddr,
        /// Why it ended.
        problem: tonic::transport::Error,
    },
}

impl GuestError {
    fn api(during: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |problem| Self::Api { during, problem: Box::new(problem) }
    }
}

/// Serves VPA objects until the future is dropped. A pass that fails is repeated: the API server may be restarting.
pub async fn serve_vpa(client: Client) {
    loop {
        match vpa::pass(&client).await {
            Ok(done) => {
                tracing::debug!(guests = done.guests, written = done.written, "VPA objects served")
            }
            Err(problem) => tracing::warn!(%problem, "VPA objects were not served; trying again"),
        }
        tokio::time::sleep(VPA_EVERY).await;
    }
}

/// Scales Revisions of our class until the future is dropped.
pub async fn serve_class(client: Client) {
    let mut controller = class::ClassController::new(client);
    let mut ticks = tokio::time::interval(CLASS_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if let Err(problem) = controller.pass().await {
            tracing::warn!(%problem, "a second without decisions; trying again");
        }
    }
}

/// Answers KEDA on `address` until the future is dropped.
pub async fn serve_keda(client: Client, address: SocketAddr) -> Result<(), GuestError> {
    let (reader, writer) = reflector::store::<ResourcePolicy>();
    let policies = Api::<ResourcePolicy>::all(client);
    let watch = watcher(policies, watcher::Config::default()).default_backoff().reflect(writer);
    let watching = tokio::spawn(watch.for_each(|event| async move {
        if let Err(problem) = event {
            tracing::warn!(%problem, "the watch of ResourcePolicies broke; it is set up again");
        }
    }));
    let service = keda::ExternalScalerService::new(keda::Scaler::new(std::sync::Arc::new(reader)));
    let served = tonic::transport::Server::builder().add_service(service).serve(address).await;
    watching.abort();
    served.map_err(|problem| GuestError::Serve { address, problem })
}
