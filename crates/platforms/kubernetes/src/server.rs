//! Probes and metrics over plain HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use crate::instruments::Instruments;
use crate::leader::Leadership;
use crate::world::World;

/// What the pages are made of.
#[derive(Clone)]
pub struct Pages {
    /// The index.
    pub world: Arc<World>,
    /// The counters.
    pub instruments: Arc<Instruments>,
    /// Whether this controller acts.
    pub leadership: Arc<Leadership>,
}

/// `/live`, `/ready` and `/metrics`.
pub fn router(pages: Pages) -> Router {
    Router::new()
        .route("/live", get(|| async { "alive\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(pages)
}

/// Ready once the first lists are complete. A controller that waits for the Lease is ready too: it serves the webhook.
async fn ready(State(pages): State<Pages>) -> (StatusCode, &'static str) {
    let cluster = pages.world.cluster();
    let is_complete = cluster.policies.is_complete()
        && cluster.deployments.is_complete()
        && cluster.pods.is_complete();
    if is_complete {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the first lists are not complete\n")
    }
}

async fn metrics(State(pages): State<Pages>) -> String {
    pages.instruments.lead(pages.leadership.holds());
    pages.instruments.page()
}

/// Serves the pages at `address` until the task is stopped.
pub async fn serve(address: SocketAddr, pages: Pages) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, router(pages)).await
}
