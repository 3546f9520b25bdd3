//! The HTTP API and the dashboard.
//!
//! Reading is free for everyone who reaches the port, which is on the loopback interface unless the user says otherwise.
//! Whatever changes state needs the token. `GET /api/v1/openapi.json` describes all of it.

mod answers;
mod assets;
mod changes;
mod events;
mod guard;
mod metrics;
mod reads;
mod server;
mod views;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};

use crate::governance::Governance;
use crate::live::Live;
use crate::managed_platform::{Invoker, PlatformKind};
use crate::orders::Desk;
use crate::service::{Clock, Service};
use crate::supervisor::{SharedLive, SupervisorSettings};
use guard::Limiter;

pub use answers::Refused;
pub use server::{Server, ServerError, serve};

/// What every request can reach.
pub struct ApiState {
    pub(crate) live: SharedLive,
    pub(crate) desk: Desk,
    pub(crate) governance: Arc<Governance>,
    pub(crate) clock: Clock,
    pub(crate) kind: PlatformKind,
    pub(crate) settings: SupervisorSettings,
    pub(crate) invoker: Option<Arc<dyn Invoker>>,
    pub(crate) token: String,
    pub(crate) address: SocketAddr,
    pub(crate) database: Option<PathBuf>,
    limiter: Limiter,
}

impl ApiState {
    /// The state of the API of `service` at `address`.
    pub fn new(
        service: &Service,
        address: SocketAddr,
        token: String,
        database: Option<PathBuf>,
    ) -> Arc<Self> {
        Arc::new(Self {
            live: Arc::clone(&service.live),
            desk: service.desk.clone(),
            governance: Arc::clone(&service.governance),
            clock: service.clock,
            kind: service.kind,
            settings: service.settings.clone(),
            invoker: service.invoker.clone(),
            token,
            address,
            database,
            limiter: Limiter::default(),
        })
    }

    pub(crate) fn live(&self) -> RwLockReadGuard<'_, Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 32 hexadecimal digits from the system's generator.
pub fn random_token() -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Every path with what it answers.
pub fn router(state: Arc<ApiState>) -> Router {
    let functions = Router::new()
        .route("/{name}", get(reads::function))
        .route("/{name}/hold", put(changes::hold).delete(changes::resume))
        .route("/{name}/objective", put(changes::objective))
        .route("/{name}/apply", post(changes::apply))
        .route("/{name}/invoke", post(changes::invoke));
    let api = Router::new()
        .route("/status", get(reads::status))
        .route("/cluster", get(reads::cluster))
        .route("/functions", get(reads::functions))
        .nest("/functions", functions)
        .route("/decisions", get(reads::decisions))
        .route("/decisions/{id}", get(reads::decision))
        .route("/recommendations", get(reads::recommendations))
        .route("/policies", get(reads::policies))
        .route("/learning", get(reads::learning))
        .route("/health", get(reads::health))
        .route("/events", get(events::events))
        .route("/mode", put(changes::mode))
        .route("/kill", put(changes::kill))
        .route("/policy", put(changes::policy))
        .route("/rollback", post(changes::rollback))
        .route("/shadow", put(changes::shadow))
        .route("/openapi.json", get(assets::openapi));
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{file}", get(assets::asset))
        .route("/metrics", get(metrics::metrics))
        .nest("/api/v1", api)
        .fallback(answers::not_found)
        .method_not_allowed_fallback(answers::wrong_method)
        .layer(from_fn_with_state(Arc::clone(&state), guard::guard))
        .with_state(state)
}

#[cfg(test)]
mod tests;
