//! A door between a controller and the API server. It passes requests on, notes the writes, and at a moment that the test
//! chooses answers as a server under stress does.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::json;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every write gets this code: 409 as if somebody else had changed the object, 429 as if there were too many.
    Writes(u16),
    /// Every request but open watches gets this code.
    Everything(u16),
    /// Watches end with `410 Gone`.
    WatchesGone,
    /// Watches say nothing.
    WatchesStall,
}

/// A write that the API server answered.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) is_success: bool,
}

#[derive(Clone)]
struct Shared {
    client: Client,
    fault: Arc<Mutex<Fault>>,
    written: Arc<Mutex<Vec<Written>>>,
}

/// An open door; dropping it closes it.
pub(crate) struct Door {
    shared: Shared,
    kubeconfig: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Door {
    /// Opens one whose kubeconfig is called `name`.
    pub(crate) async fn open(client: &Client, name: &str) -> Self {
        let shared =
            Shared { client: client.clone(), fault: Arc::default(), written: Arc::default() };
        let router = axum::Router::new().fallback(pass).with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kubeconfig = std::env::temp_dir().join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, config(address)).unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, kubeconfig, task }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap() = fault;
    }

    /// Writes to paths with `part` in them that had an effect.
    pub(crate) fn written(&self, part: &str) -> Vec<Written> {
        let all = self.shared.written.lock().unwrap();
        all.iter().filter(|one| one.is_success && one.path.contains(part)).cloned().collect()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

fn config(address: SocketAddr) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "door",
        "clusters": [{"name": "door", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "door", "user": {}}],
        "contexts": [{"name": "door", "context": {"cluster": "door", "user": "door"}}],
    })
    .to_string()
}

fn refusal(code: u16) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused at the door", "reason": "Chosen", "code": code,
    });
    let answer = Response::builder().status(code).header("content-type", "application/json");
    answer.body(Body::from(status.to_string())).unwrap()
}

async fn pass(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let is_write = !matches!(parts.method.as_str(), "GET" | "HEAD");
    let is_watch = path.contains("watch=true");
    match *shared.fault.lock().unwrap() {
        Fault::Writes(code) if is_write => return refusal(code),
        Fault::Everything(code) if !is_watch => return refusal(code),
        _ => {}
    }
    let bytes = axum::body::to_bytes(body, 16 << 20).await.unwrap_or_default();
    let mut onwards = http::Request::builder().method(parts.method).uri(&path);
    for name in ["accept", "content-type"] {
        if let Some(value) = parts.headers.get(name) {
            onwards = onwards.header(name, value);
        }
    }
    let onwards = onwards.body(kube::client::Body::from(bytes.to_vec())).unwrap();
    let answer = match shared.client.send(onwards).await {
        Ok(answer) => answer,
        Err(_) => return refusal(503),
    };
    if is_write {
        let is_success = answer.status().is_success();
        shared.written.lock().unwrap().push(Written { at: Instant::now(), path, is_success });
    }
    let (parts, body) = answer.into_parts();
    let mut back = Response::builder().status(parts.status);
    if let Some(kind) = parts.headers.get("content-type") {
        back = back.header("content-type", kind);
    }
    let body = if is_watch { watched(body, Arc::clone(&shared.fault)) } else { Body::new(body) };
    back.body(body).unwrap()
}

/// The lines of a watch, as far as the fault lets them through.
fn watched(body: kube::client::Body, fault: Arc<Mutex<Fault>>) -> Body {
    let lines = Box::pin(body.into_data_stream());
    let passed = futures_util::stream::unfold(Some(lines), move |lines| {
        let fault = Arc::clone(&fault);
        async move {
            let mut lines = lines?;
            loop {
                let now = *fault.lock().unwrap();
                match now {
                    Fault::WatchesGone => return Some((Ok::<_, Infallible>(gone()), None)),
                    Fault::WatchesStall => tokio::time::sleep(Duration::from_millis(50)).await,
                    _ => {
                        let next = tokio::time::timeout(Duration::from_millis(100), lines.next());
                        match next.await {
                            Ok(Some(Ok(chunk))) => return Some((Ok(chunk), Some(lines))),
                            Ok(Some(Err(_)) | None) => return None,
                            Err(_) => {}
                        }
                    }
                }
            }
        }
    });
    Body::from_stream(passed)
}

fn gone() -> Bytes {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}
