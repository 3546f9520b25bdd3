//! Entities: create, update, list, read, delete; who may do what.

use hyper::Method;
use serde_json::json;

use super::server::{Server, settings};

#[tokio::test]
async fn an_action_lives_from_create_to_delete() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    let first = server.deploy("hello", "echo").await;
    assert_eq!((&first["version"], &first["exec"]["kind"]), (&json!("0.0.1"), &json!("nodejs:20")));
    assert_eq!(
        first["limits"],
        json!({"timeout": 60000, "memory": 256, "logs": 10, "concurrency": 1})
    );
    let again =
        server.put("/actions/hello", &json!({"exec": {"kind": "nodejs:20", "code": "x"}})).await;
    again.with(409);
    assert_eq!(server.deploy("hello", "greet").await["version"], "0.0.2");
    let read = server.get("/actions/hello").await.with(200);
    assert_eq!(
        (&read["exec"]["code"], &read["namespace"]),
        (&json!("behave: greet"), &json!("guest"))
    );
    let bare = server.get("/actions/hello?code=false").await.with(200);
    assert!(bare["exec"].get("code").is_none());
    // Lists are ordered by the millisecond of the last change; two in one would be ordered by name.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    server.deploy("second", "echo").await;
    let list = server.get("/actions?limit=1").await.with(200);
    assert_eq!((list.as_array().unwrap().len(), &list[0]["name"]), (1, &json!("second")));
    assert_eq!(server.get("/actions?count=true").await.with(200), json!({"actions": 2}));
    assert_eq!(server.runner.deployed.lock().unwrap().len(), 2);
    server.delete("/actions/hello").await.with(200);
    server.delete("/actions/hello").await.with(404);
    assert_eq!(server.runner.deployed.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn entities_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.put("/packages/demo", &json!({})).await.with(200);
    server.deploy("demo/hello", "echo").await;
    let key = server.key.clone();
    server.stop().await;
    let server = Server::start(folder.path(), settings()).await;
    assert_eq!(server.key, key);
    assert_eq!(server.get("/actions/demo/hello").await.with(200)["namespace"], "guest/demo");
    assert_eq!(server.runner.deployed.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn packages_hold_actions_and_bindings_add_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    let missing = json!({"exec": {"kind": "nodejs:20", "code": "x"}});
    server.put("/actions/demo/hello", &missing).await.with(404);
    let package = json!({"publish": true, "parameters": [{"key": "a", "value": 1}, {"key": "b", "value": 1}]});
    server.put("/packages/demo", &package).await.with(200);
    server.put("/packages/default", &json!({})).await.with(400);
    server.deploy("demo/hello", "echo").await;
    let binding = json!({"binding": {"namespace": "_", "name": "demo"}, "parameters": [{"key": "b", "value": 2}]});
    server.put("/packages/bound", &binding).await.with(200);
    let shown = server.get("/packages/bound").await.with(200);
    assert_eq!(shown["actions"][0]["name"], "hello");
    let result =
        server.post("/actions/bound/hello?blocking=true&result=true", &json!({"c": 3})).await;
    assert_eq!(result.with(200), json!({"a": 1, "b": 2, "c": 3}));
    let list = server.get("/actions/demo/").await.with(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
    server.put("/actions/bound/more", &missing).await.with(400);
    server.delete("/packages/demo").await.with(409);
    server.delete("/actions/demo/hello").await.with(200);
    server.delete("/packages/demo").await.with(200);
}

#[tokio::test]
async fn one_name_is_one_entity() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("thing", "echo").await;
    for path in ["/triggers/thing", "/packages/thing"] {
        server.put(path, &json!({})).await.with(409);
        server.get(path).await.with(409);
    }
}

#[tokio::test]
async fn nobody_gets_in_without_a_key_or_into_another_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "echo").await;
    let path = "/api/v1/namespaces/_/actions/hello";
    let wrong = format!("{}x", server.key);
    let wrong = windfall_openwhisk::Key::to_basic(&wrong.parse().unwrap());
    for headers in
        [vec![], vec![("authorization", wrong.as_str())], vec![("authorization", "Basic ???")]]
    {
        let reply = server.send(Method::GET, path, "", &headers).await;
        assert!(reply.headers.contains_key("www-authenticate"));
        let body = reply.with(401);
        assert!(body["error"].is_string() && body["code"].is_string());
    }
    let other = [("authorization", server.other_key.as_str())];
    for (method, path, body) in [
        (Method::GET, "/api/v1/namespaces/guest/actions/hello", ""),
        (Method::GET, "/api/v1/namespaces/guest/actions", ""),
        (Method::PUT, "/api/v1/namespaces/guest/actions/mine", "{}"),
        (Method::DELETE, "/api/v1/namespaces/guest/actions/hello", ""),
        (Method::POST, "/api/v1/namespaces/guest/actions/hello", "{}"),
        (Method::GET, "/api/v1/namespaces/guest/activations", ""),
    ] {
        server.send(method, path, body, &other).await.with(403);
    }
    server.send(Method::GET, path, "", &other).await.with(404);
}

#[tokio::test]
async fn the_platform_describes_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    assert_eq!(server.call(Method::GET, "/namespaces", "").await.with(200), json!(["guest"]));
    let about = server.call(Method::GET, "", "").await.with(200);
    assert_eq!(about["runtimes"]["python"][0]["kind"], "python:3");
    assert_eq!(server.get("/limits").await.with(200)["maxActionMemory"], 512);
    assert_eq!(server.send(Method::GET, "/ping", "", &[]).await.body, "pong");
    let all = server.get("/").await.with(200);
    assert!(all["actions"].is_array() && all["rules"].is_array());
    let body = server.call(Method::GET, "/nothing", "").await.with(404);
    assert!(body["error"].as_str().unwrap().contains("/api/v1/nothing"));
    server.call(Method::PATCH, "/namespaces/_/actions/x", "").await.with(405);
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_what_is_too_large_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "echo").await;
    server.put("/actions/hello%00", &json!({})).await.with(400);
    server.put("/actions/a%2Fb%2Fc", &json!({})).await.with(400);
    server.call(Method::PUT, "/namespaces/_/actions/x", "{").await.with(400);
    server.get("/actions?limit=201").await.with(400);
    server.get("/actions?limit=x").await.with(400);
    server.get("/activations/xyz").await.with(400);
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let path = "/namespaces/_/actions/hello?blocking=true";
    server.call(Method::POST, path, body).await.with(413);
    for body in ["[]", "3", "{\"a\":"] {
        server.call(Method::POST, path, body).await.with(400);
    }
}
