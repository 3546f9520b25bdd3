//! Load against real servers on this machine: a function server, and sockets that misbehave.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use windfall_core::{Duration, Seed};
use windfall_functions::FunctionServer;
use windfall_load::{CallResult, Generator, Measured, Report, Schedule, Shape, Target, run};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Accepts connections for the rest of the test and hands each to `serve` on a thread of its own.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// A server of the built-in function `name`, initialised.
fn function(name: &str) -> u16 {
    let functions = Arc::new(FunctionServer::default());
    let body = format!("{{\"value\":{{\"code\":\"{name}\"}}}}");
    assert_eq!(
        functions.answer(windfall_functions::request::Route::Init, body.as_bytes()).status,
        200
    );
    server(move |stream| {
        stream.set_nodelay(true).unwrap();
        let _ = functions.converse(stream);
    })
}

/// Reads requests and never answers.
fn silent() -> u16 {
    server(|mut stream| {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    })
}

fn target(port: u16, body: &str) -> Target {
    Target::url(&format!("http://127.0.0.1:{port}/run"), &[], Some(body)).unwrap()
}

fn constant(rate: f64, millis: u64, targets: usize) -> Schedule {
    Schedule::generate(Shape::Constant, rate, Duration::from_millis(millis), targets, Seed::new(1))
        .unwrap()
}

fn send(schedule: &Schedule, targets: &[Target], settings: &Generator) -> Measured {
    run(schedule, targets, settings, &GO_ON).unwrap()
}

#[test]
fn every_call_is_answered_and_counted() {
    let targets =
        [target(function("echo"), "{\"value\":{\"n\":{number}}}"), target(function("hello"), "{}")];
    let measured = send(&constant(200.0, 500, 2), &targets, &Generator::default());
    let report = Report::new(&measured);
    assert_eq!((report.requests, report.success), (100, 1.0), "{}", report.to_text());
    assert_eq!(report.targets.iter().map(|target| target.requests).collect::<Vec<_>>(), [50, 50]);
    assert_eq!(report.status_codes["200"], 100);
    // `{"n":0}` to `{"n":8}` have 7 bytes, those up to `{"n":98}` 8: 5 and 45 even numbers; the others are greetings.
    assert_eq!(report.bytes_in.total, 5 * 7 + 45 * 8 + 50 * 31);
}

#[test]
fn latency_counts_from_the_moment_a_call_was_due() {
    // None of ten calls is answered before all of them have come, the last one at 180 ms: one that was due at 100 ms
    // has waited 80. A generator that waits for answers before it sends the next call would not come to an end.
    let all_there = Arc::new(Barrier::new(10));
    let port = server(move |mut stream| {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
            all_there.wait();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    let measured = send(&constant(50.0, 200, 1), &[target(port, "{}")], &Generator::default());
    assert_eq!(measured.samples.len(), 10);
    let last_sent = measured.samples.iter().map(|sample| sample.sent).max().unwrap();
    assert!(last_sent >= Duration::from_millis(180), "{last_sent}");
    for sample in &measured.samples {
        assert!(sample.latency() >= last_sent.saturating_sub(sample.due), "{sample:?}");
        assert!(sample.is_success());
    }
}

#[test]
fn a_port_without_a_server_is_an_error_in_the_report() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let measured = send(&constant(50.0, 100, 1), &[target(port, "{}")], &Generator::default());
    let report = Report::new(&measured);
    assert_eq!((report.success, report.status_codes["0"]), (0.0, 5));
    assert!(report.errors[0].contains("Connection refused"), "{:?}", report.errors);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let settings = Generator { timeout: Duration::from_millis(200), ..Generator::default() };
    let measured = send(&constant(50.0, 100, 1), &[target(silent(), "{}")], &settings);
    assert_eq!(measured.samples.len(), 5);
    for sample in &measured.samples {
        assert_eq!(sample.result, CallResult::Failed("no answer within 0.2 s".to_owned()));
        assert!(sample.latency() >= Duration::from_millis(200));
    }
}

#[test]
fn more_calls_in_flight_than_allowed_are_not_sent_but_counted() {
    let settings = Generator {
        // Both have to be in flight when the last one is due, however late that is.
        timeout: Duration::from_secs(3),
        most_in_flight: 2,
        ..Generator::default()
    };
    let measured = send(&constant(100.0, 100, 1), &[target(silent(), "{}")], &settings);
    let unsent = CallResult::Failed("not sent: 2 calls were in flight already".to_owned());
    let count = measured.samples.iter().filter(|sample| sample.result == unsent).count();
    assert_eq!((measured.samples.len(), count), (10, 8));
}

#[test]
fn a_stop_leaves_out_what_is_not_due_yet() {
    let stop = Arc::new(AtomicBool::new(false));
    let schedule = constant(10.0, 600_000, 1);
    let stopper = Arc::clone(&stop);
    let port = server(move |mut stream| {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            stopper.store(true, Ordering::Relaxed);
        }
    });
    let measured = run(&schedule, &[target(port, "{}")], &Generator::default(), &stop).unwrap();
    assert!(!measured.samples.is_empty() && measured.samples.len() < 6000);
    assert!(measured.samples.iter().all(windfall_load::Sample::is_success));
}

#[test]
fn settings_out_of_range_are_refused() {
    let settings = Generator { threads: 0, ..Generator::default() };
    let refused = run(&constant(1.0, 1000, 1), &[target(1, "{}")], &settings, &GO_ON);
    assert_eq!(refused.unwrap_err().to_string(), "threads is 0, allowed is 1 to 64");
    let refused = run(&constant(2.0, 1000, 2), &[target(1, "{}")], &Generator::default(), &GO_ON);
    assert_eq!(refused.unwrap_err().to_string(), "there is no target");
}
