//! Answers to requests that are not carried out: what is wrong, what is allowed, what to do.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A request that is refused.
#[derive(Debug)]
pub struct Refused {
    status: StatusCode,
    error: String,
}

impl Refused {
    /// Refuses with `status`, in one sentence.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    pub(super) fn no_function(name: &str) -> Self {
        let error = format!("there is no function `{name}`; GET /api/v1/functions lists the names");
        Self::new(StatusCode::NOT_FOUND, error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut answer = (self.status, Json(json!({ "error": self.error }))).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

/// The one variable part of a path; bytes that are no text are refused.
pub(super) struct Part(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Part {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let part = Path::<String>::from_request_parts(parts, state).await;
        part.map(|Path(text)| Self(text)).map_err(|problem| {
            Refused::new(StatusCode::BAD_REQUEST, format!("the path: {}", problem.body_text()))
        })
    }
}

/// The body of a request as JSON; anything else is refused with the place of the problem.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let bytes = axum::body::Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|problem: BytesRejection| {
            Refused::new(problem.status(), format!("the body: {}", problem.body_text()))
        })?;
        let refuse = |problem: String| {
            let error = format!("the body is not what is expected: {problem}");
            Refused::new(StatusCode::BAD_REQUEST, error)
        };
        let object: serde_json::Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|problem| refuse(problem.to_string()))?;
        // A list would be read as the fields of a structure in their order, which nobody means.
        let is_list = |(key, value): &(&String, &Value)| value.is_array() && *key != FREE;
        if let Some((key, _)) = object.iter().find(is_list) {
            return Err(refuse(format!("`{key}` is a list")));
        }
        serde_json::from_value(object.into())
            .map(Self)
            .map_err(|problem| refuse(problem.to_string()))
    }
}

/// The one key whose value is the caller's own business: parameters of a function.
const FREE: &str = "parameters";

pub(super) async fn not_found(uri: Uri) -> Refused {
    let path = uri.path().chars().take(200).collect::<String>();
    let error = format!("there is nothing at `{path}`; /api/v1/openapi.json lists the paths");
    Refused::new(StatusCode::NOT_FOUND, error)
}

pub(super) async fn wrong_method() -> Refused {
    let error = "this path does not take that method; /api/v1/openapi.json lists what it takes";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, error)
}
