//! Built-in functions as actions of a new platform.

use axum::Router;
use axum::body::Body;
use serde_json::json;
use tower::ServiceExt;
use windfall_functions::{Builtin, builtins};
use windfall_openwhisk::Key;

/// Deploys every built-in function under its own name, by the same request that a user would send. One that is there
/// already stays as it is.
pub(super) async fn deploy(routes: &Router, key: &Key) {
    for builtin in builtins() {
        let request = http::Request::put(format!("/api/v1/namespaces/_/actions/{}", builtin.name))
            .header("authorization", key.to_basic())
            .header("content-type", "application/json")
            .body(Body::from(action_of(builtin).to_string()));
        if let Ok(request) = request {
            // 409 means that it is there.
            let Ok(_answer) = routes.clone().oneshot(request).await;
        }
    }
}

fn action_of(builtin: &Builtin) -> serde_json::Value {
    let millis = builtin.timeout.as_nanos() / 1_000_000;
    let mut annotations = vec![
        json!({"key": "description", "value": builtin.summary}),
        json!({"key": "cpu", "value": builtin.reservation.cpu.cores()}),
    ];
    if let Some(input) = builtin.input {
        annotations.push(json!({"key": "input", "value": input.parameter}));
    }
    json!({
        "exec": {"kind": builtin.kind(), "code": builtin.name},
        "limits": {"timeout": millis, "memory": builtin.reservation.memory.get()},
        "annotations": annotations,
    })
}
