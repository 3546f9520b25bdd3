//! Reading a journal, line by line, with errors that say where and what.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use windfall_core::{CallRecord, IntervalRecord};

use super::{EndCounts, FunctionNames, NamedFunction, RunManifest, SCHEMA_VERSION, TickEntry};

/// Longer lines are not ours; a tick over ten thousand functions takes about 6 MB.
pub(super) const LONGEST_LINE: u64 = 64 << 20;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// Functions are known by these names from now on.
    Functions(Vec<NamedFunction>),
    /// A tick was carried out.
    Tick(Box<TickEntry>),
    /// A call ended.
    Call(Box<CallRecord>),
    /// A stretch of time passed.
    Interval(IntervalRecord),
    /// The journal is complete.
    End(EndCounts),
}

/// Why a journal cannot be read. All are fatal for the journal, not for the program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Fatal: the file cannot be read.
    #[error("line {line}: {source}")]
    Io {
        /// Where.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// Fatal: nothing in it.
    #[error("the journal is empty")]
    Empty,
    /// Fatal: written by another version.
    #[error("the journal has schema {found}, this program reads schema {SCHEMA_VERSION}")]
    Schema {
        /// The version it has.
        found: u64,
    },
    /// Fatal: not a line of a journal.
    #[error("line {line}: {problem}")]
    Malformed {
        /// Where.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// Fatal: the last line breaks off.
    #[error("line {line}: the line breaks off; the run was interrupted while writing it")]
    Truncated {
        /// Where.
        line: u64,
    },
    /// Fatal: lines are whole, but the last one, which counts them, is missing.
    #[error(
        "line {line}: the journal is cut short: it ends without its count, after {} ticks, {} calls \
         and {} intervals",
        read.ticks, read.calls, read.intervals
    )]
    CutShort {
        /// Where the count should be.
        line: u64,
        /// What is there.
        read: EndCounts,
    },
    /// Fatal: a line longer than any we write.
    #[error("line {line}: longer than {LONGEST_LINE} bytes")]
    TooLong {
        /// Where.
        line: u64,
    },
    /// Fatal: the last line counts something else than was read.
    #[error("line {line}: the journal should hold {counted:?}, but holds {read:?}")]
    Counts {
        /// Where.
        line: u64,
        /// What the last line says.
        counted: EndCounts,
        /// What was there.
        read: EndCounts,
    },
}

impl JournalError {
    /// Whether the journal stops before its end, as it does when a run is interrupted.
    pub fn is_cut_short(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::CutShort { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Schema { found } if *found > u64::from(SCHEMA_VERSION) => {
                Some("it was written by a newer windfall; update this one")
            }
            Self::Schema { .. } => Some("run the command in its manifest again to get a new one"),
            Self::Truncated { .. } | Self::CutShort { .. } => {
                Some("everything before that line can be used; the run did not come to its end")
            }
            Self::Malformed { line: 1, .. } => {
                Some("is this a journal? its first line must be {\"manifest\":…}")
            }
            Self::Counts { .. } => Some("lines were removed or added after the run"),
            Self::Io { .. } | Self::Empty | Self::Malformed { .. } | Self::TooLong { .. } => None,
        }
    }
}

/// Reads a journal and never holds more than one line of it.
#[derive(Debug)]
pub struct JournalReader<R> {
    from: R,
    manifest: RunManifest,
    story: Story,
    is_over: bool,
}

/// What was read so far, to check the rest against.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The number of the last line.
    pub(super) line: u64,
    pub(super) read: EndCounts,
    pub(super) names: FunctionNames,
}

#[derive(Deserialize)]
struct FirstLine {
    manifest: serde_json::Value,
}

impl Story {
    /// Understands the first line.
    pub(super) fn begin(&mut self, bytes: &[u8]) -> Result<RunManifest, JournalError> {
        self.line = 1;
        let first: FirstLine = parse(bytes, 1)?;
        // The version first: a later schema may look quite different.
        let found = first.manifest.get("schema").and_then(serde_json::Value::as_u64);
        match found {
            Some(found) if found == u64::from(SCHEMA_VERSION) => {}
            Some(found) => return Err(JournalError::Schema { found }),
            None => {
                let problem = "the manifest has no schema version".to_owned();
                return Err(JournalError::Malformed { line: 1, problem });
            }
        }
        serde_json::from_value(first.manifest)
            .map_err(|error| JournalError::Malformed { line: 1, problem: error.to_string() })
    }

    /// Understands the next line.
    pub(super) fn entry(&mut self, bytes: &[u8]) -> Result<Entry, JournalError> {
        self.line += 1;
        let line = self.line;
        let entry: Entry = parse(bytes, line)?;
        match &entry {
            Entry::Functions(functions) => self.names.add(functions),
            Entry::Tick(_) => self.read.ticks += 1,
            Entry::Call(_) => self.read.calls += 1,
            Entry::Interval(_) => self.read.intervals += 1,
            Entry::End(counted) if *counted != self.read => {
                return Err(JournalError::Counts { line, counted: *counted, read: self.read });
            }
            Entry::End(_) => {}
        }
        Ok(entry)
    }
}

impl<R: BufRead> JournalReader<R> {
    /// Reads the manifest and stands before the first record.
    pub fn open(mut from: R) -> Result<Self, JournalError> {
        let Some(bytes) = next_line(&mut from, 1)? else { return Err(JournalError::Empty) };
        let mut story = Story::default();
        let manifest = story.begin(&bytes)?;
        Ok(Self { from, manifest, story, is_over: false })
    }

    /// What the run was.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// What functions are called, as far as it was read.
    pub fn names(&self) -> &FunctionNames {
        &self.story.names
    }

