//! The head of an HTTP/1.1 request, as far as the runtime protocol needs it.

use thiserror::Error;

/// No request of the protocol has more headers.
const MOST_HEADERS: usize = 64;

/// No head is longer, in bytes.
pub const LONGEST_HEAD: usize = 16 << 10;

/// Code of 48 MB in base64 and its JSON around it; the limit of OpenWhisk.
pub const LARGEST_BODY: usize = 72 << 20;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is asked for.
    pub route: Route,
    /// Bytes of the head itself, the empty line included.
    pub length: usize,
    /// Bytes of the body that follows.
    pub body: usize,
    /// Whether the connection stays open after the answer.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `POST /init`: prepare the function.
    Init,
    /// `POST /run`: one call.
    Run,
    /// Another path.
    Unknown,
    /// One of the two paths with another method.
    WrongMethod,
}

/// Why a request cannot be understood; the connection is closed after the answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// Fatal for the connection.
    #[error("not an HTTP/1.1 request: {0}")]
    Syntax(httparse::Error),
    /// Fatal for the connection.
    #[error("the head is longer than {LONGEST_HEAD} bytes")]
    LongHead,
    /// Fatal for the connection.
    #[error("Content-Length is `{0}`, allowed is one number up to {LARGEST_BODY}")]
    Length(String),
    /// Fatal for the connection.
    #[error("Transfer-Encoding is not understood here; send a Content-Length")]
    Chunked,
}

impl BadRequest {
    /// The status code of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Syntax(_) => 400,
            Self::LongHead => 431,
            Self::Length(_) => 413,
            Self::Chunked => 411,
        }
    }
}

impl Head {
    /// Reads the head at the beginning of `bytes`; nothing if it is not complete yet.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadRequest> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(&bytes[..bytes.len().min(LONGEST_HEAD)]);
        let length = match parsed.map_err(BadRequest::Syntax)? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if bytes.len() >= LONGEST_HEAD => {
                return Err(BadRequest::LongHead);
            }
            httparse::Status::Partial => return Ok(None),
        };
        let route = Route::of(request.method.unwrap_or(""), request.path.unwrap_or(""));
        // HTTP/1.0 closes unless asked to stay, HTTP/1.1 stays unless asked to close.
        let keep_alive = request.version == Some(1);
        let mut head = Self { route, length, body: 0, keep_alive, expects_continue: false };
        head.read_headers(request.headers)?;
        Ok(Some(head))
    }

    fn read_headers(&mut self, headers: &[httparse::Header]) -> Result<(), BadRequest> {
        let mut known_length = None;
        for header in headers {
            let has_name = |name: &str| header.name.eq_ignore_ascii_case(name);
            let has_value = |value: &str| header.value.eq_ignore_ascii_case(value.as_bytes());
            if has_name("content-length") {
                let length = body_length(header.value)?;
                // Two different lengths are how requests are smuggled past a proxy.
                if known_length.is_some_and(|known| known != length) {
                    return Err(BadRequest::Length("given twice".to_owned()));
                }
                known_length = Some(length);
            } else if has_name("transfer-encoding") {
                return Err(BadRequest::Chunked);
            } else if has_name("connection") {
                self.keep_alive =
                    (self.keep_alive || has_value("keep-alive")) && !has_value("close");
            } else if has_name("expect") {
                self.expects_continue = has_value("100-continue");
            }
        }
        self.body = known_length.unwrap_or(0);
        Ok(())
    }
}

fn body_length(value: &[u8]) -> Result<usize, BadRequest> {
    let text = std::str::from_utf8(value).unwrap_or("not text").trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse::<usize>().ok()).flatten();
    number
        .filter(|number| *number <= LARGEST_BODY)
        .ok_or_else(|| BadRequest::Length(text.chars().take(40).collect()))
}

impl Route {
    fn of(method: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or(path);
        match (path, method) {
            ("/init", "POST") => Self::Init,
            ("/run", "POST") => Self::Run,
            ("/init" | "/run", _) => Self::WrongMethod,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Head>, BadRequest> {
        Head::parse(text.as_bytes())
    }

    #[test]
    fn a_call_is_understood() {
        let text = "POST /run HTTP/1.1\r\nHost: x\r\ncontent-length: 12\r\n\r\n{\"value\":{}}";
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.route, head.body, head.keep_alive), (Route::Run, 12, true));
        assert_eq!(&text[head.length..], "{\"value\":{}}");
    }

    #[test]
    fn half_a_head_asks_for_more() {
        let text = "POST /init HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        assert_eq!(parse(text).unwrap().unwrap().route, Route::Init);
    }

    #[test]
    fn other_paths_and_methods_are_distinguished() {
        let route = |line: &str| parse(&format!("{line} HTTP/1.1\r\n\r\n")).unwrap().unwrap().route;
        assert_eq!(route("GET /run"), Route::WrongMethod);
        assert_eq!(route("POST /"), Route::Unknown);
        assert_eq!(route("POST /run?x=1"), Route::Run);
    }

    #[test]
    fn connections_close_when_asked() {
        let keeps = |version: &str, header: &str| {
            let text = format!("POST /run HTTP/{version}\r\n{header}\r\n\r\n");
            parse(&text).unwrap().unwrap().keep_alive
        };
        assert!(keeps("1.1", "Host: x") && keeps("1.0", "Connection: Keep-Alive"));
        assert!(!keeps("1.1", "Connection: close") && !keeps("1.0", "Host: x"));
    }

    #[test]
    fn lengths_that_cannot_be_trusted_are_refused() {
        for wrong in ["-1", "+1", "", "1 2", "0x10", "99999999999999999999", "75497473"] {
            let text = format!("POST /run HTTP/1.1\r\nContent-Length: {wrong}\r\n\r\n");
            assert_eq!(parse(&text).unwrap_err().status(), 413, "{wrong}");
        }
        let twice = "POST /run HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        assert!(parse(twice).is_err());
        let chunked = "POST /run HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(chunked), Err(BadRequest::Chunked));
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let text = format!("POST /run HTTP/1.1\r\nX: {}", "a".repeat(LONGEST_HEAD));
        assert_eq!(parse(&text), Err(BadRequest::LongHead));
        assert_eq!(parse("\u{1}\u{2} \r\n\r\n").unwrap_err().status(), 400);
    }
}
