//! The API over a real socket, with friendly and hostile clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

use super::*;
use crate::database::Records;
use crate::governance::Mode;
use crate::service::{Clock, Service};
use crate::simulated::{SimulatedPlatform, SimulatedWorld};
use crate::supervisor::{Supervisor, prepare};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A manager of twenty simulated functions behind a real listener.
struct Site {
    address: SocketAddr,
    service: Service,
    _runtime: tokio::runtime::Runtime,
    _stop: tokio::sync::watch::Sender<bool>,
}

impl Site {
    fn open() -> Self {
        let settings = SupervisorSettings {
            mode: Mode::Auto,
            tick: windfall_core::Duration::from_millis(200),
            shadow: Some("histogram".to_owned()),
            ..SupervisorSettings::default()
        };
        let (prepared, parts) = prepare(settings).unwrap();
        let generator = AzureLikeSettings {
            functions: 20,
            calls_per_hour: 4000.0,
            ..AzureLikeSettings::default()
        };
        let scenario = Scenario {
            trace: Source::AzureLike(generator),
            loads: vec![0.6],
            ..Scenario::default()
        };
        let world = SimulatedWorld { scenario, seed: 5, speed: 60.0 };
        let platform = SimulatedPlatform::start(&world, parts).unwrap();
        let manager = Supervisor::new(prepared, Box::new(platform), Records::nowhere());
        let service = Service::start(manager, Clock::begin()).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let state = ApiState::new(&service, address, TOKEN.to_owned(), None);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        runtime.spawn(serve(listener, state, stopped));
        Self { address, service, _runtime: runtime, _stop: stop }
    }

