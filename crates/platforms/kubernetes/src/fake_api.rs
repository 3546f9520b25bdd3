//! An API server for tests: a service behind kube's client that answers each request as the test says. The real one is
//! used by the end-to-end tests.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A request as tests see it.
pub(crate) struct Asked {
    pub(crate) verb: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// The answer to a request.
pub(crate) enum Answered {
    /// With this code and body.
    With(u16, String),
    /// Never: a watch without news.
    Never,
}

impl Answered {
    pub(crate) fn ok(body: &Value) -> Self {
        Self::With(200, body.to_string())
    }

    /// A failure as the API server words it.
    pub(crate) fn failure(code: u16) -> Self {
        Self::With(code, status(code).to_string())
    }
}

pub(crate) fn status(code: u16) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused by the test", "reason": "Chosen", "code": code,
    })
}

/// A client whose requests `answer` answers.
pub(crate) fn client(answer: impl Fn(&Asked) -> Answered + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let asked = Asked {
                verb: parts.method.to_string(),
                path: parts.uri.to_string(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let (code, body) = match answer(&asked) {
                Answered::With(code, body) => (code, body),
                Answered::Never => std::future::pending().await,
            };
            let response = Response::builder().status(code).body(Body::from(body.into_bytes()));
            Ok::<_, Infallible>(response.expect("a response of plain parts"))
        }
    });
    Client::new(service, "default")
}
