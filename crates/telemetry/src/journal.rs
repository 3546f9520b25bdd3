//! A run as a file of JSON lines: first a manifest, then what happened in order, last a count of it.
//!
//! ```text
//! {"manifest":{"schema":1,"windfall":"0.1.0","command":"windfall simulate …","seed":7,…}}
//! {"functions":[{"id":0,"name":"checkout","reservation":{…}},…]}
//! {"interval":{…}}
//! {"tick":{…}}
//! {"call":{…}}
//! {"end":{"ticks":1,"calls":1,"intervals":1}}
//! ```
//!
//! The same run gives the same bytes: nothing in it comes from a clock. Numbers that are not finite,
//! which a learned policy may return, are written as `null`.
//!
//! A journal can be followed while it is written ([`JournalFollower`]): the writer hands over whole lines only, after
//! every tick and interval and at least once per 64 KiB.

pub mod follower;
pub mod names;
pub mod reader;
pub mod tick;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use windfall_core::{
    CallRecord, FunctionId, FunctionProfile, IntervalRecord, TelemetrySink, TickRecord,
};

pub use follower::JournalFollower;
pub use names::{FunctionNames, NamedFunction};
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
    Functions(Vec<NamedFunction>),
    Tick(&'a TickRecord),
    Call(&'a CallRecord),
    Interval(&'a IntervalRecord),
    End(EndCounts),
}

/// Bytes after which whole lines are handed over even without a tick or an interval: some eighty calls.
const MOST_HELD_BACK: usize = 1 << 16;

/// Writes a journal. A write that fails stops the writing and is returned by [`finish`](Self::finish).
#[derive(Debug)]
pub struct JournalWriter<W: Write> {
    to: W,
    kinds: JournalKinds,
    counts: EndCounts,
    /// Whole lines that have not been handed over.
    lines: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> JournalWriter<W> {
    /// Begins a journal on `to`, which needs no buffer of its own. The manifest's schema is set to ours.
    pub fn new(to: W, manifest: &RunManifest, kinds: JournalKinds) -> Self {
        let counts = EndCounts::default();
        let mut writer = Self { to, kinds, counts, lines: Vec::new(), failed: None };
        let manifest = RunManifest { schema: SCHEMA_VERSION, ..manifest.clone() };
        writer.write(&Line::Manifest(&manifest));
        writer.hand_over();
        writer
    }

    /// Writes the counts, flushes, and gives back the writer, or the first error that was met.
    pub fn finish(mut self) -> io::Result<W> {
        let counts = self.counts;
        self.write(&Line::End(counts));
        self.hand_over();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.to),
        }
    }

    fn write(&mut self, line: &Line<'_>) {
        if self.failed.is_some() {
            return;
        }
        match serde_json::to_writer(&mut self.lines, line) {
            Ok(()) => self.lines.push(b'\n'),
            Err(error) => self.failed = Some(error.into()),
        }
        if self.lines.len() >= MOST_HELD_BACK {
            self.hand_over();
        }
    }

    /// Passes the lines on, so that whoever follows the journal sees them.
    fn hand_over(&mut self) {
        if self.failed.is_none() {
            let written = self.to.write_all(&self.lines).and_then(|()| self.to.flush());
            self.failed = written.err();
            self.lines.clear();
        }
    }
}

impl<W: Write + Send> TelemetrySink for JournalWriter<W> {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        self.write(&Line::Functions(NamedFunction::list(first, functions)));
        self.hand_over();
    }

    fn tick(&mut self, tick: &TickRecord) {
        if self.kinds.ticks {
            self.counts.ticks += 1;
            self.write(&Line::Tick(tick));
            self.hand_over();
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
            self.hand_over();
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
        writer.interval(&IntervalRecord::default());
        (0..500).for_each(|id| writer.call(&call(id, 1.0)));
        let error = writer.finish().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// Notes what it was given at a time.
    #[derive(Default)]
    struct Pieces(Vec<Vec<u8>>);

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whole_lines_are_handed_over_with_every_tick_and_every_64_kib() {
        let manifest = RunManifest::default();
        let mut writer = JournalWriter::new(Pieces::default(), &manifest, JournalKinds::ALL);
        (0..3).for_each(|id| writer.call(&call(id, 1.0)));
        writer.tick(&TickRecord::default());
        (0..300).for_each(|id| writer.call(&call(id, 1.0)));
        let pieces = writer.finish().unwrap().0;
        assert!(pieces.iter().all(|piece| piece.ends_with(b"}\n")));
        let lines = |piece: &[u8]| piece.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!((lines(&pieces[0]), lines(&pieces[1])), (1, 4));
        assert!(pieces.len() > 3, "{} pieces", pieces.len());
        assert!(pieces.iter().all(|piece| piece.len() < MOST_HELD_BACK + 2000));
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
