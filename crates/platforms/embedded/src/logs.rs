//! What calls print: read from the pipes of an instance up to the line that ends a call's output.
//!
//! A runtime writes that line before it answers, so the output of a usual call is there when its answer is: two reads
//! that never wait. A call that prints more than a pipe holds (64 KiB) would block in it, so pipes are also read while
//! a call runs, once it has run for [`GRACE`].
//!
//! Calls that share an instance print into each other's lines, so nobody can say whose a line is: once two calls have met in
//! an instance, whoever ends takes everything that is there, and lines that end a call's output are skipped. Stopping at
//! them would leave one behind for every call that found the pipes taken, until they are full and the function blocks.
//!
//! A pipe is registered with the runtime only while someone waits for it. Registered all the time, it would wake a
//! thread of the runtime twice with every call, for lines that are read anyway.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::unix::pipe;
use windfall_functions::END_OF_ACTIVATION;

/// A call that has run so long may be waiting for someone to read its output.
pub(crate) const GRACE: Duration = Duration::from_millis(2);
/// How often to find out whether calls have begun to share the instance.
const SHARING_IS_SEEN_WITHIN: Duration = Duration::from_millis(100);
/// How long to wait for the end of the output after the answer is there.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest line; what exceeds it continues in the next one.
const LONGEST_LINE: usize = 64 << 10;

/// One stream of an instance.
#[derive(Debug)]
struct Stream {
    name: &'static str,
    /// Not blocking.
    pipe: File,
    /// What was read and is not a whole line.
    partial: Vec<u8>,
    is_closed: bool,
}

/// Both streams of an instance, and the lines of the call that is running.
#[derive(Debug)]
pub(crate) struct Output {
    streams: [Stream; 2],
    ended: [bool; 2],
    lines: Vec<String>,
    bytes: usize,
    is_cut: bool,
    /// Whether calls have shared the instance: ends of output mean nothing then.
    pub(crate) is_shared: bool,
}

impl Stream {
    fn new(name: &'static str, descriptor: OwnedFd) -> std::io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(descriptor)?.into_nonblocking_fd()?;
        Ok(Self { name, pipe: pipe.into(), partial: Vec::new(), is_closed: false })
    }

