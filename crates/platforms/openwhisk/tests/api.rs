//! The API from outside: over a socket, against a real store, with real clients.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it cannot go on, and says why"
)]

mod api {
    mod actions;
    mod calls;
    mod clients;
    mod events;
    pub(crate) mod in_process;
    pub(crate) mod server;
    mod survival;
    mod web;
}
