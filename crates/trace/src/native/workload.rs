//! A native trace as a workload.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use windfall_core::{Arrival, Duration, FunctionId, FunctionProfile, Seed, Timestamp, Workload};

use super::Reader;
use crate::error::TraceError;
use crate::options::ReadOptions;

/// Files up to this size are kept in memory, where they cannot change.
const HELD_BYTES: u64 = 64 << 20;
const MINUTE_NS: u64 = 60_000_000_000;

trait Bytes: Read + Seek + Send {}
impl<R: Read + Seek + Send> Bytes for R {}

/// A native trace as a workload. The whole file is checked when it is opened.
///
/// A file of up to 64 MiB is then kept in memory. A larger one stays open and is reread from the same handle, so
/// that moving or replacing it has no effect. If it is modified while open, a checksum detects it, arrivals end
/// there, and [`NativeWorkload::failure`] returns the reason.
pub struct NativeWorkload {
    reader: Reader<Box<dyn Bytes>>,
    /// Functions that are kept.
    functions: Vec<FunctionProfile>,
    /// New index of every function in the file.
    places: Vec<Option<FunctionId>>,
    /// Start and end of the window.
    window: (Timestamp, Timestamp),
    failure: Option<TraceError>,
}

impl NativeWorkload {
    /// Opens a file, checks all of it and rewinds to its start.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// Like [`Self::open`], with a window and a selection of functions.
    pub(crate) fn open_with(path: &Path, options: &ReadOptions) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let unreadable = |source| TraceError::Unreadable { file: name.as_str().into(), source };
        let mut file = File::open(path).map_err(unreadable)?;
        let input: Box<dyn Bytes> = if file.metadata().map_err(unreadable)?.len() <= HELD_BYTES {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(unreadable)?;
            Box::new(Cursor::new(bytes))
        } else {
            Box::new(BufReader::with_capacity(1 << 17, file))
        };
        Self::from_reader(Reader::new(input, &name)?, options, &name)
    }

    fn from_reader(
        mut reader: Reader<Box<dyn Bytes>>,
        options: &ReadOptions,
        name: &str,
    ) -> Result<Self, TraceError> {
        let mut calls = vec![0.0; reader.functions().len()];
        while let Some(arrival) = reader.read_arrival()? {
            calls[arrival.function.index()] += 1.0;
        }
        reader.rewind()?;
        let (mut functions, mut places) = (Vec::new(), Vec::new());
        for (profile, keep) in reader.functions().iter().zip(options.keep(&calls)) {
            places.push(keep.then_some(FunctionId(functions.len() as u32)));
            if keep {
                functions.push(profile.clone());
            }
        }
        if functions.is_empty() {
            return Err(TraceError::NothingLeft { file: name.into() });
        }
        let window = match options.window_minutes {
            None => (Timestamp::ZERO, reader.horizon()),
            Some(_) => {
                let minutes = reader.horizon().as_nanos().div_ceil(MINUTE_NS);
                let (first, length) = options.window(u32::try_from(minutes).unwrap_or(u32::MAX))?;
                let start = Timestamp::from_nanos(u64::from(first) * MINUTE_NS);
                let length = Duration::from_nanos(u64::from(length) * MINUTE_NS);
                (start, reader.horizon().min(start + length))
            }
        };
        Ok(Self { reader, functions, places, window, failure: None })
    }

    /// Why arrivals ended early, if the file was changed while it was read.
    pub fn failure(&self) -> Option<&TraceError> {
        self.failure.as_ref()
    }

    fn read(&mut self) -> Result<Option<Arrival>, TraceError> {
        let (start, end) = self.window;
        while let Some(arrival) = self.reader.read_arrival()? {
            if arrival.at < start {
                continue;
            }
            // A window excludes its end, unless that is the horizon of the trace.
            if arrival.at > end || (arrival.at == end && end < self.reader.horizon()) {
                return Ok(None);
            }
            if let Some(function) = self.places[arrival.function.index()] {
                let at = Timestamp::ZERO + arrival.at.since(start);
                return Ok(Some(Arrival { at, function, ..arrival }));
            }
        }
        Ok(None)
    }
}

impl Workload for NativeWorkload {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn horizon(&self) -> Timestamp {
        Timestamp::ZERO + self.window.1.since(self.window.0)
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        if self.failure.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|error| {
            self.failure = Some(error);
            None
        })
    }

    /// Restarts; the file contains no random parts, so the seed has no effect.
    fn restart(&mut self, _seed: Seed) {
        self.failure = self.reader.rewind().err();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::{AzureLikeSettings, Source, native};

    #[test]
    fn a_file_that_changes_while_it_is_read_ends_the_arrivals_and_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.wf");
        let settings = AzureLikeSettings { functions: 5, ..AzureLikeSettings::default() };
        let mut generated = Source::AzureLike(settings).open(Seed::new(1)).unwrap();
        let total = native::write_file(&path, &mut *generated).unwrap();
        // Directly from the file, as for a file that is too large for memory.
        let file = File::open(&path).unwrap();
        let reader = Reader::new(Box::new(file) as Box<dyn Bytes>, "t.wf").unwrap();
        let options = ReadOptions::default();
        let mut workload = NativeWorkload::from_reader(reader, &options, "t.wf").unwrap();
        let count = |workload: &mut NativeWorkload| {
            std::iter::from_fn(|| workload.next_arrival()).count() as u64
        };
        assert_eq!(count(&mut workload), total);
        assert!(workload.failure().is_none());

        let bytes = fs::read(&path).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all(&bytes[..bytes.len() / 2]).unwrap();
        file.set_len(bytes.len() as u64 / 2).unwrap();
        workload.restart(Seed::new(1));
        assert!(count(&mut workload) < total);
        let failure = workload.failure().unwrap().to_string();
        assert!(failure.starts_with("t.wf: truncated"), "{failure}");
    }
}
