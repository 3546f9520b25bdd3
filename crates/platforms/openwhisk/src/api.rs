//! The REST API: routes, and what all of them share.

mod actions;
mod activations;
mod answer;
mod asked;
mod body;
mod callers;
mod collection;
mod description;
mod goes_on;
mod invoke;
mod packages;
mod pages;
mod query;
mod record;
mod rules;
mod sequence;
mod triggers;
mod web;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::{any, get, put};

use crate::action::Action;
use crate::activation_id::ActivationIds;
use crate::entities::Entities;
use crate::entity::{Entity, Rule, Trigger};
use crate::identity::Identity;
use crate::runner::Runner;
use crate::settings::ApiSettings;
use crate::store::{Store, StoreError};
use callers::Callers;

#[cfg(feature = "fuzzing")]
pub use {actions::read_action, query::read_query, web::read_web_request};

/// What all requests share. Cheap to clone.
pub struct ApiState<R> {
    shared: Arc<Shared<R>>,
}

impl<R> Clone for ApiState<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<R> {
    runner: Arc<R>,
    store: Store,
    callers: Callers,
    settings: ApiSettings,
    entities: Entities,
    ids: ActivationIds,
    /// Held while an entity is changed: two changes of one name get two versions.
    changes: tokio::sync::Mutex<()>,
}

impl<R: Runner> ApiState<R> {
    /// Reads all entities out of the store and announces actions to the runner. Blocks: for the start.
    pub fn new(
        runner: Arc<R>,
        store: Store,
        callers: Vec<Identity>,
        settings: ApiSettings,
    ) -> Result<Self, StoreError> {
        let entities = Entities::default();
        for entity in store.entities()? {
            if let Entity::Action(action) = &entity
                && action.code().is_some()
            {
                runner.deployed(action);
            }
            entities.insert(entity);
        }
        let shared = Shared {
            runner,
            store,
            callers: Callers::new(callers, settings.throttle),
            settings,
            entities,
            ids: ActivationIds::new()?,
            changes: tokio::sync::Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Begins calls again that an earlier process had accepted and not ended, so that a crash loses none of them; they
    /// may run twice. How many they are. Blocks, and needs a runtime: for the start.
    pub fn resume(&self) -> Result<usize, StoreError> {
        let unfinished = self.shared.store.unfinished()?;
        let count = unfinished.len();
        self.shared.resume(unfinished);
        Ok(count)
    }
}

/// Milliseconds since 1970.
fn millis(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis())
        .unwrap_or_default()
}

/// All routes: `/api/v1`, `/ping`, `/invokers`. Merge it into an application, or serve it as it is.
pub fn router<R: Runner>(state: ApiState<R>) -> Router {
    let in_namespace = Router::new()
        .route("/", get(description::namespace::<R>))
        .route("/limits", get(description::limits::<R>))
        .route("/actions", get(collection::list::<R, Action>))
        .route("/actions/", get(collection::list::<R, Action>))
        .route(
            "/actions/{*path}",
            get(actions::read::<R>)
                .put(actions::write::<R>)
                .delete(actions::remove::<R>)
                .post(invoke::invoke::<R>),
        )
        .route("/packages", get(packages::list::<R>))
        .route("/packages/", get(packages::list::<R>))
        .route(
            "/packages/{name}",
            get(packages::read::<R>).put(packages::write::<R>).delete(packages::remove::<R>),
        )
        .route("/triggers", get(collection::list::<R, Trigger>))
        .route("/triggers/", get(collection::list::<R, Trigger>))
        .route(
            "/triggers/{name}",
            get(triggers::read::<R>)
                .put(triggers::write::<R>)
                .delete(triggers::remove::<R>)
                .post(triggers::fire::<R>),
        )
        .route("/rules", get(collection::list::<R, Rule>))
        .route("/rules/", get(collection::list::<R, Rule>))
        .route(
            "/rules/{name}",
            put(rules::write::<R>)
                .get(rules::read::<R>)
                .delete(rules::remove::<R>)
                .post(rules::set_status::<R>),
        )
        .route("/activations", get(activations::list::<R>))
        .route("/activations/", get(activations::list::<R>))
        .route("/activations/{*path}", get(activations::read::<R>));
    Router::new()
        .route("/", get(description::describe::<R>))
        .route("/ping", get(description::ping))
        .route("/invokers", get(description::invokers))
        .route("/api/v1", get(description::describe::<R>))
        .route("/api/v1/", get(description::describe::<R>))
        .route("/api/v1/namespaces", get(description::namespaces::<R>))
        .route("/api/v1/namespaces/", get(description::namespaces::<R>))
        .nest("/api/v1/namespaces/{namespace}", in_namespace)
        // Nesting covers the path without the slash alone.
        .route("/api/v1/namespaces/{namespace}/", get(description::namespace::<R>))
        .route("/api/v1/web/{*path}", any(web::call::<R>))
        .fallback(answer::no_such_route)
        .method_not_allowed_fallback(answer::no_such_method)
        .with_state(state)
}
