//! `windfall load` against a built-in function, which is the same program again.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::program::{Place, windfall};

/// A server of built-in functions; it ends with the test.
struct Functions {
    process: Child,
    url: String,
}

impl Functions {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(windfall())
            .arg("__function")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const INIT: &str = "{\"value\":{\"code\":\"hello\"}}";

#[test]
fn calls_are_sent_and_reported() {
    let place = Place::new();
    let functions = Functions::start();
    let (init, run) = (format!("{}/init", functions.url), format!("{}/run", functions.url));
    let once =
        ["--url", &init, "--body", INIT, "--rate", "1", "--seconds", "1", "--shape", "constant"];
    place.run("load", &once).done();
    let many =
        ["--url", &run, "--body", "{}", "--rate", "200", "--seconds", "1", "--shape", "constant"];
    let text = place.run("load", &many).done().stdout;
    assert!(
        text.starts_with("Requests      [total, rate, throughput]               200, "),
        "{text}"
    );
    assert!(
        text.contains("Success       [ratio]                                 100.00%"),
        "{text}"
    );
    let json = place.run("load --format json", &many).json();
    assert_eq!((&json["requests"], &json["status_codes"]["200"]), (&200.into(), &200.into()));
    assert!(json["latencies"]["99th"].as_u64().unwrap() > 0);
}

#[test]
fn a_generated_trace_is_replayed() {
    let place = Place::new();
    let functions = Functions::start();
    let small = ["--functions", "5", "--minutes", "5", "--calls-per-hour", "600"];
    place.run("trace generate calls.wft", &small).done();
    let flags =
        ["--url", &functions.url, "--trace", "calls.wft", "--speed", "300", "--format", "json"];
    // No function is loaded: all calls are answered, with 404.
    let ended = place.run("load", &flags);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("\"404\""), "{ended:?}");
}

#[test]
fn what_cannot_be_sent_is_refused_with_what_is_allowed() {
    let place = Place::new();
    let refused = |flags: &[&str], parts: &[&str]| {
        place.run("load", flags).refused(parts);
    };
    refused(&[], &["nothing to call: give --url URL or --action NAME"]);
    refused(
        &["--url", "localhost"],
        &["URL `localhost`", "allowed is e.g. http://127.0.0.1:8080/path"],
    );
    refused(&["--url", "https://h/"], &["TLS is not spoken here"]);
    refused(&["--url", "http://h/", "--rate", "0"], &["rate is 0, allowed is 0.001 to 1000000"]);
    refused(&["--url", "http://h/", "--seconds=-1"], &["--seconds is -1, allowed is more than 0"]);
    let endless = ["--url", "http://h/", "--rate", "1000000", "--seconds", "86400"];
    refused(&endless, &["more than 10000000 calls", "hint: lower the rate"]);
    let nobody = ["--action", "a b", "--apihost", "h", "--auth", "u:k"];
    refused(&nobody, &["action `a b`: allowed is NAME"]);
    refused(
        &["--url", "http://h/", "--format", "csv"],
        &["--format of a load report is text or json"],
    );
}
