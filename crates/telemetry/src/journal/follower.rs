//! Reading a journal while it is written.

use std::io::{BufRead, Read};

use super::reader::{Entry, JournalError, LONGEST_LINE, Story};
use super::{FunctionNames, RunManifest};

/// Reads as much of a journal as there is. A last line that is not whole means "not yet"; ask again later.
///
/// It never waits by itself: how long to wait between two questions is up to whoever has a clock.
#[derive(Debug)]
pub struct JournalFollower<R> {
    from: R,
    /// What there is of a line that is not whole yet.
    partial: Vec<u8>,
    manifest: Option<RunManifest>,
    story: Story,
    is_complete: bool,
}

impl<R: BufRead> JournalFollower<R> {
    /// A follower that has read nothing; `from` may still be empty.
    pub fn new(from: R) -> Self {
        Self {
            from,
            partial: Vec::new(),
            manifest: None,
            story: Story::default(),
            is_complete: false,
        }
    }

    /// What the run is, once the first line is there.
    pub fn manifest(&self) -> Option<&RunManifest> {
        self.manifest.as_ref()
    }

    /// What functions are called, as far as it was read.
    pub fn names(&self) -> &FunctionNames {
        &self.story.names
    }

    /// Whether the last line was read, after which nothing comes.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The next record, or nothing yet.
    pub fn poll(&mut self) -> Result<Option<Entry>, JournalError> {
        while !self.is_complete && self.reads_line()? {
            let bytes = std::mem::take(&mut self.partial);
            if self.manifest.is_none() {
                self.manifest = Some(self.story.begin(&bytes)?);
                continue;
            }
            let entry = self.story.entry(&bytes)?;
            self.is_complete = matches!(entry, Entry::End(_));
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// Reads on; true if a line is whole now.
    fn reads_line(&mut self) -> Result<bool, JournalError> {
        let line = self.story.line + 1;
        let most = LONGEST_LINE - self.partial.len() as u64;
        self.from
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut self.partial)
            .map_err(|source| JournalError::Io { line, source })?;
        if self.partial.len() as u64 == LONGEST_LINE && !self.partial.ends_with(b"\n") {
            return Err(JournalError::TooLong { line });
        }
        Ok(self.partial.ends_with(b"\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{self, BufReader};

    use proptest::prelude::*;
    use windfall_core::{FunctionId, IntervalRecord, TelemetrySink, TickRecord};

    use super::super::{JournalKinds, JournalReader, JournalWriter};
    use super::*;
    use crate::sample::call;

    /// A file that grows: so many of its bytes are there by now.
    struct Growing<'a> {
        bytes: &'a [u8],
        there: &'a Cell<usize>,
        at: usize,
    }

    impl Read for Growing<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let there = self.there.get().min(self.bytes.len());
            let mut rest = &self.bytes[self.at.min(there)..there];
            let read = rest.read(into)?;
            self.at += read;
            Ok(read)
        }
    }

    fn journal() -> Vec<u8> {
        let manifest = RunManifest { seed: 7, ..RunManifest::default() };
        let mut writer = JournalWriter::new(Vec::new(), &manifest, JournalKinds::ALL);
        writer.functions(FunctionId(0), &[crate::sample::function("checkout")]);
        writer.tick(&TickRecord::default());
        (0..4).for_each(|id| writer.call(&call(id, 1.0)));
        writer.interval(&IntervalRecord::default());
        writer.finish().unwrap()
    }

    #[test]
    fn a_torn_last_line_is_not_there_yet() {
        let bytes = journal();
        let manifest_ends = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let there = Cell::new(manifest_ends);
        let growing = Growing { bytes: &bytes, there: &there, at: 0 };
        let mut follower = JournalFollower::new(BufReader::new(growing));
        assert!(follower.poll().unwrap().is_none() && follower.manifest().is_none());
        there.set(manifest_ends + 20);
        assert!(follower.poll().unwrap().is_none());
        assert_eq!(follower.manifest().unwrap().seed, 7);
        there.set(bytes.len());
        assert!(matches!(follower.poll(), Ok(Some(Entry::Functions(_)))));
        assert_eq!(follower.names().get(FunctionId(0)), Some("checkout"));
        assert!(matches!(follower.poll(), Ok(Some(Entry::Tick(_)))));
        while follower.poll().unwrap().is_some() {}
        assert!(follower.is_complete());
    }

    proptest! {
        #[test]
        fn following_in_any_steps_gives_what_reading_gives(
            mut steps in prop::collection::vec(0_usize..4000, 0..12),
        ) {
            let bytes = journal();
            steps.push(bytes.len());
            steps.sort_unstable();
            let there = Cell::new(0);
            let growing = Growing { bytes: &bytes, there: &there, at: 0 };
            let mut follower = JournalFollower::new(BufReader::with_capacity(64, growing));
            let mut followed = Vec::new();
            for step in steps {
                there.set(step);
                while let Some(entry) = follower.poll().unwrap() {
                    followed.push(entry);
                }
            }
            let read: Vec<Entry> =
                JournalReader::open(bytes.as_slice()).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(followed, read);
        }
    }
}
