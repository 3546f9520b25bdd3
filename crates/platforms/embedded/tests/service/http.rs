//! Requests of a test, one connection each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::server::Server;

/// Where requests go and with which key.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    address: SocketAddr,
    key: String,
}

impl Api {
    pub(crate) fn of(server: &Server) -> Self {
        Self { address: server.address, key: server.key.clone() }
    }

    /// Status and body; nothing if the connection broke.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let body = body.to_string();
        let (key, length) = (&self.key, body.len());
        let request = format!(
            "{method} /api/v1/namespaces/_/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let text = String::from_utf8_lossy(&answer);
        let status = text.split(' ').nth(1)?.parse().ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        Some((status, serde_json::from_str(body).unwrap_or_default()))
    }
}
