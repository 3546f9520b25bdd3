//! A small HTTP/1.1 client for one connection to one instance.
//!
//! An instance answers one request at a time per connection and both ends are ours, so there is nothing to multiplex:
//! one write, then reads until the answer is whole, on the task that waits for it. A general client adds a task per
//! connection and two more wake-ups per call.

use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Headers of an answer; runtimes send three.
const MOST_HEADERS: usize = 32;
/// The longest head of an answer.
const LONGEST_HEAD: usize = 16 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The connection broke, or there is none.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    /// The instance sent something that is not HTTP.
    #[error("the answer is not HTTP: {0}")]
    Malformed(String),
    /// The answer is longer than allowed.
    #[error("the answer has {length} bytes, allowed are {allowed}")]
    TooLong {
        /// Its length, as far as it is known.
        length: usize,
        /// The longest allowed.
        allowed: usize,
    },
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    /// Whether the connection can be used again.
    pub(crate) keeps_alive: bool,
}

/// How the body of an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    Known(usize),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    status: u16,
    length: usize,
    body: BodyLength,
    keeps_alive: bool,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    incoming: BytesMut,
    outgoing: Vec<u8>,
}

impl Connection {
    /// Connects. The first request waits in the instance's backlog until its program is ready.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, incoming: BytesMut::with_capacity(4096), outgoing: Vec::new() })
    }

    /// Posts to a path of an instance; the body is the concatenation of `parts`.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        parts: &[&[u8]],
        longest: usize,
    ) -> Result<HttpAnswer, ClientError> {
        self.request(["POST ", path, ""], parts, longest).await
    }

    /// Sends one request and waits for its answer. The head is a method with a space, a path, and further header lines,
    /// each with its line end.
    pub(crate) async fn request(
        &mut self,
        [method, path, headers]: [&str; 3],
        parts: &[&[u8]],
        longest: usize,
    ) -> Result<HttpAnswer, ClientError> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.outgoing.clear();
        self.outgoing.extend_from_slice(method.as_bytes());
        self.outgoing.extend_from_slice(path.as_bytes());
        self.outgoing.extend_from_slice(b" HTTP/1.1\r\nHost: windfall\r\n");
        self.outgoing.extend_from_slice(headers.as_bytes());
        self.outgoing.extend_from_slice(b"Content-Type: application/json\r\nContent-Length: ");
        self.outgoing.extend_from_slice(length.to_string().as_bytes());
        self.outgoing.extend_from_slice(b"\r\n\r\n");
        for part in parts {
            self.outgoing.extend_from_slice(part);
        }
        self.stream.write_all(&self.outgoing).await?;
        // A body of a megabyte must not stay in memory as long as the connection does.
        if self.outgoing.capacity() > 64 << 10 {
            self.outgoing = Vec::new();
        }
        self.answer(longest).await
    }

    async fn answer(&mut self, longest: usize) -> Result<HttpAnswer, ClientError> {
        let head = loop {
            if let Some(head) = parse_head(&self.incoming)? {
                break head;
            }
            if self.incoming.len() > LONGEST_HEAD {
                return Err(ClientError::Malformed(format!(
                    "its head exceeds {LONGEST_HEAD} bytes"
                )));
            }
            self.read_some().await?;
        };
        self.incoming.advance(head.length);
        let body = match head.body {
            BodyLength::Known(length) if length > longest => {
                return Err(ClientError::TooLong { length, allowed: longest });
            }
            BodyLength::Known(length) => {
                while self.incoming.len() < length {
                    self.read_some().await?;
                }
                self.incoming.split_to(length).freeze()
            }
            BodyLength::Chunked => self.chunks(longest).await?,
            BodyLength::UntilClose => self.rest(longest).await?,
        };
        Ok(HttpAnswer { status: head.status, body, keeps_alive: head.keeps_alive })
    }

    async fn read_some(&mut self) -> Result<(), ClientError> {
        self.incoming.reserve(4096);
        if self.stream.read_buf(&mut self.incoming).await? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    async fn chunks(&mut self, longest: usize) -> Result<Bytes, ClientError> {
        let mut body = BytesMut::new();
        loop {
            let (start, size) = loop {
                match httparse::parse_chunk_size(&self.incoming) {
                    Ok(httparse::Status::Complete((start, size))) => break (start, size as usize),
                    Ok(httparse::Status::Partial) => self.read_some().await?,
                    Err(_) => return Err(ClientError::Malformed("a chunk has no size".to_owned())),
                }
            };
            let length = body.len().saturating_add(size);
            if length > longest {
                return Err(ClientError::TooLong { length, allowed: longest });
            }
            // The chunk and the line end behind it.
            while self.incoming.len() < start + size + 2 {
                self.read_some().await?;
            }
            self.incoming.advance(start);
            body.extend_from_slice(&self.incoming.split_to(size));
            self.incoming.advance(2);
            if size == 0 {
                return Ok(body.freeze());
            }
        }
    }

    async fn rest(&mut self, longest: usize) -> Result<Bytes, ClientError> {
        loop {
            let length = self.incoming.len();
            if length > longest {
                return Err(ClientError::TooLong { length, allowed: longest });
            }
            self.incoming.reserve(4096);
            if self.stream.read_buf(&mut self.incoming).await? == 0 {
                return Ok(self.incoming.split().freeze());
            }
        }
    }
}

