//! Calls and their records.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use windfall_openwhisk::{ApiSettings, Throttle};

use super::server::{Server, settings};

/// The value of an annotation.
fn annotation<'a>(record: &'a Value, key: &str) -> &'a Value {
    let all = record["annotations"].as_array().unwrap();
    all.iter().find(|entry| entry["key"] == key).map_or(&Value::Null, |entry| &entry["value"])
}

/// The record of an activation, when it is there.
async fn record(server: &Server, id: &Value) -> Value {
    let path = format!("/activations/{}", id.as_str().unwrap());
    for _ in 0..6000 {
        let reply = server.get(&path).await;
        if reply.status == 200 {
            return reply.json();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} has no record after a minute");
}

#[tokio::test]
async fn a_blocking_call_returns_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "greet").await;
    let reply = server.post("/actions/hello?blocking=true", &json!({"name": "you"})).await;
    let id = reply.headers["x-openwhisk-activation-id"].to_str().unwrap().to_owned();
    let cold = reply.with(200);
    assert_eq!(cold["activationId"], id.as_str());
    assert_eq!(cold["response"]["result"], json!({"greeting": "hello you"}));
    assert_eq!((&cold["response"]["success"], &cold["statusCode"]), (&json!(true), &json!(0)));
    assert_eq!(annotation(&cold, "path"), "guest/hello");
    assert_eq!(annotation(&cold, "initTime"), &json!(2));
    assert_eq!(annotation(&cold, "windfall")["start_kind"], "cold");
    assert_eq!(
        cold["end"].as_u64().unwrap() - cold["start"].as_u64().unwrap(),
        cold["duration"].as_u64().unwrap()
    );
    assert_eq!(server.get(&format!("/activations/{id}")).await.with(200), cold);
    let logs = server.get(&format!("/activations/{id}/logs")).await.with(200);
    assert!(logs["logs"][0].as_str().unwrap().ends_with("stdout: greeted you"));
    let result = server.get(&format!("/activations/{id}/result")).await.with(200);
    assert_eq!(result["result"], json!({"greeting": "hello you"}));
    let warm = server.post("/actions/hello?blocking=true", &json!({})).await.with(200);
    assert_eq!(annotation(&warm, "initTime"), &Value::Null);
    assert_eq!(annotation(&warm, "windfall")["start_kind"], "warm");
}

#[tokio::test]
async fn the_result_alone_is_sent_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "echo").await;
    let path = "/namespaces/_/actions/hello?blocking=true&result=true";
    // The bytes come back as they were sent: nothing is bound, so nothing is parsed and written again.
    let reply = server.call(Method::POST, path, "{ \"a\" : 1.50 }").await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"{ \"a\" : 1.50 }"[..]));
    assert_eq!(server.call(Method::POST, path, "").await.with(200), json!({}));
}

#[tokio::test]
async fn failures_keep_their_class() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    for (behaviour, status, code, text) in [
        ("error", 502, 1, "application error"),
        ("throw", 502, 2, "action developer error"),
        ("nonsense", 500, 3, "whisk internal error"),
        ("panic", 500, 3, "whisk internal error"),
    ] {
        server.deploy(behaviour, behaviour).await;
        let reply = server.post(&format!("/actions/{behaviour}?blocking=true"), &json!({})).await;
        let record = reply.with(status);
        assert_eq!(
            (&record["statusCode"], &record["response"]["status"]),
            (&json!(code), &json!(text))
        );
        assert!(record["response"]["result"]["error"].is_string(), "{record}");
        let reply = server
            .post(&format!("/actions/{behaviour}?blocking=true&result=true"), &json!({}))
            .await;
        assert!(reply.with(status)["error"].is_string());
    }
}

#[tokio::test]
async fn a_call_that_exceeds_its_timeout_is_a_developer_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    let action =
        json!({"exec": {"kind": "nodejs:20", "code": "behave: sleep"}, "limits": {"timeout": 100}});
    server.put("/actions/slow", &action).await.with(200);
    let record = server.post("/actions/slow?blocking=true", &json!({"ms": 5000})).await.with(502);
    assert_eq!(annotation(&record, "timeout"), &json!(true));
    let error = record["response"]["result"]["error"].as_str().unwrap();
    assert!(error.contains("exceeded its time limits of 100 milliseconds"), "{error}");
}

