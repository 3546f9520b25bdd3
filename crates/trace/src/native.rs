//! Windfall's own trace format: functions and arrivals with their demands, compact and checksummed.
//!
//! ```text
//!   magic "WFTRACE\n"  version u32  header length u32  header (JSON)  CRC-32 of the header
//!   block: length u32 (> 0)  arrivals u32  bytes  CRC-32 of count and bytes     ... more blocks
//!   end:   length u32 = 0    total arrivals u64  CRC-32 of the total
//! ```
//!
//! Numbers are little-endian. Inside a block an arrival is a list of varints: time since the previous arrival,
//! function, and the demand field by field. A file that is not in this format, newer, truncated, corrupt or
//! unordered is rejected with the reason, as is an invalid demand.

mod codec;
mod workload;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use windfall_core::{Arrival, FunctionProfile, Timestamp, Workload};

use crate::error::{TraceError, shortened};
use codec::{decode, encode, fault_of};
pub use workload::NativeWorkload;

/// The first bytes of a native trace.
pub const MAGIC: [u8; 8] = *b"WFTRACE\n";
const VERSION: u32 = 1;
/// Arrivals per block; a block has about 100 kB.
const BLOCK_ARRIVALS: u32 = 4096;
/// Maximum size of the header and of a block.
const MAX_BYTES: u32 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    horizon: Timestamp,
    functions: Vec<FunctionProfile>,
}

impl Header {
    /// Functions must have unique names, a non-zero reservation and a valid cold start.
    fn check(&self, file: &str) -> Result<(), TraceError> {
        let mut names = BTreeSet::new();
        if self.functions.is_empty() {
            return Err(native(file, "the header names no function".into()));
        }
        for profile in &self.functions {
            let name = shortened(&profile.name);
            if !names.insert(profile.name.as_str()) {
                return Err(native(file, format!("function `{name}` appears twice")));
            }
            let size = profile.reservation;
            if size.cpu.get() == 0 || size.memory.get() == 0 {
                return Err(native(file, format!("function `{name}` reserves nothing")));
            }
            let sigma = profile.cold_start.sigma;
            if !(0.0..=10.0).contains(&sigma) {
                let reason =
                    format!("function `{name}`: cold_start.sigma is {sigma}, allowed is 0 to 10");
                return Err(native(file, reason));
            }
        }
        Ok(())
    }
}

/// Writes a native trace. Without [`Writer::finish`] the trace has no end marker and is rejected by the reader.
pub struct Writer<W: Write> {
    out: W,
    functions: u32,
    horizon: Timestamp,
    block: Vec<u8>,
    in_block: u32,
    last: Timestamp,
    total: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a trace of these functions.
    pub fn new(
        mut out: W,
        functions: &[FunctionProfile],
        horizon: Timestamp,
    ) -> Result<Self, TraceError> {
        let header = Header { horizon, functions: functions.to_vec() };
        header.check("the trace to be written")?;
        let header = serde_json::to_vec(&header).map_err(|error| unwritable(error.into()))?;
        let length = u32::try_from(header.len()).ok().filter(|&length| length <= MAX_BYTES);
        let length = length.ok_or_else(|| TraceError::TooLarge {
            file: "the trace to be written".into(),
            limit: u64::from(MAX_BYTES),
            what: "bytes of function profiles",
        })?;
        let mut start = Vec::with_capacity(header.len() + 20);
        start.extend_from_slice(&MAGIC);
        start.extend_from_slice(&VERSION.to_le_bytes());
        start.extend_from_slice(&length.to_le_bytes());
        start.extend_from_slice(&header);
        start.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        out.write_all(&start).map_err(unwritable)?;
        Ok(Self {
            out,
            functions: functions.len() as u32,
            horizon,
            block: Vec::new(),
            in_block: 0,
            last: Timestamp::ZERO,
            total: 0,
        })
    }