    fn entry(&mut self) -> Result<Entry, JournalError> {
        let line = self.story.line + 1;
        match next_line(&mut self.from, line)? {
            Some(bytes) => self.story.entry(&bytes),
            None => Err(JournalError::CutShort { line, read: self.story.read }),
        }
    }

    /// Skims what is left without understanding it: does the journal have its last line?
    pub fn has_its_end(mut self) -> bool {
        let mut is_end = false;
        while let Ok(Some(bytes)) = next_line(&mut self.from, self.story.line) {
            self.story.line += 1;
            is_end = bytes.starts_with(b"{\"end\":");
        }
        is_end
    }
}

impl<R: BufRead> Iterator for JournalReader<R> {
    type Item = Result<Entry, JournalError>;

    /// The next record; nothing after the end or after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let entry = self.entry();
        self.is_over = matches!(entry, Ok(Entry::End(_)) | Err(_));
        Some(entry)
    }
}

/// Reads a whole journal from bytes and says how much it holds. Must never panic; the entry point for
/// fuzzing.
pub fn read_bytes(bytes: &[u8]) -> Result<EndCounts, JournalError> {
    let mut reader = JournalReader::open(bytes)?;
    for entry in &mut reader {
        entry?;
    }
    Ok(reader.story.read)
}

fn next_line(from: &mut impl BufRead, line: u64) -> Result<Option<Vec<u8>>, JournalError> {
    let mut bytes = Vec::new();
    from.by_ref()
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut bytes)
        .map_err(|source| JournalError::Io { line, source })?;
    match bytes.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(bytes)),
        Some(_) if bytes.len() as u64 == LONGEST_LINE => Err(JournalError::TooLong { line }),
        Some(_) if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() => {
            Ok(Some(bytes))
        }
        Some(_) => Err(JournalError::Truncated { line }),
    }
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8], line: u64) -> Result<T, JournalError> {
    serde_json::from_slice(bytes)
        .map_err(|error| JournalError::Malformed { line, problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windfall_core::{PlainSize, TelemetrySink, TickRecord};

    use super::super::{JournalKinds, JournalWriter};
    use super::*;
    use crate::sample::{amendment, call};

    fn journal() -> Vec<u8> {
        let manifest =
            RunManifest { policy: "libra".to_owned(), seed: 7, ..RunManifest::default() };
        let mut writer = JournalWriter::new(Vec::new(), &manifest, JournalKinds::ALL);
        writer.tick(&TickRecord::default());
        let mut first = call(0, 1.0);
        first.wanted = PlainSize { cores: f64::NAN, mib: 512.0 };
        first.amendments.push(amendment("margin"));
        writer.call(&first);
        writer.call(&call(1, 2.0));
        writer.interval(&IntervalRecord::default());
        writer.finish().unwrap()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let bytes = journal();
        let mut reader = JournalReader::open(bytes.as_slice()).unwrap();
        assert_eq!((reader.manifest().seed, reader.manifest().schema), (7, SCHEMA_VERSION));
        let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(entries.len(), 5);
        assert_eq!(entries[2], Entry::Call(Box::new(call(1, 2.0))));
        let Entry::Call(odd) = &entries[1] else { panic!("{:?}", entries[1]) };
        assert!(odd.wanted.cores.is_nan() && odd.wanted.mib == 512.0);
    }

    #[test]
    fn a_journal_without_its_count_is_cut_short_after_all_it_holds() {
        let text = String::from_utf8(journal()).unwrap();
        let (cut, _) = text.split_once("{\"end\"").unwrap();
        let mut entries: Vec<_> = JournalReader::open(cut.as_bytes()).unwrap().collect();
        let error = entries.pop().unwrap().unwrap_err();
        assert!(error.is_cut_short() && error.hint().is_some());
        assert!(error.to_string().starts_with("line 6: the journal is cut short"), "{error}");
        assert_eq!(entries.iter().filter(|entry| entry.is_ok()).count(), 4);
        assert!(JournalReader::open(text.as_bytes()).unwrap().has_its_end());
        assert!(!JournalReader::open(cut.as_bytes()).unwrap().has_its_end());
        assert!(!JournalReader::open(&text.as_bytes()[..text.len() - 9]).unwrap().has_its_end());
    }

    #[test]
    fn the_same_run_gives_the_same_bytes() {
        assert_eq!(journal(), journal());
    }

    #[test]
    fn problems_are_named_with_their_line_and_a_hint() {
        let whole = journal();
        let error = read_bytes(&whole[..whole.len() - 9]).unwrap_err();
        assert!(error.to_string().starts_with("line 6: the line breaks off"), "{error}");
        assert!(error.hint().is_some());
        let newer =
            String::from_utf8(whole.clone()).unwrap().replace("\"schema\":1", "\"schema\":9");
        let error = read_bytes(newer.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "the journal has schema 9, this program reads schema 1");
        assert!(error.hint().unwrap().contains("newer"));
        assert!(matches!(read_bytes(b""), Err(JournalError::Empty)));
        assert!(read_bytes(b"hello\n").unwrap_err().hint().unwrap().contains("is this a journal"));
        let text = String::from_utf8(whole).unwrap();
        let shorter: Vec<&str> = text.lines().filter(|line| !line.contains("\"id\":1,")).collect();
        let error = read_bytes((shorter.join("\n") + "\n").as_bytes()).unwrap_err();
        assert!(matches!(error, JournalError::Counts { line: 5, .. }), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(cut in 0_usize..2000, place in 0_usize..2000, byte: u8) {
            let mut bytes = journal();
            bytes.truncate(cut);
            if let Some(old) = bytes.get_mut(place) {
                *old = byte;
            }
            let _ = read_bytes(&bytes);
        }
    }
}