    /// Sends bytes and reads the whole answer: status and body.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may close while it is still being sent to.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.to_owned())
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let host = self.address;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        let (status, body) = self.raw(request.as_bytes());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "", "")
    }

    fn put(&self, path: &str, body: &str) -> (u16, Value) {
        self.send("PUT", path, &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }

    /// Waits until calls have ended, at most some seconds.
    fn wait_for_calls(&self, least: u64) -> Value {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let (_, status) = self.get("/api/v1/status");
            if status["totals"]["calls"].as_u64() >= Some(least) || Instant::now() > until {
                return status;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn everything_can_be_read_and_every_order_has_its_effect() {
    let site = Site::open();
    let status = site.wait_for_calls(200);
    assert_eq!(status["platform"], "simulated");
    assert!(status["totals"]["calls"].as_u64() >= Some(200), "{status}");
    let paths = [
        "cluster",
        "functions",
        "decisions",
        "recommendations",
        "policies",
        "learning",
        "health",
        "openapi.json",
    ];
    for path in paths {
        let (status, _) = site.get(&format!("/api/v1/{path}"));
        // A machine that is too busy for five ticks a second makes the health `failing`, which is 503.
        assert!(status == 200 || (path == "health" && status == 503), "{path}: {status}");
    }
    let (_, list) = site.get("/api/v1/functions?limit=1");
    let name = list["functions"][0]["name"].as_str().unwrap().to_owned();
    let hold = format!("/api/v1/functions/{name}/hold");
    assert_eq!(site.put(&hold, "{}").0, 200);
    let standing = |site: &Site| {
        let (_, function) = site.get(&format!("/api/v1/functions/{name}"));
        function["standing"]["word"].as_str().unwrap().to_owned()
    };
    assert_eq!(standing(&site), "paused");
    assert_eq!(site.put(&hold, r#"{"pin": {"cores": 0.5, "mib": 256}}"#).0, 200);
    assert_eq!(standing(&site), "pinned");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(site.send("DELETE", &hold, &bearer, "").0, 200);
    assert_eq!(standing(&site), "managed");
    assert_eq!(site.put("/api/v1/kill", r#"{"on": true}"#).0, 200);
    assert_eq!(standing(&site), "own");
    let (_, decisions) = site.get("/api/v1/decisions?kind=order");
    assert!(decisions["entries"].as_array().unwrap().len() >= 4, "{decisions}");
    let id = decisions["entries"][0]["id"].as_u64().unwrap();
    let (_, answer) = site.get(&format!("/api/v1/decisions/{id}"));
    assert!(answer["explanation"].as_str().unwrap().contains("kill switch on"), "{answer}");
    let invoke = format!("/api/v1/functions/{name}/invoke");
    let (code, ran) =
        site.send("POST", &invoke, &bearer, r#"{"size": {"cores": 0.1, "mib": 4096}}"#);
    assert_eq!(code, 200, "{ran}");
    assert!(ran["run_ms"].as_f64().unwrap() > 0.0);
    let (_, metrics) = site.get("/metrics");
    assert!(metrics.as_str().unwrap().contains("windfall_calls_ended_total{end=\"completed\"}"));
}

#[test]
fn hostile_requests_are_refused_and_change_nothing() {
    let mut site = Site::open();
    let kill = r#"{"on": true}"#;
    let host = site.address;
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let put = |headers: &str, body: &str| site.send("PUT", "/api/v1/kill", headers, body).0;
    assert_eq!(put("", kill), 401);
    assert_eq!(put("Authorization: Bearer 0\r\n", kill), 401);
    assert_eq!(put(&format!("{bearer}Origin: http://evil.example\r\n"), kill), 403);
    assert_eq!(put(&format!("{bearer}Sec-Fetch-Site: cross-site\r\n"), kill), 403);
    assert_eq!(put(&bearer, "{\"on\": tru"), 400);
    assert_eq!(put(&bearer, r#"{"on": true, "more": 1}"#), 400);
    assert_eq!(put(&bearer, "[true]"), 400, "a list is not taken for the fields of an object");
    assert_eq!(put(&bearer, &format!("{{\"on\": {}}}", "1".repeat(400_000))), 413);
    let rebound = "PUT /api/v1/kill HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(site.raw(rebound.as_bytes()).0, 403);
    for path in [
        "/../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/secret",
        "/api/v1/functions/%00",
        "/api/v1/functions/%ff",
    ] {
        let (status, _) = site.get(path);
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let flood: String = (0..500).map(|k| format!("X-{k}: y\r\n")).collect();
    let (status, _) = site.raw(format!("GET / HTTP/1.1\r\nHost: {host}\r\n{flood}\r\n").as_bytes());
    assert!(status == 431 || status == 400, "{status}");
    let long = format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "a".repeat(100_000));
    let (status, _) = site.raw(long.as_bytes());
    assert!(status == 414 || status == 431 || status == 400, "{status}");
    assert!(!site.service.governance.is_killed(), "nothing was changed");
    let until = Instant::now() + Duration::from_secs(10);
    let refused = loop {
        let (_, orders) = site.get("/api/v1/decisions?kind=order&limit=50");
        let refused = orders["entries"].as_array().map_or(0, Vec::len);
        if refused >= 4 || Instant::now() > until {
            break refused;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(refused >= 4, "refusals are recorded: {refused}");
    assert!(site.service.stop());
}

#[test]
fn a_client_that_sends_no_headers_is_disconnected_and_others_are_served() {
    let site = Site::open();
    let mut slow = TcpStream::connect(site.address).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    assert_eq!(site.get("/api/v1/status").0, 200);
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest);
    assert!(ended.is_ok(), "the server ends it before the client gives up: {ended:?}");
}

/// What is wrong with `value` by `schema`: a key that is missing or not described, at any depth.
fn differences(
    description: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = description.pointer(&name[1..]).expect("a reference leads somewhere");
        return differences(description, schema, value, at, found);
    }
    if let Some(either) = schema["oneOf"].as_array() {
        if !value.is_null() {
            differences(description, &either[0], value, at, found);
        }
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items.iter().take(20) {
                differences(description, &schema["items"], item, &format!("{at}[]"), found);
            }
        }
        Value::Object(object) => {
            let Some(described) = schema["properties"].as_object() else { return };
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let missing =
                required.iter().filter_map(Value::as_str).filter(|it| !object.contains_key(*it));
            found.extend(missing.map(|key| format!("{at}.{key} is missing")));
            for (key, value) in object {
                match described.get(key) {
                    Some(schema) => {
                        differences(description, schema, value, &format!("{at}.{key}"), found)
                    }
                    None => found.push(format!("{at}.{key} is not described")),
                }
            }
        }
        Value::String(text) => {
            if let Some(words) = schema["enum"].as_array()
                && !words.contains(value)
            {
                found.push(format!("{at} is `{text}`, described are {words:?}"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn answers_have_the_keys_and_words_that_the_description_has() {
    let site = Site::open();
    site.wait_for_calls(500);
    let description: Value = serde_json::from_str(assets::OPENAPI).unwrap();
    let (_, list) = site.get("/api/v1/functions?limit=1");
    let name = list["functions"][0]["name"].as_str().unwrap().to_owned();
    site.put("/api/v1/shadow", r#"{"name": "histogram"}"#);
    let (_, tape) = site.get("/api/v1/decisions?limit=1");
    let id = tape["entries"][0]["id"].as_u64().unwrap().to_string();
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let (_, answer) = site.get(&path.replace("{name}", &name).replace("{id}", &id));
        differences(&description, schema, &answer, path, &mut found);
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let invoke = format!("/api/v1/functions/{name}/invoke");
    let (_, ran) = site.send("POST", &invoke, &bearer, "{}");
    let schema = &description["components"]["schemas"]["Invoked"];
    differences(&description, schema, &ran, "invoke", &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_description_names_every_path_that_the_router_has() {
    let description: Value = serde_json::from_str(assets::OPENAPI).unwrap();
    let described = description["paths"].as_object().unwrap();
    let source = include_str!("../api.rs");
    for line in source.lines().filter(|line| line.contains(".route(\"/")) {
        let path = line.split('"').nth(1).unwrap();
        let is_described = described.keys().any(|known| known.ends_with(path));
        let is_page = path == "/" || path.starts_with("/assets");
        assert!(is_described || is_page, "{path} is not in openapi.json");
    }
}

#[test]
fn live_views_get_a_state_every_second_with_what_is_new() {
    let site = Site::open();
    site.wait_for_calls(1);
    let mut stream = TcpStream::connect(site.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned)).take(3);
    let states: Vec<Value> = data.map(|text| serde_json::from_str(&text).unwrap()).collect();
    let times: Vec<f64> = states.iter().filter_map(|it| it["status"]["now"].as_f64()).collect();
    assert!(times.len() == 3 && times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!(states.iter().all(|state| state["tape"].is_array()));
}

#[test]
fn a_flood_of_refused_requests_is_counted_and_does_not_fill_the_audit_log() {
    let site = Site::open();
    let began = Instant::now();
    for _ in 0..300 {
        site.send("PUT", "/api/v1/kill", "", r#"{"on": true}"#);
    }
    let written = || {
        let (_, orders) = site.get("/api/v1/decisions?kind=order&limit=1000");
        orders["entries"].as_array().map_or(0, Vec::len) as u64
    };
    // The loop writes them down when it comes round.
    let mut noted = written();
    while noted == 0 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
        noted = written();
    }
    // Fifty together, then one a second.
    let most = 51 + began.elapsed().as_secs();
    assert!((1..=most).contains(&noted), "{noted} of 300 are written down, allowed are {most}");
}

#[test]
fn alerts_and_the_dashboard_for_grafana_ask_for_metrics_that_are_exported() {
    let site = Site::open();
    site.wait_for_calls(50);
    let (_, text) = site.get("/metrics");
    let text = text.as_str().unwrap();
    let exported: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed = windfall_telemetry::metric_names::METRIC_NAMES;
    assert!(exported.iter().all(|name| listed.iter().any(|metric| metric.name == *name)));
    let alerts = include_str!("../../../../deploy/alerts.yaml");
    let grafana = include_str!("../../../../deploy/grafana-dashboard.json");
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    for word in [alerts, grafana].iter().flat_map(|file| file.split(|letter| !is_part(letter))) {
        if word.starts_with("windfall_") {
            let name = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
            let is_known =
                exported.contains(&word) || name.is_some_and(|it| exported.contains(&it));
            assert!(is_known, "{word} is asked for in deploy/ and not exported");
        }
    }
}
