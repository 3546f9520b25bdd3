//! A headless Chromium behind its driver: found, or installed where that is possible. The driver is spoken to in
//! WebDriver's own JSON over HTTP, of which this test needs five commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The driver's process; ended with the test.
pub(crate) struct Driver {
    process: Child,
    port: u16,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn found(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Installs the two packages with apt; why not, if it cannot.
fn install() -> Result<(), String> {
    eprintln!("chromium or chromedriver is missing: installing both with apt-get");
    for arguments in [
        &["update", "-qq"][..],
        &["install", "-y", "-qq", "--no-install-recommends", "chromium", "chromium-driver"][..],
    ] {
        let ended = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("apt-get cannot be started: {error}"))?;
        if !ended.status.success() {
            let why = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(format!("apt-get {} failed: {why}", arguments[0]));
        }
    }
    Ok(())
}

impl Driver {
    /// Starts the driver on a free port.
    pub(crate) fn start() -> Result<Self, String> {
        if !found("chromedriver") || !(found("chromium") || found("google-chrome")) {
            install()?;
        }
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("chromedriver cannot be started: {error}"))?;
        let output = process.stdout.take().ok_or("chromedriver has no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, rest) = line.split_once("successfully on port ")?;
            rest.trim_end_matches('.').parse().ok()
        });
        // Read to the end, so that the driver never waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.ok_or("chromedriver did not name its port")?;
        Ok(Self { process, port })
    }

    /// A browser with a window of 1280 by 900.
    pub(crate) fn browser(&self) -> Browser<'_> {
        let options = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--hide-scrollbars", "--window-size=1280,900",
            ]},
            "goog:loggingPrefs": { "browser": "ALL" },
        }}});
        let made = self.send("POST", "/session", &options);
        let session = made["value"]["sessionId"].as_str();
        let session = session.unwrap_or_else(|| panic!("a browser starts: {made}")).to_owned();
        Browser { driver: self, session }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let port = self.port;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("the driver reads");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        // The driver keeps the connection open, so the length says where the answer ends.
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            let (key, value) = line.split_once(':').unwrap_or_default();
            if key.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().expect("a length");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the driver answers");
        serde_json::from_slice(&body).unwrap_or(Value::Null)
    }
}

/// One browser; closed with the test.
pub(crate) struct Browser<'a> {
    driver: &'a Driver,
    session: String,
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        self.driver.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
    }
}

impl Browser<'_> {
    fn post(&self, path: &str, body: &Value) -> Value {
        self.driver.send("POST", &format!("/session/{}/{path}", self.session), body)
    }

    /// Opens a page.
    pub(crate) fn open(&self, url: &str) {
        let answer = self.post("url", &json!({ "url": url }));
        assert_eq!(answer["value"], Value::Null, "{url}");
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        let answer = self.post("execute/sync", &json!({ "script": script, "args": [] }));
        let problem = &answer["value"]["error"];
        assert!(problem.is_null(), "{script}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }

    /// Runs `script` until it returns something true, at most twenty seconds; what it returned.
    pub(crate) fn until(&self, what: &str, script: &str) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.run(script);
            if !matches!(answer, Value::Null | Value::Bool(false)) && answer != "" {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The window as a PNG file.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let path = format!("/session/{}/screenshot", self.session);
        let answer = self.driver.send("GET", &path, &Value::Null);
        let text = answer["value"].as_str().expect("a picture");
        STANDARD.decode(text).expect("base64")
    }

    /// A window of this width, light or dark.
    pub(crate) fn show_as(&self, width: u32, is_dark: bool) {
        let height = if width < 600 { 844 } else { 900 };
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        for (command, parameters) in
            [("Emulation.setDeviceMetricsOverride", metrics), ("Emulation.setEmulatedMedia", media)]
        {
            let body = json!({ "cmd": command, "params": parameters });
            self.post("goog/cdp/execute", &body);
        }
    }

    /// What the browser complained about since it was last asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let answer = self.post("se/log", &json!({ "type": "browser" }));
        let entries = answer["value"].as_array().cloned().unwrap_or_default();
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}
