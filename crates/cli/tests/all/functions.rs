//! `windfall fn` against a server of OpenWhisk's API whose actions run inside it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use windfall_openwhisk::{ApiSettings, ApiState, EntityName, Kind, Store, StoreSettings, router};

use super::program::{Ended, Place};

#[allow(clippy::unwrap_used, reason = "shared with the tests of that crate")]
#[path = "../../../platforms/openwhisk/tests/api/in_process.rs"]
mod in_process;

/// A server that lives as long as the test.
struct Platform {
    place: Place,
    address: String,
    key: String,
    _runtime: tokio::runtime::Runtime,
}

impl Platform {
    fn start() -> Self {
        let place = Place::new();
        let store = Store::open(&place.path("store.sqlite"), StoreSettings::default())
            .expect("a new store");
        let guest = store.identity(&EntityName::new("guest").expect("a name")).expect("a new key");
        let key = guest.key.to_string();
        let kinds = ["nodejs:20", "python:3", "builtin:primes"].map(Kind::default_of_family);
        let settings = ApiSettings { kinds: kinds.into(), ..ApiSettings::default() };
        let runner = Arc::new(in_process::InProcess::default());
        let state = ApiState::new(runner, store, vec![guest], settings).expect("an empty store");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("a bound port").to_string();
        runtime.spawn(async move { axum::serve(listener, router(state)).await });
        Self { place, address, key, _runtime: runtime }
    }

    fn words<'a>(&'a self, words: &'a str) -> Vec<&'a str> {
        let connection = ["--apihost", &self.address, "--auth", &self.key];
        ["fn"].into_iter().chain(words.split_whitespace()).chain(connection).collect()
    }

    fn run(&self, words: &str) -> Ended {
        Ended::of(
            self.place.command(&self.words(words)).output().expect("the program can be started"),
        )
    }
}

#[test]
fn a_function_is_written_deployed_called_shown_and_removed() {
    let platform = Platform::start();
    let place = &platform.place;
    place.run("fn new hello", &[]).done();
    place.run("fn new hello", &[]).refused(&["hello.py is there already"]);
    // The template with a word for the runner of this test.
    place.write("hello.py", format!("{}# behave: greet\n", place.read("hello.py")));
    let deployed =
        platform.run("deploy hello.py --memory 128 --param name=bound --format json").json();
    assert_eq!((&deployed["version"], &deployed["kind"]), (&json!("0.0.1"), &json!("python:3")));
    assert_eq!(deployed["limits"]["memory"], 128);
    let call = platform.run("invoke hello --format json").json();
    assert_eq!(call["result"], json!({"greeting": "hello bound"}));
    assert_eq!((&call["start_kind"], &call["start_ms"]), (&json!("cold"), &json!(2.0)));
    let call = platform.run("invoke hello --param name=you").done();
    assert_eq!(
        serde_json::from_str::<Value>(&call.stdout).expect("JSON"),
        json!({"greeting": "hello you"})
    );
    assert!(call.stderr.contains("warm: waiting"), "{}", call.stderr);
    let logs = platform.run("logs hello").done().stdout;
    assert!(logs.contains("stdout: greeted you"), "{logs}");
    let list = platform.run("list").done().stdout;
    assert!(list.contains("hello") && list.contains("python:3"), "{list}");
    assert!(platform.run("get hello --code").done().stdout.contains("behave: greet"));
    platform.run("rm hello").done();
    platform.run("invoke hello").refused(&["there is no function hello", "windfall fn list"]);
}

#[test]
fn a_failing_function_exits_with_one_and_a_built_in_needs_no_file() {
    let platform = Platform::start();
    platform.place.write("bad.js", "// behave: throw");
    platform.run("deploy bad.js").done();
    let call = platform.run("invoke bad");
    assert_eq!(call.code, Some(1), "{call:?}");
    assert!(call.stderr.contains("action developer error"), "{}", call.stderr);
    platform.run("deploy primes").done();
    let refused =
        platform.run("deploy prines").refused(&["neither a file nor a built-in function"]);
    assert!(refused.stderr.contains("built in are primes"), "{}", refused.stderr);
    let accepted = platform.run("invoke primes --no-wait --data {\"n\":3} --format json").json();
    assert_eq!(accepted["activation"].as_str().map(str::len), Some(32));
}

#[test]
fn a_watched_file_is_deployed_again_when_it_is_saved() {
    let platform = Platform::start();
    platform.place.write("hello.js", "// behave: echo");
    let words = platform.words("deploy hello.js --watch");
    let mut child =
        platform.place.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("another line").expect("text");
    assert!(next().starts_with("deployed hello 0.0.1"));
    platform.place.write("hello.js", "// behave: greet");
    assert!(next().starts_with("deployed hello 0.0.2"));
    child.kill().expect("it can be ended");
    child.wait().expect("it has ended");
}

#[test]
fn a_platform_that_is_not_there_or_does_not_know_us_is_said_so() {
    let platform = Platform::start();
    let place = &platform.place;
    place
        .run("fn list --apihost 127.0.0.1:1 --auth a:b", &[])
        .refused(&["127.0.0.1:1 does not answer", "windfall serve"]);
    place
        .run(&format!("fn list --apihost {} --auth a:b", platform.address), &[])
        .refused(&["refuses the key"]);
    place.run("fn list --apihost https://x --auth a:b", &[]).refused(&["not an http:// address"]);
    // The file of `wsk` is read too.
    place.write("props", format!("APIHOST={}\nAUTH={}\n", platform.address, platform.key));
    let listed =
        place.command(&["fn", "list"]).env("WSK_CONFIG_FILE", place.path("props")).output();
    Ended::of(listed.expect("the program can be started")).done();
}