/// The head of an answer, once it is whole.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, ClientError> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let malformed = |what: &str| ClientError::Malformed(what.to_owned());
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(&error.to_string())),
    };
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        length,
        body: BodyLength::UntilClose,
        keeps_alive: response.version == Some(1),
    };
    for header in response.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = value.parse().map_err(|_| malformed("its content length is no number"))?;
            head.body = BodyLength::Known(length);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding")
            && value.eq_ignore_ascii_case("chunked")
        {
            head.body = BodyLength::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.keeps_alive &= !value.eq_ignore_ascii_case("close");
        }
    }
    head.keeps_alive &= head.body != BodyLength::UntilClose;
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server that sends these pieces, one after another, is understood to say.
    async fn answer_to(pieces: &'static [&'static [u8]]) -> Result<HttpAnswer, ClientError> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            for piece in pieces {
                stream.write_all(piece).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        });
        Connection::open(address).await?.post("/run", &[b"{}"], 64).await
    }

    #[tokio::test]
    async fn answers_come_whole_in_whatever_pieces_they_are_sent() {
        let answer = answer_to(&[b"HTTP/1.1 200 OK\r\nConte", b"nt-Length: 5\r\n\r\nab", b"cde"]);
        let answer = answer.await.unwrap();
        assert_eq!(
            (answer.status, &answer.body[..], answer.keeps_alive),
            (200, &b"abcde"[..], true)
        );
        let chunked = answer_to(&[
            b"HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            b"c\r\n2\r\nde\r\n0\r\n\r\n",
        ]);
        let chunked = chunked.await.unwrap();
        assert_eq!((chunked.status, &chunked.body[..]), (502, &b"abcde"[..]));
        let rest = answer_to(&[b"HTTP/1.0 200 OK\r\n\r\nabc"]).await.unwrap();
        assert_eq!((&rest.body[..], rest.keeps_alive), (&b"abc"[..], false));
    }

    #[tokio::test]
    async fn what_is_too_long_broken_or_no_http_is_an_error() {
        let long = answer_to(&[b"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n"]).await;
        assert!(matches!(long, Err(ClientError::TooLong { length: 65, allowed: 64 })));
        let broken = answer_to(&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]).await;
        assert!(matches!(broken, Err(ClientError::Broken(_))));
        assert!(matches!(answer_to(&[b"hello\r\n\r\n"]).await, Err(ClientError::Malformed(_))));
        assert!(matches!(answer_to(&[]).await, Err(ClientError::Broken(_))));
    }
}
