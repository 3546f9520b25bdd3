//! One process with a listener as descriptor 3, and a client that speaks to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use windfall_functions::{Program, Runtime};

/// Ends with the test.
pub(crate) struct Instance {
    process: Child,
    port: u16,
}

/// A connection that is kept between requests.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// The program of a runtime, or nothing with a sentence if this machine does not have it.
pub(crate) fn program(runtime: Runtime) -> Option<Program> {
    match runtime.program() {
        // The program of this very process is a test; the server alone stands in for `windfall`.
        Ok(program) if runtime == Runtime::Builtin => {
            Some(Program { path: env!("CARGO_BIN_EXE_windfall-function").into(), ..program })
        }
        Ok(program) => Some(program),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

impl Instance {
    pub(crate) fn start(program: &Program) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // A shell moves its standard input to descriptor 3, where a spawner would put it by dup2.
        let process = Command::new("sh")
            .args(["-c", "exec 3<&0 0</dev/null; exec \"$@\"", "sh"])
            .arg(&program.path)
            .args(&program.arguments)
            .env_clear()
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { process, port }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    /// Ends the process; what it wrote to standard output and standard error.
    pub(crate) fn end(mut self) -> (String, String) {
        self.process.kill().unwrap();
        let (mut output, mut errors) = (String::new(), String::new());
        self.process.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (output, errors)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Client {
    pub(crate) fn init(&mut self, code: &str) -> (u16, Value) {
        self.post(
            "/init",
            &json!({"value": {"name": "f", "main": "main", "code": code, "binary": false}}),
        )
    }

    pub(crate) fn run(&mut self, parameters: Value) -> (u16, Value) {
        self.post("/run", &json!({"value": parameters, "activation_id": "0123", "deadline": "99"}))
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.send(path, body);
        self.receive()
    }

    pub(crate) fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: function\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> (u16, Value) {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header).unwrap();
            if header.trim().is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').unwrap();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}