    /// Adds an arrival, which must not be earlier than the previous one.
    pub fn push(&mut self, arrival: &Arrival) -> Result<(), TraceError> {
        if arrival.at < self.last || arrival.at > self.horizon {
            return Err(TraceError::OutOfOrder {
                file: "the trace to be written".into(),
                line: self.total + 1,
                value: arrival.at.to_string().into(),
                previous: self.last.to_string().into(),
                rule: "arrivals must be in order of time and not after the horizon",
            });
        }
        if arrival.function.0 >= self.functions {
            let reason = format!("arrival {} is of no known function", self.total + 1);
            return Err(native("the trace to be written", reason));
        }
        if let Some(fault) = fault_of(&arrival.demand) {
            let reason = format!("arrival {} {fault}", self.total + 1);
            return Err(native("the trace to be written", reason));
        }
        encode(&mut self.block, arrival, self.last);
        self.last = arrival.at;
        self.total += 1;
        self.in_block += 1;
        if self.in_block == BLOCK_ARRIVALS { self.flush_block() } else { Ok(()) }
    }

    /// Writes the end marker and returns the underlying writer.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.flush_block()?;
        let total = self.total.to_le_bytes();
        self.out.write_all(&0u32.to_le_bytes()).map_err(unwritable)?;
        self.out.write_all(&total).map_err(unwritable)?;
        self.out.write_all(&crc32fast::hash(&total).to_le_bytes()).map_err(unwritable)?;
        self.out.flush().map_err(unwritable)?;
        Ok(self.out)
    }

    fn flush_block(&mut self) -> Result<(), TraceError> {
        if self.in_block == 0 {
            return Ok(());
        }
        let count = self.in_block.to_le_bytes();
        let length = self.block.len() as u32;
        self.out.write_all(&length.to_le_bytes()).map_err(unwritable)?;
        self.out.write_all(&count).map_err(unwritable)?;
        self.out.write_all(&self.block).map_err(unwritable)?;
        self.out.write_all(&checksum(&count, &self.block).to_le_bytes()).map_err(unwritable)?;
        self.block.clear();
        self.in_block = 0;
        Ok(())
    }
}

/// Writes a whole workload to a file. Returns its number of calls.
pub fn write_file(path: &Path, workload: &mut dyn Workload) -> Result<u64, TraceError> {
    let out = BufWriter::new(File::create(path).map_err(unwritable)?);
    let mut writer = Writer::new(out, workload.functions(), workload.horizon())?;
    while let Some(arrival) = workload.next_arrival() {
        writer.push(&arrival)?;
    }
    let total = writer.total;
    writer.finish()?;
    Ok(total)
}

/// Reads a native trace.
pub struct Reader<R: Read> {
    input: R,
    /// Offset of the first block.
    first_block: u64,
    file: Box<str>,
    header: Header,
    block: Vec<u8>,
    place: usize,
    left: u32,
    last: Timestamp,
    total: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header. `file` is the name for error messages.
    pub fn new(mut input: R, file: &str) -> Result<Self, TraceError> {
        let mut magic = [0; 8];
        read_exact(&mut input, &mut magic, file, "in its first bytes")?;
        if magic.starts_with(&[0x1f, 0x8b]) {
            return Err(native(
                file,
                "gzipped; decompress it first, Windfall traces are not read compressed".into(),
            ));
        }
        if magic != MAGIC {
            return Err(native(file, "not a Windfall trace: the first bytes differ".into()));
        }
        let version = read_u32(&mut input, file)?;
        if version != VERSION {
            let reason = format!("format version {version}, this program reads {VERSION}");
            return Err(native(file, reason));
        }
        let length = read_u32(&mut input, file)?;
        let bytes = read_bytes(&mut input, length, file, "in the header")?;
        if read_u32(&mut input, file)? != crc32fast::hash(&bytes) {
            return Err(native(file, "the header is corrupt: its checksum differs".into()));
        }
        let header: Header = serde_json::from_slice(&bytes)
            .map_err(|error| native(file, format!("the header cannot be parsed: {error}")))?;
        header.check(file)?;
        // Magic, version, length and checksum take 20 bytes.
        let first_block = u64::from(length) + 20;
        Ok(Self {
            input,
            first_block,
            file: file.into(),
            header,
            block: Vec::new(),
            place: 0,
            left: 0,
            last: Timestamp::ZERO,
            total: 0,
            ended: false,
        })
    }

    /// All functions.
    pub fn functions(&self) -> &[FunctionProfile] {
        &self.header.functions
    }

    /// End of the trace; no arrival is later.
    pub fn horizon(&self) -> Timestamp {
        self.header.horizon
    }

