//! The service is killed at random moments under load and started again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use windfall_core::Seed;

use crate::http::Api;
use crate::server::{Server, all_gone};

/// Calls of 20 ms that run again are over long before, on however busy a machine.
const LONGEST_RERUN: Duration = Duration::from_secs(60);

pub(crate) fn it_ends_softly_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("test.db");
    let server = Server::start(&database);
    let api = Api::of(&server);
    let action =
        json!({"exec": {"kind": "builtin:hello", "code": "hello"}, "limits": {"memory": 64}});
    assert_eq!(api.ask("PUT", "actions/mine", &action).map(|(status, _)| status), Some(200));
    let greeting =
        api.ask("POST", "actions/mine?blocking=true&result=true", &json!({"name": "Ada"}));
    assert_eq!(greeting, Some((200, json!({"greeting": "Hello, Ada!"}))));
    // A call that runs when the end comes may finish.
    let late = api;
    let last = std::thread::spawn(move || {
        late.ask("POST", "actions/autoscale?blocking=true&result=true", &json!({"sleep": 700}))
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.terminate(), "it ends within its grace and without an error");
    assert_eq!(last.join().expect("a thread"), Some((200, json!({"slept_ms": 700}))));
    assert!(all_gone(), "nothing of it is left");
    let key = std::fs::metadata(folder.path().join("test.db.key")).expect("the key is kept");
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&key) & 0o777, 0o600);
    let server = Server::start(&database);
    let again = Api::of(&server).ask("GET", "actions/mine", &json!({}));
    assert_eq!(again.map(|(status, _)| status), Some(200));
    assert!(server.terminate() && all_gone());
}

pub(crate) fn it_survives_kills(kills: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("test.db");
    let accepted = Arc::new(Mutex::new(Vec::new()));
    for kill in 0..kills {
        let server = Server::start(&database);
        let api = Api::of(&server);
        check_records(&api, &accepted);
        assert_eq!(
            api.ask("GET", "actions/hello", &json!({})).map(|(status, _)| status),
            Some(200)
        );
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4_u64)
            .map(|client| {
                let (api, stop) = (api.clone(), Arc::clone(&stop));
                let accepted = Arc::clone(&accepted);
                std::thread::spawn(move || load(&api, client, &stop, &accepted))
            })
            .collect();
        let moment = windfall_core::seed::mix(Seed::new(kill).stream("kills").get()) % 1500;
        std::thread::sleep(Duration::from_millis(moment));
        server.kill();
        stop.store(true, Ordering::SeqCst);
        clients.into_iter().for_each(|client| client.join().expect("a client"));
        assert!(all_gone(), "kill {kill} at {moment} ms left processes behind");
    }
    let server = Server::start(&database);
    let total = accepted.lock().expect("no client panicked").len();
    check_records(&Api::of(&server), &accepted);
    assert!(server.terminate() && all_gone());
    println!("     {kills} kills, {total} accepted calls, all with a record");
    assert!(total > 0, "nothing was accepted, so nothing was checked");
}

/// Blocking and non-blocking calls, one after another; the ids of those that were accepted are kept.
fn load(api: &Api, client: u64, stop: &AtomicBool, accepted: &Mutex<Vec<String>>) {
    while !stop.load(Ordering::SeqCst) {
        let answer = if client.is_multiple_of(2) {
            api.ask("POST", "actions/autoscale", &json!({"sleep": 20}))
        } else {
            api.ask("POST", "actions/hello?blocking=true", &json!({"name": "Ada"}))
        };
        match answer {
            Some((202, body)) => {
                let id = body["activationId"].as_str().expect("an id").to_owned();
                accepted.lock().expect("no client panicked").push(id);
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Every accepted call has a whole record. Calls that a kill interrupted run again after the start, and have none
/// until they end.
fn check_records(api: &Api, accepted: &Mutex<Vec<String>>) {
    let until = Instant::now() + LONGEST_RERUN;
    for id in accepted.lock().expect("no client panicked").iter() {
        let ask = || api.ask("GET", &format!("activations/{id}"), &json!({}));
        let mut found = ask();
        while matches!(found, Some((404, _))) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            found = ask();
        }
        let Some((200, record)) = found else { panic!("{id} was accepted and has {found:?}") };
        assert_eq!(record["activationId"].as_str(), Some(id.as_str()));
        assert!(record["response"]["status"].is_string(), "half a record: {record}");
    }
}