    /// Reads what is there; whether there may be more.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.pipe.read(&mut buffer) {
            Ok(0) => {
                self.is_closed = true;
                false
            }
            Ok(length) => {
                self.partial.extend_from_slice(&buffer[..length]);
                // A pipe gives all it has: what does not fill the buffer was all.
                length == buffer.len()
            }
            Err(error) => {
                let goes_on = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
                self.is_closed |= !goes_on.contains(&error.kind());
                false
            }
        }
    }

    /// Returns when there is something to read; never if nothing can come any more.
    async fn wait(&self) {
        if !self.is_closed
            && let Ok(copy) = self.pipe.try_clone()
            && let Ok(pipe) = pipe::Receiver::from_owned_fd(copy.into())
            && pipe.readable().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

impl Output {
    pub(crate) fn new(stdout: OwnedFd, stderr: OwnedFd) -> std::io::Result<Self> {
        Ok(Self {
            streams: [Stream::new("stdout", stdout)?, Stream::new("stderr", stderr)?],
            ended: [false, false],
            lines: Vec::new(),
            bytes: 0,
            is_cut: false,
            is_shared: false,
        })
    }

    /// Reads while a call runs. Returns only when calls share the instance.
    pub(crate) async fn drain(&mut self, most: usize, is_shared: &AtomicBool) {
        tokio::time::sleep(GRACE).await;
        while !is_shared.load(Ordering::Relaxed) {
            self.take(most);
            // A stream whose end was read is left alone: what comes next belongs to the next call, and a pipe that
            // nobody reads stays readable, so waiting for it would never wait.
            let [stdout, stderr] = &self.streams;
            let [stdout_ended, stderr_ended] = self.ended;
            tokio::select! {
                () = stdout.wait(), if !stdout_ended => {}
                () = stderr.wait(), if !stderr_ended => {}
                () = tokio::time::sleep(SHARING_IS_SEEN_WITHIN) => {}
            }
        }
    }

    /// Takes what calls that share the instance have printed so far.
    pub(crate) fn gather(&mut self, most: usize) {
        self.is_shared = true;
        self.take(most);
    }

    /// Throws away what is there: output of calls that did not come through the gateway belongs to no record.
    pub(crate) fn discard(&mut self) {
        for stream in &mut self.streams {
            while stream.read() {
                stream.partial.clear();
            }
            stream.partial.clear();
        }
        self.ended = [false, false];
    }

    /// The lines of a call whose answer is there.
    pub(crate) async fn finish(&mut self, most: usize) -> Vec<String> {
        self.take(most);
        if !self.is_shared && !self.is_ended() {
            let _ = tokio::time::timeout(PATIENCE, async {
                while !self.is_ended() {
                    let [stdout, stderr] = &self.streams;
                    let [stdout_ended, stderr_ended] = self.ended;
                    tokio::select! {
                        () = stdout.wait(), if !stdout_ended => {}
                        () = stderr.wait(), if !stderr_ended => {}
                    }
                    self.take(most);
                }
            })
            .await;
        }
        self.ended = [false, false];
        (self.bytes, self.is_cut) = (0, false);
        std::mem::take(&mut self.lines)
    }

    fn is_ended(&self) -> bool {
        let over = |place: usize| self.ended[place] || self.streams[place].is_closed;
        over(0) && over(1)
    }

    /// Takes every whole line that is there, up to the end of the call's output.
    fn take(&mut self, most: usize) {
        if self.is_shared {
            self.ended = [false, false];
        }
        for place in 0..self.streams.len() {
            self.take_lines(place, most);
            let mut has_more = true;
            while !self.ended[place] && has_more {
                has_more = self.streams[place].read();
                self.take_lines(place, most);
            }
        }
    }

    fn take_lines(&mut self, place: usize, most: usize) {
        let stream = &mut self.streams[place];
        let mut from = 0;
        while !self.ended[place] {
            let rest = &stream.partial[from..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, next) = match end {
                Some(end) => (&rest[..end], from + end + 1),
                None if rest.len() >= LONGEST_LINE => (rest, stream.partial.len()),
                None => break,
            };
            if line == END_OF_ACTIVATION.as_bytes() {
                self.ended[place] = !self.is_shared;
            } else if !self.is_cut {
                self.bytes += line.len();
                self.is_cut = self.bytes > most;
                let text = match self.is_cut {
                    false => String::from_utf8_lossy(line),
                    true => {
                        format!("Logs were truncated because they exceeded {most} bytes.").into()
                    }
                };
                self.lines.push(format!("{} {}: {text}", timestamp(), stream.name));
            }
            from = next;
        }
        stream.partial.drain(..from);
    }
}

/// The time now as OpenWhisk writes it in logs: `2026-01-02T03:04:05.678901234Z`.
fn timestamp() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Days to dates after Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day is their last.
fn rfc3339(since_1970: Duration) -> String {
    let (seconds, nanos) = (since_1970.as_secs(), since_1970.subsec_nanos());
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| rfc3339(Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(at(1_767_323_045), "2026-01-02T03:04:05.000000000Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59.000000000Z");
    }

    static ALONE: AtomicBool = AtomicBool::new(false);

    fn output() -> (Output, std::io::PipeWriter, std::io::PipeWriter) {
        let (stdout, out) = std::io::pipe().unwrap();
        let (stderr, err) = std::io::pipe().unwrap();
        (Output::new(stdout.into(), stderr.into()).unwrap(), out, err)
    }

    fn texts(lines: &[String]) -> Vec<&str> {
        lines.iter().map(|line| line.split_once("Z ").unwrap().1).collect()
    }

    #[tokio::test]
    async fn lines_belong_to_the_call_that_printed_them() {
        let (mut output, mut out, mut err) = output();
        for call in ["one", "two"] {
            writeln!(out, "{call}\n{END_OF_ACTIVATION}").unwrap();
            writeln!(err, "{END_OF_ACTIVATION}").unwrap();
        }
        assert_eq!(texts(&output.finish(1000).await), ["stdout: one"]);
        assert_eq!(texts(&output.finish(1000).await), ["stdout: two"]);
        drop((out, err));
        assert!(output.finish(1000).await.is_empty(), "closed pipes are not waited for");
    }

    #[tokio::test]
    async fn a_call_that_prints_more_than_a_pipe_holds_is_read_while_it_runs() {
        let (mut output, mut out, err) = output();
        drop(err);
        let printer = std::thread::spawn(move || {
            for _ in 0..4000 {
                writeln!(out, "{}", "x".repeat(99)).unwrap();
            }
            writeln!(out, "{END_OF_ACTIVATION}").unwrap();
            out
        });
        while !printer.is_finished() {
            let _ = tokio::time::timeout(Duration::from_millis(20), output.drain(1 << 20, &ALONE))
                .await;
        }
        assert_eq!(output.finish(1 << 20).await.len(), 4000);
    }

    #[tokio::test]
    async fn output_that_ends_before_the_answer_is_not_waited_for_in_a_loop() {
        let (mut output, mut out, mut err) = output();
        writeln!(out, "one\n{END_OF_ACTIVATION}\nof the next call").unwrap();
        writeln!(err, "{END_OF_ACTIVATION}").unwrap();
        // With a loop that never waits this would not come to an end.
        let drained = tokio::time::timeout(Duration::from_millis(20), output.drain(1000, &ALONE));
        assert!(drained.await.is_err());
        assert_eq!(texts(&output.finish(1000).await), ["stdout: one"]);
    }

    #[tokio::test]
    async fn output_of_calls_that_share_an_instance_is_taken_by_whoever_ends() {
        let (mut output, mut out, mut err) = output();
        for call in ["one", "two", "three"] {
            writeln!(out, "{call}\n{END_OF_ACTIVATION}").unwrap();
            writeln!(err, "{END_OF_ACTIVATION}").unwrap();
        }
        let shared = AtomicBool::new(true);
        output.drain(1000, &shared).await;
        output.gather(1000);
        let lines = output.finish(1000).await;
        assert_eq!(texts(&lines), ["stdout: one", "stdout: two", "stdout: three"]);
        assert!(output.finish(1000).await.is_empty(), "and nobody waits for an end");
    }

    #[tokio::test]
    async fn logs_are_cut_at_their_limit_and_say_so() {
        let (mut output, mut out, err) = output();
        drop(err);
        writeln!(out, "{}\n{}\nmore\n{END_OF_ACTIVATION}", "a".repeat(60), "b".repeat(60)).unwrap();
        let lines = output.finish(100).await;
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with("exceeded 100 bytes."), "{lines:?}");
    }
}
