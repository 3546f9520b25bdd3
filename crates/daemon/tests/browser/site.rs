//! A manager of simulated functions with its dashboard, and the API as a second witness.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use windfall_daemon::database::Records;
use windfall_daemon::simulated::{SimulatedPlatform, SimulatedWorld};
use windfall_daemon::{Clock, Mode, Server, Service, Supervisor, SupervisorSettings, prepare};
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) struct Site {
    server: Server,
    _service: Service,
}

impl Site {
    /// Forty functions, twenty simulated seconds a second.
    pub(crate) fn open() -> Self {
        let settings = SupervisorSettings {
            mode: Mode::Auto,
            tick: windfall_core::Duration::from_millis(500),
            shadow: Some("histogram".to_owned()),
            ..SupervisorSettings::default()
        };
        let (prepared, parts) = prepare(settings).expect("policies of ours");
        let generator = AzureLikeSettings {
            functions: 40,
            calls_per_hour: 36_000.0,
            ..AzureLikeSettings::default()
        };
        let scenario = Scenario {
            trace: Source::AzureLike(generator),
            loads: vec![0.7],
            ..Scenario::default()
        };
        let world = SimulatedWorld { scenario, seed: 1, speed: 20.0 };
        let platform = SimulatedPlatform::start(&world, parts);
        let platform = Box::new(platform.expect("a generated world"));
        let manager = Supervisor::new(prepared, platform, Records::nowhere());
        let service = Service::start(manager, Clock::begin()).expect("threads");
        let listen = ([127, 0, 0, 1], 0).into();
        let server = Server::start(listen, &service, TOKEN.to_owned(), None).expect("a port");
        let site = Self { server, _service: service };
        site.until("calls have ended", || site.status()["totals"]["calls"].as_u64() > Some(500));
        site
    }

    /// Where it listens.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The dashboard with its token.
    pub(crate) fn url(&self) -> String {
        format!("{}/#token={TOKEN}", self.origin())
    }

    fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let address = self.server.address();
        let mut stream = TcpStream::connect(address).expect("the API listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("the API reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the API answers");
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "")
    }

    pub(crate) fn status(&self) -> Value {
        self.get("/api/v1/status").1
    }

    pub(crate) fn standing(&self, name: &str) -> String {
        let (_, function) = self.get(&format!("/api/v1/functions/{name}"));
        function["standing"]["word"].as_str().unwrap_or_default().to_owned()
    }

    /// The function with the most calls.
    pub(crate) fn busiest(&self) -> String {
        let (_, list) = self.get("/api/v1/functions?sort=calls&limit=1");
        list["functions"][0]["name"].as_str().expect("there is one").to_owned()
    }

    /// Runs an earlier call again.
    pub(crate) fn replay(&self, name: &str, call: u64) -> Value {
        let path = format!("/api/v1/functions/{name}/invoke");
        self.send("POST", &path, &format!("{{\"replay\": {call}}}")).1
    }

    /// Waits until `holds`, at most ten seconds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
