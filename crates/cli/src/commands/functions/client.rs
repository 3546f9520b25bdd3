//! A small client of OpenWhisk's API over plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use windfall_openwhisk::Key;

use super::connection::Connection;

/// Longer than any blocking call: the platform answers after a minute at the latest.
const PATIENCE: Duration = Duration::from_secs(75);

/// Why a function could not be deployed, called or shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FnError {
    /// Retryable: nobody listens.
    #[error("{host} does not answer: {why}")]
    Unreachable { host: String, why: String },
    /// Fatal: no key was given.
    #[error("no key: neither --auth nor WINDFALL_AUTH nor AUTH in ~/.wskprops is there")]
    NoKey,
    /// Fatal: the key has no colon.
    #[error("the key is not of the form uuid:secret")]
    BadKey,
    /// Fatal: the platform does not know the key.
    #[error("{0} refuses the key")]
    Unauthorized(String),
    /// Fatal: TLS is not spoken here.
    #[error("{0} is not an http:// address")]
    Scheme(String),
    /// Fatal: the thing does not exist.
    #[error("there is no {0}")]
    Missing(String),
    /// Fatal: the platform says no.
    #[error("{what} was refused with {status}: {why}")]
    Refused { what: String, status: u16, why: String },
    /// Fatal: the answer is no JSON.
    #[error("{host} answered with something that is not OpenWhisk's API: {body}")]
    Foreign { host: String, body: String },
    /// Fatal: what is to be deployed cannot be found.
    #[error("{0}")]
    Source(String),
}

impl FnError {
    /// What to do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => {
                Some("start the platform with `windfall serve`, or name another one with --apihost")
            }
            Self::NoKey | Self::BadKey | Self::Unauthorized(_) => {
                Some("`windfall serve` prints the key; give it with --auth or WINDFALL_AUTH")
            }
            Self::Scheme(_) => Some("use `wsk` or the npm client for a platform behind TLS"),
            Self::Missing(_) => Some("`windfall fn list` shows what is deployed"),
            Self::Foreign { .. } => Some("check the address with --apihost"),
            Self::Source(_) => Some("`windfall fn new NAME` writes a first function"),
            Self::Refused { .. } => None,
        }
    }
}

pub(super) struct Client {
    host: String,
    basic: String,
    http: HttpClient<HttpConnector, Full<Bytes>>,
}

/// What came back.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Client {
    pub(super) fn new(connection: Connection) -> Result<Self, FnError> {
        let key: Key = connection.key.parse().map_err(|_| FnError::BadKey)?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = HttpClient::builder(TokioExecutor::new()).build(connector);
        Ok(Self { host: connection.host, basic: key.to_basic(), http })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// A request below the caller's namespace, whatever its answer.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, FnError> {
        self.request(method, &format!("/api/v1/namespaces/_{path}"), body).await
    }

    /// What the platform says about itself.
    pub(super) async fn description(&self) -> Result<Value, FnError> {
        Ok(self.request(Method::GET, "/api/v1", None).await?.body)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, FnError> {
        let unreachable = |why: String| FnError::Unreachable { host: self.host.clone(), why };
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.host))
            .header("authorization", &self.basic)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(text)))
            .map_err(|why| unreachable(why.to_string()))?;
        let answer = tokio::time::timeout(PATIENCE, self.http.request(request)).await;
        let answer = answer.map_err(|_| unreachable("no answer in 75 s".to_owned()))?;
        let answer = answer.map_err(|why| unreachable(causes(&why)))?;
        let status = answer.status();
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|why| unreachable(why.to_string()))?
            .to_bytes();
        if status == StatusCode::UNAUTHORIZED {
            return Err(FnError::Unauthorized(self.host.clone()));
        }
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).map_err(|_| FnError::Foreign {
                host: self.host.clone(),
                body: String::from_utf8_lossy(&body).chars().take(80).collect(),
            })?
        };
        Ok(Reply { status, body })
    }

    /// A request that has to succeed; `what` is for messages, e.g. `function hello`.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Value, FnError> {
        let reply = self.send(method, path, body).await?;
        reply.success(what)
    }
}

impl Reply {
    pub(super) fn success(self, what: &str) -> Result<Value, FnError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        if self.status == StatusCode::NOT_FOUND {
            return Err(FnError::Missing(what.to_owned()));
        }
        let why = self.body["error"].as_str().unwrap_or("no reason given").to_owned();
        Err(FnError::Refused { what: what.to_owned(), status: self.status.as_u16(), why })
    }
}

/// The last cause of an error says what happened; the first only that something did.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        last = inner.to_string();
        cause = inner.source();
    }
    last
}

/// A name as part of a URL.
pub(super) fn encoded(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'@' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_urls() {
        assert_eq!(encoded("demo/hello world?"), "demo/hello%20world%3F");
    }
}
