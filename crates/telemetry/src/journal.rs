//! A run as a file of JSON lines: first a manifest, then what happened in order, last a count of it.
//!
//! ```text
//! {"manifest":{"schema":1,"windfall":"0.1.0","command":"windfall simulate …","seed":7,…}}
//! {"interval":{…}}
//! {"tick":{…}}
//! {"call":{…}}
//! {"end":{"ticks":1,"calls":1,"intervals":1}}
//! ```
//!
//! The same run gives the same bytes: nothing in it comes from a clock. Numbers that are not finite,
//! which a learned policy may return, are written as `null`.

pub mod reader;
pub mod tick;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use windfall_core::{CallRecord, IntervalRecord, TelemetrySink, TickRecord};

pub use reader::{Entry, JournalError, JournalReader};
pub use tick::TickEntry;

/// The version of the format that this crate writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// What a run was, so that it can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Version of the format; [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Version of Windfall that ran.
    pub windfall: String,
    /// The command, as typed.
    pub command: String,
    /// The policy.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// A digest of the scenario.
    pub scenario: String,
    /// The settings as they were resolved.
    #[serde(default)]
    pub settings: serde_json::Value,
}

/// How much a complete journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounts {
    /// Ticks written.
    pub ticks: u64,
    /// Calls written.
    pub calls: u64,
    /// Intervals written.
    pub intervals: u64,
}

/// Which kinds of records are written; calls are by far the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalKinds {
    /// Ticks.
    pub ticks: bool,
    /// Calls.
    pub calls: bool,
    /// Intervals.
    pub intervals: bool,
}

impl JournalKinds {
    /// Everything.
    pub const ALL: Self = Self { ticks: true, calls: true, intervals: true };
}

impl Default for JournalKinds {
    fn default() -> Self {
        Self::ALL
    }
}

/// One line of a journal.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Manifest(&'a RunManifest),
    Tick(&'a TickRecord),
    Call(&'a CallRecord),
    Interval(&'a IntervalRecord),
    End(EndCounts),
}

/// Writes a journal. A write that fails stops the writing and is returned by [`finish`](Self::finish).
#[derive(Debug)]
pub struct JournalWriter<W: Write> {
    to: W,
    kinds: JournalKinds,
    counts: EndCounts,
    line: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> JournalWriter<W> {
    /// Begins a journal on `to`, best a buffered writer. The manifest's schema is set to ours.
    pub fn new(to: W, manifest: &RunManifest, kinds: JournalKinds) -> Self {
        let counts = EndCounts::default();
        let mut writer = Self { to, kinds, counts, line: Vec::new(), failed: None };
        let manifest = RunManifest { schema: SCHEMA_VERSION, ..manifest.clone() };
        writer.write(&Line::Manifest(&manifest));
        writer
    }

    /// Writes the counts, flushes, and gives back the writer, or the first error that was met.
    pub fn finish(mut self) -> io::Result<W> {
        let counts = self.counts;
        self.write(&Line::End(counts));
        match self.failed {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| self.to),
        }
    }

    fn write(&mut self, line: &Line<'_>) {
        if self.failed.is_some() {
            return;
        }
        self.line.clear();
        let written =
            serde_json::to_writer(&mut self.line, line).map_err(io::Error::from).and_then(|()| {
                self.line.push(b'\n');
                self.to.write_all(&self.line)
            });
        self.failed = written.err();
    }
}

impl<W: Write + Send> TelemetrySink for JournalWriter<W> {
    fn tick(&mut self, tick: &TickRecord) {
        if self.kinds.ticks {
            self.counts.ticks += 1;
            self.write(&Line::Tick(tick));
        }
    }

    fn call(&mut self, call: &CallRecord) {
        if self.kinds.calls {
            self.counts.calls += 1;
            self.write(&Line::Call(call));
        }
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        if self.kinds.intervals {
            self.counts.intervals += 1;
            self.write(&Line::Interval(interval));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::call;

    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_on_the_way_is_returned_at_the_end() {
        let mut writer =
            JournalWriter::new(FullDisk(2), &RunManifest::default(), JournalKinds::ALL);
        (0..5).for_each(|id| writer.call(&call(id, 1.0)));
        let error = writer.finish().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn only_the_kinds_that_are_asked_for_are_written() {
        let kinds = JournalKinds { calls: false, ..JournalKinds::ALL };
        let mut writer = JournalWriter::new(Vec::new(), &RunManifest::default(), kinds);
        writer.call(&call(0, 1.0));
        writer.interval(&IntervalRecord::default());
        writer.tick(&TickRecord::default());
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let starts: Vec<&str> = text.lines().map(|line| line.split('"').nth(1).unwrap()).collect();
        assert_eq!(starts, ["manifest", "interval", "tick", "end"]);
        assert!(text.ends_with("{\"end\":{\"ticks\":1,\"calls\":0,\"intervals\":1}}\n"));
    }
}