    /// Reads the next arrival. Returns `None` after the end, and an error if the end marker is missing.
    pub fn read_arrival(&mut self) -> Result<Option<Arrival>, TraceError> {
        while self.left == 0 {
            if self.ended {
                return Ok(None);
            }
            self.read_block()?;
        }
        let number = self.total + 1;
        let mut bytes = &self.block[self.place..];
        let before = bytes.len();
        let arrival = decode(&mut bytes, self.last)
            .ok_or_else(|| native(&self.file, format!("arrival {number} cannot be decoded")))?;
        self.place += before - bytes.len();
        self.left -= 1;
        if self.left == 0 && self.place != self.block.len() {
            return Err(native(&self.file, format!("bytes are left over after arrival {number}")));
        }
        if arrival.function.index() >= self.header.functions.len() {
            return Err(native(&self.file, format!("arrival {number} is of no known function")));
        }
        if arrival.at > self.header.horizon {
            return Err(native(&self.file, format!("arrival {number} is after the horizon")));
        }
        if let Some(fault) = fault_of(&arrival.demand) {
            return Err(native(&self.file, format!("arrival {number} {fault}")));
        }
        self.last = arrival.at;
        self.total = number;
        Ok(Some(arrival))
    }

    /// Rewinds to the first arrival.
    pub fn rewind(&mut self) -> Result<(), TraceError>
    where
        R: Seek,
    {
        self.input
            .seek(SeekFrom::Start(self.first_block))
            .map_err(|source| TraceError::Unreadable { file: self.file.clone(), source })?;
        (self.left, self.total, self.last, self.ended) = (0, 0, Timestamp::ZERO, false);
        Ok(())
    }

    fn read_block(&mut self) -> Result<(), TraceError> {
        let length = read_u32(&mut self.input, &self.file)?;
        if length == 0 {
            return self.read_end();
        }
        let count = read_u32(&mut self.input, &self.file)?;
        self.block = read_bytes(&mut self.input, length, &self.file, "in a block")?;
        let expected = checksum(&count.to_le_bytes(), &self.block);
        if read_u32(&mut self.input, &self.file)? != expected {
            let reason = format!("corrupt after arrival {}: a checksum differs", self.total);
            return Err(native(&self.file, reason));
        }
        if count == 0 {
            return Err(native(&self.file, format!("an empty block after arrival {}", self.total)));
        }
        (self.place, self.left) = (0, count);
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), TraceError> {
        let mut total = [0; 8];
        read_exact(&mut self.input, &mut total, &self.file, "in its end")?;
        if read_u32(&mut self.input, &self.file)? != crc32fast::hash(&total) {
            return Err(native(&self.file, "the end is corrupt: its checksum differs".into()));
        }
        let expected = u64::from_le_bytes(total);
        if expected != self.total {
            let reason = format!("has {} arrivals, its end marker says {expected}", self.total);
            return Err(native(&self.file, reason));
        }
        if self.input.read(&mut [0]).is_ok_and(|read| read > 0) {
            return Err(native(&self.file, "bytes are left over after its end".into()));
        }
        self.ended = true;
        Ok(())
    }
}

fn native(file: &str, reason: String) -> TraceError {
    TraceError::Native { file: file.into(), reason: reason.into() }
}

fn unwritable(source: io::Error) -> TraceError {
    TraceError::Unwritable { source }
}

fn checksum(count: &[u8], block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(count);
    hasher.update(block);
    hasher.finalize()
}

fn read_exact(
    input: &mut impl Read,
    bytes: &mut [u8],
    file: &str,
    place: &str,
) -> Result<(), TraceError> {
    input.read_exact(bytes).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => native(file, format!("truncated {place}")),
        _ => TraceError::Unreadable { file: file.into(), source },
    })
}

fn read_u32(input: &mut impl Read, file: &str) -> Result<u32, TraceError> {
    let mut bytes = [0; 4];
    read_exact(input, &mut bytes, file, "before its end")?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads `length` bytes without trusting the length: memory grows only with the bytes that are read.
fn read_bytes(
    input: &mut impl Read,
    length: u32,
    file: &str,
    place: &str,
) -> Result<Vec<u8>, TraceError> {
    if length > MAX_BYTES {
        return Err(native(file, format!("a part of {length} bytes, allowed is {MAX_BYTES}")));
    }
    let mut bytes = Vec::new();
    let read = input.take(u64::from(length)).read_to_end(&mut bytes);
    let read = read.map_err(|source| TraceError::Unreadable { file: file.into(), source })?;
    if read != length as usize {
        return Err(native(file, format!("truncated {place}")));
    }
    Ok(bytes)
}
