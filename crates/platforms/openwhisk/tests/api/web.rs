//! Web actions over plain HTTP.

use hyper::Method;
use serde_json::json;

use super::server::{Server, settings};

async fn export(
    server: &Server,
    name: &str,
    behaviour: &str,
    annotations: &[(&str, serde_json::Value)],
) {
    let mut list = vec![json!({"key": "web-export", "value": true})];
    list.extend(annotations.iter().map(|(key, value)| json!({"key": key, "value": value})));
    let body = json!({
        "exec": {"kind": "nodejs:20", "code": format!("behave: {behaviour}")},
        "annotations": list,
        "parameters": [{"key": "bound", "value": 1}],
    });
    server.put(&format!("/actions/{name}?overwrite=true"), &body).await.with(200);
}

#[tokio::test]
async fn a_request_becomes_parameters_and_a_result_becomes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    export(&server, "echo", "echo", &[]).await;
    let path = "/api/v1/web/guest/default/echo.json/some/path?name=you";
    let form = [("content-type", "application/x-www-form-urlencoded"), ("x-mine", "1")];
    let seen = server.send(Method::POST, path, "b=2&c=%20", &form).await.with(200);
    assert_eq!((&seen["name"], &seen["b"], &seen["c"]), (&json!("you"), &json!("2"), &json!(" ")));
    assert_eq!((&seen["__ow_method"], &seen["__ow_path"]), (&json!("post"), &json!("/some/path")));
    assert_eq!((&seen["__ow_headers"]["x-mine"], &seen["bound"]), (&json!("1"), &json!(1)));
    export(&server, "web", "web", &[]).await;
    let reply = server.send(Method::GET, "/api/v1/web/guest/default/web?name=you", "", &[]).await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (201, &b"you"[..]));
    assert_eq!(reply.headers["x-by"], "web");
    assert_eq!(reply.headers["access-control-allow-origin"], "*");
    assert!(reply.headers.contains_key("x-openwhisk-activation-id"));
    let options = server.send(Method::OPTIONS, "/api/v1/web/guest/default/web", "", &[]).await;
    assert_eq!(options.status, 200);
}

#[tokio::test]
async fn raw_actions_get_query_and_body_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    export(&server, "raw", "echo", &[("raw-http", json!(true))]).await;
    let headers = [("content-type", "application/octet-stream")];
    let path = "/api/v1/web/guest/default/raw.json?a=1&a=2";
    let seen = server.send(Method::PUT, path, vec![0_u8, 255], &headers).await.with(200);
    assert_eq!((&seen["__ow_query"], &seen["__ow_body"]), (&json!("a=1&a=2"), &json!("AP8=")));
}

#[tokio::test]
async fn what_is_final_or_reserved_cannot_be_set_and_what_is_private_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("private", "echo").await;
    server.send(Method::GET, "/api/v1/web/guest/default/private", "", &[]).await.with(404);
    export(&server, "fixed", "echo", &[("final", json!(true))]).await;
    let path = "/api/v1/web/guest/default/fixed.json";
    server.send(Method::GET, &format!("{path}?bound=2"), "", &[]).await.with(400);
    server.send(Method::GET, &format!("{path}?__ow_user=me"), "", &[]).await.with(400);
    server.send(Method::GET, &format!("{path}?other=2"), "", &[]).await.with(200);
    export(&server, "secret", "echo", &[("require-whisk-auth", json!("s3cret"))]).await;
    let path = "/api/v1/web/guest/default/secret.json";
    server.send(Method::GET, path, "", &[]).await.with(401);
    server.send(Method::GET, path, "", &[("x-require-whisk-auth", "s3cret")]).await.with(200);
    export(&server, "broken", "throw", &[]).await;
    server.send(Method::GET, "/api/v1/web/guest/default/broken.json", "", &[]).await.with(400);
}
