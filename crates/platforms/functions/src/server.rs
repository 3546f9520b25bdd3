//! The server inside an instance of a built-in function: a thread per connection, and no runtime to start.
//!
//! A platform keeps one connection per call it runs at the same time, so threads are few, a function may block or
//! compute as it likes, and a cold start pays for nothing but the process. A bare loop over `httparse` answers a
//! warm call of an empty function in about 10 us of its own time (`benches/server.rs`).

mod connection;
mod listener;
mod protocol;
pub mod request;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::{env, process, thread};

pub use protocol::{Answer, FunctionServer};

use crate::program::FUNCTION_ARGUMENT;

/// Serves built-in functions if this process was started as their server, and then never returns.
///
/// Call it first thing in `main`: before arguments are parsed, threads started or files read, because an instance
/// waits for all of that at its cold start.
pub fn serve_if_function() {
    if env::args_os().nth(1).is_none_or(|argument| argument != FUNCTION_ARGUMENT) {
        return;
    }
    let why = match listener::find() {
        Ok(listener) => accept_all(&listener),
        Err(why) => why.to_string(),
    };
    // The platform keeps what an instance writes here; nothing else can be done about it.
    let _ = writeln!(std::io::stderr(), "function server: {why}");
    process::exit(2)
}

/// Returns only when no connection can be accepted any more, with the reason.
fn accept_all(listener: &TcpListener) -> String {
    let server = Arc::new(FunctionServer::default());
    loop {
        match listener.accept() {
            Ok((stream, _)) => serve_on_a_thread(&server, stream),
            // The peer gave up while it waited in the backlog.
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
            Err(why) => return format!("cannot accept connections: {why}"),
        }
    }
}

fn serve_on_a_thread(server: &Arc<FunctionServer>, stream: TcpStream) {
    // Answers are one write each: waiting for more to send would add 40 ms.
    let _ = stream.set_nodelay(true);
    let refusal = stream.try_clone();
    let server = Arc::clone(server);
    let started = thread::Builder::new().spawn(move || {
        // A peer that goes away in the middle of a call is not an error of the function.
        let _ = server.converse(stream);
    });
    // The limit on processes is reached: this connection is refused, those that exist go on.
    if let (Err(why), Ok(mut stream)) = (started, refusal) {
        let refused = Answer::failure(503, &format!("no thread for this connection: {why}"));
        let _ = stream.write_all(&refused.to_bytes(false));
    }
}
