//! A whole server on a free port of this machine, and a small client for it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use windfall_openwhisk::{ApiSettings, ApiState, EntityName, Kind, Store, StoreSettings, router};

use super::in_process::InProcess;

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) key: String,
    pub(crate) other_key: String,
    pub(crate) runner: Arc<InProcess>,
    basic: String,
    client: Client<HttpConnector, Full<Bytes>>,
    task: JoinHandle<()>,
}

/// The answer to one request.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {:?}", self.body))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn with(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

pub(crate) fn settings() -> ApiSettings {
    let kinds = ["nodejs:20", "python:3", "builtin"].map(Kind::default_of_family);
    ApiSettings { kinds: kinds.into(), ..ApiSettings::default() }
}

impl Server {
    pub(crate) async fn start(folder: &Path, settings: ApiSettings) -> Self {
        let path = folder.join("store.sqlite");
        let runner = Arc::new(InProcess::default());
        let announced = Arc::clone(&runner);
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&path, StoreSettings::default()).unwrap();
            let callers = ["guest", "other"]
                .map(|name| store.identity(&EntityName::new(name).unwrap()).unwrap());
            let keys = callers.clone().map(|caller| caller.key);
            let state = ApiState::new(announced, store, callers.into(), settings).unwrap();
            state.resume().unwrap();
            (state, keys)
        });
        let (state, [key, other_key]) = opened.await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move { axum::serve(listener, router(state)).await.unwrap() });
        Self {
            address,
            basic: key.to_basic(),
            key: key.to_string(),
            other_key: other_key.to_basic(),
            runner,
            client: Client::builder(TokioExecutor::new()).build_http(),
            task,
        }
    }

    /// Ends the server without letting anything finish.
    pub(crate) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// A request below `/api/v1`, as the first caller.
    pub(crate) async fn call(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(method, &format!("/api/v1{path}"), body, &[("authorization", &self.basic)]).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request =
            Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let answer = self.client.request(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status, headers: parts.headers, body }
    }

    /// Creates an action with a behaviour.
    pub(crate) async fn deploy(&self, name: &str, behaviour: &str) -> Value {
        let body = serde_json::json!({"exec": {"kind": "nodejs:default", "code": format!("behave: {behaviour}")}});
        let path = format!("/namespaces/_/actions/{name}?overwrite=true");
        self.call(Method::PUT, &path, body.to_string()).await.with(200)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, &format!("/namespaces/_{path}"), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.call(Method::POST, &format!("/namespaces/_{path}"), body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.call(Method::PUT, &format!("/namespaces/_{path}"), body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.call(Method::DELETE, &format!("/namespaces/_{path}"), "").await
    }
}
