//! `/init` and `/run`: what an instance answers, without the connection it comes on.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{Builtin, builtins};
use crate::end_of_activation::END_OF_ACTIVATION;
use crate::server::request::Route;

/// An instance: at most one function for its whole life, any number of calls.
#[derive(Debug, Default)]
pub struct FunctionServer {
    function: OnceLock<&'static Builtin>,
}

/// Status and body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// A JSON object.
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct InitRequest {
    #[serde(default)]
    value: InitValue,
}

#[derive(Default, Deserialize)]
struct InitValue {
    #[serde(default)]
    code: Option<String>,
}

#[derive(Deserialize)]
struct RunRequest {
    #[serde(default)]
    value: Value,
}

impl FunctionServer {
    /// Answers one request. Calls may run on several threads at the same time.
    pub fn answer(&self, route: Route, body: &[u8]) -> Answer {
        match route {
            Route::Init => self.init(body),
            Route::Run => {
                let answer = self.run(body);
                end_output();
                answer
            }
            Route::Unknown => Answer::failure(404, "this server has /init and /run"),
            Route::WrongMethod => Answer::failure(405, "only POST is understood here"),
        }
    }

    /// The code of a built-in function is its name, alone or as its kind.
    fn init(&self, body: &[u8]) -> Answer {
        if self.function.get().is_some() {
            return already_initialised();
        }
        let request: InitRequest = match object(body) {
            Ok(request) => request,
            Err(why) => return Answer::failure(400, &format!("the body of /init: {why}")),
        };
        let code = request.value.code.unwrap_or_default();
        let name = code.trim().trim_start_matches("builtin:");
        let Some(builtin) = Builtin::named(name) else {
            let names: Vec<&str> = builtins().iter().map(|builtin| builtin.name).collect();
            let names = names.join(", ");
            let message = format!("there is no built-in function `{name}`, allowed is {names}");
            return Answer::failure(502, &message);
        };
        match self.function.set(builtin) {
            Ok(()) => Answer::success(&json!({ "ok": true })),
            Err(_) => already_initialised(),
        }
    }

    fn run(&self, body: &[u8]) -> Answer {
        let Some(builtin) = self.function.get() else {
            return Answer::failure(403, "/run came before a successful /init");
        };
        let request: RunRequest = match object(body) {
            Ok(request) => request,
            Err(why) => return Answer::failure(400, &format!("the body of /run: {why}")),
        };
        let parameters = match request.value {
            Value::Null => json!({}),
            value => value,
        };
        // A function that panics fails its own call; the instance can serve the next one.
        match catch_unwind(AssertUnwindSafe(|| builtin.run(&parameters))) {
            // OpenWhisk's convention: an answer with this member is a failure that the function reports itself.
            Ok(Ok(result)) if result.get("error").is_some() => {
                Answer { status: 502, ..Answer::success(&result) }
            }
            Ok(Ok(result)) => Answer::success(&result),
            Ok(Err(failure)) => Answer::failure(502, &failure.to_string()),
            Err(_) => Answer::failure(502, "the function panicked; its log says why"),
        }
    }
}

/// Reads a JSON object; an empty body is an empty one. Lists are refused, which would pass as the members in order.
fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    let body = body.trim_ascii();
    let body = if body.is_empty() { b"{}" } else { body };
    if body[0] != b'{' {
        return Err("not a JSON object".to_owned());
    }
    serde_json::from_slice(body).map_err(|why| why.to_string())
}

fn already_initialised() -> Answer {
    Answer::failure(403, "this instance has a function already; /init comes once")
}

/// Written before the answer, so that a platform that has the answer can wait for the line.
fn end_output() {
    let line = format!("{END_OF_ACTIVATION}\n");
    // A platform that does not read logs may close the pipes; calls go on without them.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

impl Answer {
    fn success(result: &Value) -> Self {
        Self { status: 200, body: result.to_string().into_bytes() }
    }

    /// `{"error": message}` under this status.
    pub fn failure(status: u16, message: &str) -> Self {
        Self { status, body: json!({ "error": message }).to_string().into_bytes() }
    }

    /// The whole answer as it goes over the connection, to be sent in one write.
    pub fn to_bytes(&self, keep_alive: bool) -> Vec<u8> {
        let Self { status, body } = self;
        let reason = match status {
            200 => "OK",
            403 => "Forbidden",
            404 => "Not Found",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let connection = if keep_alive { "" } else { "Connection: close\r\n" };
        let length = body.len();
        let mut bytes = Vec::with_capacity(length + 128);
        bytes.extend_from_slice(
            format!(
                "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{connection}\
                 Content-Length: {length}\r\n\r\n"
            )
            .as_bytes(),
        );
        bytes.extend_from_slice(body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: &Answer) -> Value {
        serde_json::from_slice(&answer.body).unwrap()
    }

    #[test]
    fn an_instance_takes_one_function() {
        let server = FunctionServer::default();
        assert_eq!(server.answer(Route::Run, b"{}").status, 403);
        let answer = server.answer(Route::Init, br#"{"value":{"code":"nonsense"}}"#);
        assert_eq!(answer.status, 502);
        assert!(text(&answer)["error"].as_str().unwrap().contains("allowed is"));
        let init = br#"{"value":{"name":"f","main":"main","code":"builtin:hello"}}"#;
        assert_eq!(server.answer(Route::Init, init).status, 200);
        assert_eq!(server.answer(Route::Init, init).status, 403);
        let answer = server.answer(Route::Run, br#"{"value":{"name":"Ada"},"deadline":"1"}"#);
        assert_eq!((answer.status, text(&answer)), (200, json!({"greeting": "Hello, Ada!"})));
        assert_eq!(server.answer(Route::Run, b"{}").status, 200);
        assert_eq!(server.answer(Route::Run, b"{\"value\":3}").status, 502);
        assert_eq!(server.answer(Route::Run, b"nonsense").status, 400);
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let bytes = Answer::failure(502, "x").to_bytes(false);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: 13\r\n\r\n{\"error\":\"x\"}"
        );
    }
}
