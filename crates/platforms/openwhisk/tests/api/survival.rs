//! Ends without warning: every accepted call is run to its end by the next start, and every record is whole.
//!
//! The server is this test program, started again as its own child and killed with SIGKILL.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::server::{Server, settings};

const FOLDER: &str = "WINDFALL_TEST_SERVER_FOLDER";

/// Does nothing, unless it is the child: then it serves until it is killed.
#[test]
fn serve_as_a_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::start(Path::new(&folder), settings()).await;
        server.deploy("slow", "sleep").await;
        println!("listening {} {}", server.address, server.key);
        std::future::pending::<()>().await;
    });
}

fn child(folder: &Path) -> (Child, String, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["api::survival::serve_as_a_child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let line = output
        .lines()
        .map(Result::unwrap)
        // The test harness prints its own words before ours, on the same line.
        .find_map(|line| Some(line.split_once("listening ")?.1.to_owned()))
        .unwrap();
    let (address, key) = line.split_once(' ').unwrap();
    (child, address.to_owned(), key.to_owned())
}

/// Sends calls until the server is gone; returns those that were accepted.
async fn hammer(address: &str, key: &str) -> Vec<String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let basic = key.parse::<windfall_openwhisk::Key>().unwrap().to_basic();
    let mut accepted = Vec::new();
    for number in 0.. {
        let blocking = if number % 3 == 0 { "?blocking=true" } else { "" };
        let request =
            Request::post(format!("http://{address}/api/v1/namespaces/_/actions/slow{blocking}"))
                .header("authorization", &basic)
                .body(Full::new(Bytes::from(format!("{{\"ms\":{}}}", number % 7))))
                .unwrap();
        let Ok(answer) = client.request(request).await else { break };
        let Ok(body) = answer.into_body().collect().await else { break };
        let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
        if blocking.is_empty() {
            accepted.push(body["activationId"].as_str().unwrap().to_owned());
        }
    }
    accepted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_no_accepted_call_and_leaves_no_half_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut accepted = Vec::new();
    // On a busy machine a round may end before anything was accepted.
    let mut round = 0_u64;
    while round < 5 || accepted.is_empty() {
        let (mut child, address, key) = child(folder.path());
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let (address, key) = (address.clone(), key.clone());
                tokio::spawn(async move { hammer(&address, &key).await })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(60 + 37 * round)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        for client in clients {
            accepted.extend(client.await.unwrap());
        }
        round += 1;
    }
    let server = Server::start(folder.path(), settings()).await;
    for id in &accepted {
        let began = std::time::Instant::now();
        let record = loop {
            // Not found while it runs again.
            let answer = server.get(&format!("/activations/{id}")).await;
            if answer.status == 200 {
                break answer.with(200);
            }
            assert!(began.elapsed().as_secs() < 30, "{id} has no record");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert!(record["response"]["result"]["slept"].is_number(), "{record}");
    }
    println!("{} accepted, all of them ended", accepted.len());
    let all = server.get("/activations?docs=true&limit=200").await.with(200);
    assert!(all.as_array().unwrap().iter().all(|record| record["statusCode"].is_number()));
}
