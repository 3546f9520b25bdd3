//! What is there and what is missing, line by line, and what to type next.

use std::net::SocketAddr;
use std::time::Duration;

/// Prints one line per check as it is made.
pub(super) struct Preflight;

/// The platform's own API: where it is, its key, and a function to call.
pub(super) struct FunctionsApi {
    pub(super) address: SocketAddr,
    pub(super) key: String,
    pub(super) example: String,
}

impl Preflight {
    /// Something is as it should be.
    pub(super) fn ok(&mut self, what: &str, detail: &str) {
        eprintln!("[ok] {what}: {detail}");
    }

    /// Something is missing; `fix` says what to do, `detail` what happens without it.
    pub(super) fn missing(&mut self, what: &str, fix: &str, detail: &str) {
        eprintln!("[missing: {fix}] {what}: {detail}");
    }

    /// Lines to copy. The part of the address behind `#` never leaves the browser.
    pub(super) fn invite(
        &self,
        address: SocketAddr,
        token: &str,
        functions: Option<&FunctionsApi>,
        took: Duration,
    ) {
        let program = program();
        eprintln!("\nready after {:.1} s\n", took.as_secs_f64());
        eprintln!("  dashboard    http://{address}/#token={token}");
        eprintln!("  terminal     {program} top --url http://{address}");
        eprintln!(
            "  kill switch  curl -X PUT http://{address}/api/v1/kill -H 'Authorization: Bearer {token}' -d '{{\"on\": true}}'"
        );
        if let Some(FunctionsApi { address, key, example }) = functions {
            eprintln!(
                "  call one     {program} fn invoke {example} --apihost http://{address} --auth {key}"
            );
            eprintln!("  wsk          wsk property set --apihost http://{address} --auth {key}");
        }
        eprintln!("\nCtrl-C stops it and gives every function its own allocation back.\n");
    }
}

/// What to type for this program: `windfall` where it is found by that name, else the path it was started by.
fn program() -> String {
    let typed = std::env::args().next().unwrap_or_default();
    if typed.is_empty() { "windfall".to_owned() } else { typed }
}
