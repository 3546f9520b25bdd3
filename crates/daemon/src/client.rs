//! A client of the API for the terminal: one request per connection, on the loopback interface most of the time.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Fatal: the address is not one.
    #[error("`{0}` is not an address; allowed is http://HOST:PORT, as `windfall up` prints it")]
    Address(String),
    /// Retryable: nobody listens there.
    #[error("{address}: {source}; is `windfall up` running?")]
    Connect {
        /// Where.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Fatal: the answer is not one of the manager's.
    #[error("{0} did not answer like a manager")]
    Answer(String),
    /// Fatal: the manager refused.
    #[error("refused: {0}")]
    Refused(String),
}

/// Asks for `path` below `url`.
pub fn get(url: &str, path: &str) -> Result<Value, ClientError> {
    let wrong = || ClientError::Address(url.to_owned());
    let host = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    let address = host.to_socket_addrs().map_err(|_| wrong())?.next().ok_or_else(wrong)?;
    let failed = |source| ClientError::Connect { address: host.to_owned(), source };
    let patience = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    let request =
        format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (_, body) =
        answer.split_once("\r\n\r\n").ok_or_else(|| ClientError::Answer(url.to_owned()))?;
    let value: Value =
        serde_json::from_str(body).map_err(|_| ClientError::Answer(url.to_owned()))?;
    match value.get("error").and_then(Value::as_str) {
        Some(error) => Err(ClientError::Refused(error.to_owned())),
        None => Ok(value),
    }
}