#[tokio::test]
async fn a_call_without_waiting_is_accepted_and_ends_later() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("slow", "sleep").await;
    let accepted = server.post("/actions/slow", &json!({"ms": 30})).await.with(202);
    let id = &accepted["activationId"];
    assert_eq!(record(&server, id).await["response"]["result"], json!({"slept": 30}));
}

#[tokio::test]
async fn a_blocking_call_that_takes_too_long_becomes_an_accepted_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("slow", "sleep").await;
    let path = "/actions/slow?blocking=true&timeout=50";
    // Far longer than it takes to ask for a record that is not there yet.
    let accepted = server.post(path, &json!({"ms": 5000})).await.with(202);
    let id = accepted["activationId"].as_str().unwrap();
    server.get(&format!("/activations/{id}")).await.with(404);
    assert_eq!(
        record(&server, &accepted["activationId"]).await["response"]["result"],
        json!({"slept": 5000})
    );
    server.post("/actions/slow?blocking=true&timeout=0", &json!({})).await.with(400);
    server.post("/actions/slow?blocking=true&timeout=999999", &json!({})).await.with(400);
}

#[tokio::test]
async fn records_are_listed_newest_first_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("one", "echo").await;
    server.deploy("two", "echo").await;
    for name in ["one", "one", "two"] {
        server.post(&format!("/actions/{name}?blocking=true"), &json!({})).await.with(200);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let list = server.get("/activations").await.with(200);
    let names: Vec<&Value> = list.as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["two", "one", "one"]);
    assert!(list[0].get("response").is_none() && list[0].get("logs").is_none());
    assert_eq!(server.get("/activations?name=one").await.with(200).as_array().unwrap().len(), 2);
    assert_eq!(server.get("/activations?limit=1&skip=1").await.with(200)[0]["name"], "one");
    let upto = list[1]["start"].as_u64().unwrap();
    let path = format!("/activations?upto={upto}&docs=true");
    let older = server.get(&path).await.with(200);
    assert_eq!(older.as_array().unwrap().len(), 2);
    assert_eq!(older[0]["response"]["result"], json!({}));
    assert_eq!(server.get("/activations?count=true").await.with(200), json!({"activations": 3}));
    server.get("/activations?count=true&docs=true").await.with(400);
}

#[tokio::test]
async fn a_result_of_any_depth_does_not_spoil_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    server.deploy("hello", "echo").await;
    let path = "/namespaces/_/actions/hello?blocking=true&result=true";
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [deep, "{\"a\":\"\\ud800\"}".to_owned()] {
        let reply = server.call(Method::POST, path, body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, body.as_bytes()));
    }
    assert_eq!(server.get("/activations").await.with(200).as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_namespace_that_calls_too_often_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let throttle = Throttle { invocations_per_minute: Some(3), ..Throttle::default() };
    let server = Server::start(folder.path(), ApiSettings { throttle, ..settings() }).await;
    server.deploy("hello", "echo").await;
    for _ in 0..3 {
        server.post("/actions/hello?blocking=true", &json!({})).await.with(200);
    }
    let refused = server.post("/actions/hello?blocking=true", &json!({})).await.with(429);
    assert_eq!(refused["error"], "Too many requests in the last minute (count: 4, allowed: 3).");
}

#[tokio::test]
async fn a_namespace_with_too_many_calls_in_flight_is_refused_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let throttle = Throttle { concurrent_invocations: Some(1), ..Throttle::default() };
    let server = Server::start(folder.path(), ApiSettings { throttle, ..settings() }).await;
    server.deploy("slow", "sleep").await;
    let accepted = server.post("/actions/slow", &json!({"ms": 300})).await.with(202);
    let refused = server.post("/actions/slow", &json!({"ms": 1})).await.with(429);
    assert!(refused["error"].as_str().unwrap().contains("concurrent"), "{refused}");
    record(&server, &accepted["activationId"]).await;
    server.post("/actions/slow?blocking=true", &json!({"ms": 1})).await.with(200);
}
