//! Where connections come from.

use std::env;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

use listenfd::ListenFd;

/// Names the port to listen on where no listener is inherited; 8080 without it, as in OpenWhisk's containers.
const PORT_VARIABLE: &str = "PORT";

/// The inherited listener, or one of our own on this machine.
pub(super) fn find() -> io::Result<TcpListener> {
    // Understands `LISTEN_FDS=1`, which every `Program` has in its environment: descriptor 3 is a listener.
    if let Some(inherited) = ListenFd::from_env().take_tcp_listener(0)? {
        inherited.set_nonblocking(false)?;
        return Ok(inherited);
    }
    let port = match env::var(PORT_VARIABLE) {
        Err(_) => 8080,
        Ok(text) => text.parse().map_err(|_| {
            let allowed = "allowed is a number from 0 to 65535";
            io::Error::other(format!("{PORT_VARIABLE} is `{text}`, {allowed}"))
        })?,
    };
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|why| io::Error::other(format!("port {port} on this machine: {why}")))
}
