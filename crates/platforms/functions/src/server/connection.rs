//! One connection: requests one after the other until the peer closes it.

use std::io::{self, Read, Write};

use crate::server::protocol::{Answer, FunctionServer};
use crate::server::request::{BadRequest, Head};

/// Memory for reading that an idle connection keeps.
const KEPT: usize = 64 << 10;

/// Read at once; the request of a warm call fits into one read.
const CHUNK: usize = 16 << 10;

impl FunctionServer {
    /// Answers every request that comes on `stream`, until it ends or asks to be closed.
    pub fn converse(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut received = Vec::with_capacity(CHUNK);
        loop {
            let head = match next_head(&mut stream, &mut received)? {
                Ok(Some(head)) => head,
                Ok(None) => return Ok(()),
                Err(bad) => {
                    let answer = Answer::failure(bad.status(), &bad.to_string());
                    return stream.write_all(&answer.to_bytes(false));
                }
            };
            let end = head.length + head.body;
            if head.expects_continue && received.len() < end {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            while received.len() < end {
                if read_more(&mut stream, &mut received)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let answer = self.answer(head.route, &received[head.length..end]);
            stream.write_all(&answer.to_bytes(head.keep_alive))?;
            if !head.keep_alive {
                return Ok(());
            }
            received.drain(..end);
            received.shrink_to(KEPT);
        }
    }
}

/// The next head, or nothing at the end of the stream between two requests.
fn next_head(
    stream: &mut impl Read,
    received: &mut Vec<u8>,
) -> io::Result<Result<Option<Head>, BadRequest>> {
    loop {
        // An empty buffer is not worth parsing.
        if !received.is_empty() {
            match Head::parse(received) {
                Ok(None) => {}
                parsed => return Ok(parsed),
            }
        }
        if read_more(stream, received)? == 0 {
            return if received.is_empty() {
                Ok(Ok(None))
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    }
}

fn read_more(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; CHUNK];
    loop {
        match stream.read(&mut chunk) {
            Ok(count) => {
                received.extend_from_slice(&chunk[..count]);
                return Ok(count);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out what was scripted in pieces and keeps what is written.
    struct Scripted {
        pieces: Vec<Vec<u8>>,
        written: Vec<u8>,
    }

    impl Read for &mut Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.pieces.is_empty() {
                return Ok(0);
            }
            let piece = self.pieces.remove(0);
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Write for &mut Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn post(path: &str, body: &str) -> String {
        format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn converse(pieces: Vec<Vec<u8>>) -> (io::Result<()>, String) {
        let mut stream = Scripted { pieces, written: Vec::new() };
        let result = FunctionServer::default().converse(&mut stream);
        (result, String::from_utf8(stream.written).unwrap())
    }

    #[test]
    fn requests_cut_anywhere_and_sent_together_are_answered_in_order() {
        let text = post("/init", r#"{"value":{"code":"echo"}}"#)
            + &post("/run", r#"{"value":{"n":1}}"#)
            + &post("/run", r#"{"value":{"n":2}}"#);
        for size in [1, 7, 50, 1000] {
            let pieces = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let (result, written) = converse(pieces);
            result.unwrap();
            let bodies: Vec<&str> = written.lines().filter(|line| line.contains('{')).collect();
            let joined = bodies.join("|");
            assert!(joined.starts_with("{\"ok\":true}HTTP/1.1 200 OK"), "{joined}");
            assert!(joined.ends_with("{\"n\":2}"), "{joined}");
        }
    }

    #[test]
    fn a_stream_that_ends_early_is_an_error_and_one_that_ends_between_requests_is_not() {
        assert!(converse(vec![]).0.is_ok());
        let text = post("/run", "{}");
        let half = text.as_bytes()[..text.len() - 1].to_vec();
        assert_eq!(converse(vec![half]).0.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn nonsense_is_answered_and_the_connection_ends() {
        let (result, written) = converse(vec![b"\x01\x02\x03 \r\n\r\n".to_vec(), b"more".to_vec()]);
        result.unwrap();
        assert!(written.starts_with("HTTP/1.1 400 Error\r\n"), "{written}");
        assert!(written.contains("Connection: close"));
    }

    #[test]
    fn a_client_that_waits_for_permission_gets_it() {
        let head = "POST /init HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 25\r\n\r\n";
        let body = r#"{"value":{"code":"echo"}}"#;
        let (result, written) = converse(vec![head.into(), body.into()]);
        result.unwrap();
        assert!(written.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "{written}");
    }
}
