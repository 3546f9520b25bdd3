//! Answers: JSON, and refusals as `{"error": ..., "code": ...}`.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use crate::activation_id::ActivationId;
use crate::name::BadName;
use crate::parameters::BadParameters;
use crate::store::StoreError;

/// Names the activation in every answer to a call.
const ACTIVATION_HEADER: HeaderName = HeaderName::from_static("x-openwhisk-activation-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) type Answer = Result<Response, Refusal>;

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "The requested resource does not exist.")
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "The supplied authentication is invalid.")
    }

    pub(super) fn forbidden(what: &str) -> Self {
        let message = format!("The supplied authentication is not authorized to access '{what}'.");
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(super) fn too_large(what: &str, is: impl std::fmt::Display, allowed: usize) -> Self {
        let message = format!("{what} larger than allowed: {is} > {allowed} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn is_ours(&self) -> bool {
        self.status.is_server_error()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.message, "code": transaction_code() });
        let mut response = json_answer(self.status, &body);
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"windfall\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, realm);
        }
        response
    }
}

/// Clients print it and people quote it; it only has to differ from the next one.
fn transaction_code() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let now = super::millis(std::time::SystemTime::now());
    format!("{now:012x}{:020x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl From<BadName> for Refusal {
    fn from(bad: BadName) -> Self {
        Self::bad_request(bad.to_string())
    }
}

impl From<BadParameters> for Refusal {
    fn from(bad: BadParameters) -> Self {
        Self::bad_request(bad.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("The store cannot be used: {error}"))
    }
}

pub(super) fn json_answer(status: StatusCode, body: &Value) -> Response {
    json_bytes(status, body.to_string().into())
}

pub(super) fn json_bytes(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

pub(super) fn ok(body: &Value) -> Answer {
    Ok(json_answer(StatusCode::OK, body))
}

/// Adds the header with the activation to an answer.
pub(super) fn of_activation(mut response: Response, id: ActivationId) -> Response {
    let digits = id.digits();
    let value = HeaderValue::from_bytes(&digits).expect("hexadecimal digits are a header value");
    response.headers_mut().insert(ACTIVATION_HEADER, value);
    response
}

/// 202 with the activation that was accepted.
pub(super) fn accepted(id: ActivationId) -> Response {
    let body = json!({ "activationId": id });
    of_activation(json_answer(StatusCode::ACCEPTED, &body), id)
}

pub(super) async fn no_such_route(uri: Uri) -> Refusal {
    let path: String = uri.path().chars().take(128).collect();
    Refusal::new(StatusCode::NOT_FOUND, format!("The requested resource '{path}' does not exist."))
}

pub(super) async fn no_such_method(uri: Uri) -> Refusal {
    let path: String = uri.path().chars().take(128).collect();
    let message = format!("The method is not allowed on '{path}'.");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
}
