//! Measures an instance of a built-in function: start to first answer, and warm calls.
//!
//! The argument is the program to start, by default this one:
//!
//!   cargo build --profile quick -p windfall-functions --examples --bins
//!   measure_server windfall-function

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 200;
const CALLS: usize = 20_000;

fn main() {
    windfall_functions::serve_if_function();
    let own = std::env::current_exe().expect("/proc is mounted").display().to_string();
    let program = std::env::args().nth(1).unwrap_or(own);
    let mut starts = Vec::new();
    let mut inits = Vec::new();
    for _ in 0..STARTS {
        let (start, init) = start(&program, 0).0;
        starts.push(start);
        inits.push(init);
    }
    let ((_, _), warm) = start(&program, CALLS);
    print("start to first answer", starts);
    print("init", inits);
    print("warm call", warm);
}

/// Times from the start of the process to the answer of /init, and of the first /run after it; then warm calls.
fn start(program: &str, calls: usize) -> ((Duration, Duration), Vec<Duration>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let began = Instant::now();
    // The shell that moves the listener to descriptor 3 would cost more than the server: the server takes it from
    // there only if it is asked to, so it gets a port instead and the listener is closed just before.
    drop(listener);
    let mut process = Command::new(program)
        .arg(windfall_functions::FUNCTION_ARGUMENT)
        .env_clear()
        .env("PORT", address.port().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::from(OwnedFd::from(std::fs::File::create("/dev/null").expect("it exists"))))
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_micros(50)),
        }
    };
    stream.set_nodelay(true).expect("a socket takes it");
    post(&mut stream, "/init", r#"{"value":{"code":"echo"}}"#);
    let ready = began.elapsed();
    let second = Instant::now();
    post(&mut stream, "/run", r#"{"value":{}}"#);
    let first_run = second.elapsed();
    let warm = (0..calls)
        .map(|_| {
            let began = Instant::now();
            post(&mut stream, "/run", r#"{"value":{}}"#);
            began.elapsed()
        })
        .collect();
    process.kill().expect("it is ours");
    process.wait().expect("it is ours");
    ((ready, first_run), warm)
}

fn post(stream: &mut TcpStream, path: &str, body: &str) {
    let length = body.len();
    let request = format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = [0; 1024];
    let count = stream.read(&mut answer).expect("the server answers");
    assert!(answer[..count].starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&answer));
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let _ = writeln!(
        std::io::stdout(),
        "{what:22} p50 {:8.1} us   p95 {:8.1} us   p99 {:8.1} us",
        at(0.5),
        at(0.95),
        at(0.99)
    );
}
