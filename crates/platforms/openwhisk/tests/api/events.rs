//! Sequences, triggers and rules.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Server, settings};

fn sequence(components: &[&str]) -> Value {
    json!({"exec": {"kind": "sequence", "components": components}})
}

#[tokio::test]
async fn a_sequence_passes_results_on_and_lists_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("first", "greet").await;
    server.deploy("second", "echo").await;
    server.put("/actions/inner", &sequence(&["/_/first", "/guest/second"])).await.with(200);
    server.put("/actions/outer", &sequence(&["/_/inner", "/_/second"])).await.with(200);
    let record =
        server.post("/actions/outer?blocking=true", &json!({"name": "you"})).await.with(200);
    assert_eq!(record["response"]["result"], json!({"greeting": "hello you"}));
    let parts = record["logs"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    let part = server.get(&format!("/activations/{}", parts[0].as_str().unwrap())).await.with(200);
    assert_eq!((&part["name"], &part["cause"]), (&json!("inner"), &record["activationId"]));
    assert_eq!(part["logs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_sequence_ends_with_the_first_part_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("ok", "echo").await;
    server.deploy("bad", "throw").await;
    server.put("/actions/chain", &sequence(&["/_/ok", "/_/bad", "/_/ok"])).await.with(200);
    let record = server.post("/actions/chain?blocking=true", &json!({})).await.with(502);
    assert_eq!((&record["statusCode"], record["logs"].as_array().unwrap().len()), (&json!(2), 2));
}

#[tokio::test]
async fn a_sequence_must_be_finite_and_short_and_exist() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("ok", "echo").await;
    server.put("/actions/empty", &sequence(&[])).await.with(400);
    server.put("/actions/gone", &sequence(&["/_/nobody"])).await.with(400);
    server.put("/actions/long", &sequence(&["/_/ok"; 51])).await.with(400);
    server.put("/actions/a", &sequence(&["/_/ok"])).await.with(200);
    server.put("/actions/b", &sequence(&["/_/a"])).await.with(200);
    server.put("/actions/a?overwrite=true", &sequence(&["/_/b"])).await.with(400);
}

#[tokio::test]
async fn a_trigger_calls_the_actions_of_its_active_rules() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "greet").await;
    let trigger = json!({"parameters": [{"key": "name", "value": "from the trigger"}]});
    server.put("/triggers/bell", &trigger).await.with(200);
    server.post("/triggers/bell", &json!({})).await.with(204);
    let rule = json!({"trigger": "/_/bell", "action": "/_/hello"});
    assert_eq!(server.put("/rules/ring", &rule).await.with(200)["status"], "active");
    server.put("/rules/wrong", &json!({"trigger": "/_/bell", "action": "/_/no"})).await.with(400);
    let shown = server.get("/triggers/bell").await.with(200);
    assert_eq!(shown["rules"]["guest/ring"]["status"], "active");
    let fired = server.post("/triggers/bell", &json!({"x": 1})).await.with(202);
    let path = format!("/activations/{}", fired["activationId"].as_str().unwrap());
    let record = server.get(&path).await.with(200);
    assert_eq!(record["response"]["result"], json!({"x": 1}));
    let line: Value = serde_json::from_str(record["logs"][0].as_str().unwrap()).unwrap();
    assert_eq!((&line["rule"], &line["success"]), (&json!("guest/ring"), &json!(true)));
    let path = format!("/activations/{}", line["activationId"].as_str().unwrap());
    for _ in 0..6000 {
        if server.get(&path).await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let called = server.get(&path).await.with(200);
    assert_eq!(called["response"]["result"], json!({"greeting": "hello from the trigger"}));
    let off = server.post("/rules/ring", &json!({"status": "inactive"})).await.with(200);
    assert_eq!(off["status"], "inactive");
    server.post("/triggers/bell", &json!({})).await.with(204);
    server.delete("/rules/ring").await.with(200);
    server.delete("/triggers/bell").await.with(200);
}
