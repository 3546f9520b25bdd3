//! What is there and what is missing, line by line, and what to type next.

use std::net::SocketAddr;
use std::time::Duration;

/// Prints one line per check as it is made.
pub(super) struct Preflight;

impl Preflight {
    /// Something is as it should be.
    pub(super) fn ok(&mut self, what: &str, detail: &str) {
        eprintln!("[ok]      {what:<18} {detail}");
    }

    /// Something is missing; `fix` says what is done instead or what to do.
    pub(super) fn missing(&mut self, what: &str, fix: &str) {
        eprintln!("[missing] {what:<18} {fix}");
    }

    /// Lines to copy. The part of the address behind `#` never leaves the browser.
    pub(super) fn invite(&self, address: SocketAddr, token: &str, took: Duration) {
        eprintln!(
            "\nready after {:.1} s\n\n  \
             dashboard   http://{address}/#token={token}\n  \
             terminal    windfall top --url http://{address}\n  \
             kill switch curl -X PUT http://{address}/api/v1/kill -H 'Authorization: Bearer {token}' -d '{{\"on\": true}}'\n\n\
             Ctrl-C stops it and gives every function its own allocation back.\n",
            took.as_secs_f64()
        );
    }
}
