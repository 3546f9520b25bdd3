//! What every request below a namespace says: who asks, where, about what, and with which query.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use super::ApiState;
use super::answer::Refusal;
use super::callers::Caller;
use super::query::Query;
use crate::name::{EntityName, FullName};
use crate::runner::Runner;

/// A request of a known caller to any namespace.
pub(super) struct Asked {
    pub(super) caller: Arc<Caller>,
    pub(super) namespace: EntityName,
    /// What follows the collection in the URL, decoded: `name`, `package/name` or an identifier; empty for lists.
    pub(super) path: String,
    query: Option<String>,
}

/// A request of a caller to its own namespace.
pub(super) struct Own(pub(super) Asked);

impl Asked {
    pub(super) fn query(&self) -> Query<'_> {
        Query::new(self.query.as_deref())
    }

    /// The name of the entity that is asked about.
    pub(super) fn name(&self) -> Result<FullName, Refusal> {
        Ok(FullName::in_namespace(&self.namespace, &self.path)?)
    }

    pub(super) fn is_own(&self) -> bool {
        self.namespace == *self.caller.namespace()
    }
}

impl<R: Runner> FromRequestParts<ApiState<R>> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState<R>) -> Result<Self, Refusal> {
        let bad = |why: axum::extract::rejection::RawPathParamsRejection| {
            Refusal::bad_request(why.to_string())
        };
        let places = RawPathParams::from_request_parts(parts, api).await.map_err(bad)?;
        let mut namespace = "";
        let mut path = "";
        for (key, value) in &places {
            if key == "namespace" {
                namespace = value;
            } else {
                path = value;
            }
        }
        let (caller, namespace) = api.shared.callers.in_any(&parts.headers, namespace)?;
        Ok(Self {
            caller: Arc::clone(caller),
            namespace,
            path: path.to_owned(),
            query: parts.uri.query().map(str::to_owned),
        })
    }
}

impl<R: Runner> FromRequestParts<ApiState<R>> for Own {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState<R>) -> Result<Self, Refusal> {
        let asked = Asked::from_request_parts(parts, api).await?;
        if asked.is_own() {
            Ok(Self(asked))
        } else {
            Err(Refusal::forbidden(asked.namespace.as_str()))
        }
    }
}
