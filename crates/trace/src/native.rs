//! Windfall's own trace format: functions and arrivals with their demands, compact and checked.
//!
//! ```text
//!   magic "WFTRACE\n"  version u32  header length u32  header (JSON)  CRC-32 of the header
//!   block: length u32 (> 0)  arrivals u32  bytes  CRC-32 of count and bytes     ... more blocks
//!   end:   length u32 = 0    total arrivals u64  CRC-32 of the total
//! ```
//!
//! Numbers are little-endian. Inside a block an arrival is a list of varints: time since the arrival
//! before, function, and the demand field by field. A file that is foreign, newer, cut short, corrupt or
//! unordered is refused with the reason.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windfall_core::{
    Arrival, CallDemand, Duration, FunctionId, FunctionProfile, Mebibytes, MilliCpu, Seed,
    Timestamp, Workload,
};

use crate::error::TraceError;

/// The first bytes of a native trace.
pub const MAGIC: [u8; 8] = *b"WFTRACE\n";
const VERSION: u32 = 1;
/// Arrivals per block; a block has about 100 kB.
const BLOCK_ARRIVALS: u32 = 4096;
/// Largest header and largest block that are read.
const MAX_BYTES: u32 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    horizon: Timestamp,
    functions: Vec<FunctionProfile>,
}

/// Writes a native trace. Without [`Writer::finish`] the trace has no end and is refused.
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
    /// Begins a trace of these functions.
    pub fn new(
        mut out: W,
        functions: &[FunctionProfile],
        horizon: Timestamp,
    ) -> Result<Self, TraceError> {
        let header = Header { horizon, functions: functions.to_vec() };
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

    /// Adds an arrival, not earlier than the one before.
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
        encode(&mut self.block, arrival, self.last);
        self.last = arrival.at;
        self.total += 1;
        self.in_block += 1;
        if self.in_block == BLOCK_ARRIVALS { self.flush_block() } else { Ok(()) }
    }

    /// Writes the end and hands the writer back.
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

/// Writes a whole workload to a file; returns how many calls it has.
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

/// Reads a native trace from any source of bytes.
pub struct Reader<R: Read> {
    input: R,
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
    /// Reads the header. `file` is the name used in errors.
    pub fn new(mut input: R, file: &str) -> Result<Self, TraceError> {
        let mut magic = [0; 8];
        read_exact(&mut input, &mut magic, file, "in its first bytes")?;
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
        let header = serde_json::from_slice(&bytes)
            .map_err(|error| native(file, format!("the header cannot be understood: {error}")))?;
        Ok(Self {
            input,
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

    /// When the last arrival may come at the latest.
    pub fn horizon(&self) -> Timestamp {
        self.header.horizon
    }

    /// The next arrival; nothing after the end, and an error if the end is missing.
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
        self.last = arrival.at;
        self.total = number;
        Ok(Some(arrival))
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
        let promised = u64::from_le_bytes(total);
        if promised != self.total {
            let reason = format!("holds {} arrivals, its end says {promised}", self.total);
            return Err(native(&self.file, reason));
        }
        self.ended = true;
        Ok(())
    }
}

/// A native trace as a workload. The whole file is checked when it is opened.
pub struct NativeWorkload {
    path: PathBuf,
    reader: Reader<BufReader<File>>,
}

impl NativeWorkload {
    /// Checks the whole file once, then stands at its beginning.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut check = open_reader(path)?;
        while check.read_arrival()?.is_some() {}
        Ok(Self { path: path.to_owned(), reader: open_reader(path)? })
    }
}

fn open_reader(path: &Path) -> Result<Reader<BufReader<File>>, TraceError> {
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|source| TraceError::Unreadable { file: name.as_str().into(), source })?;
    Reader::new(BufReader::with_capacity(1 << 17, file), &name)
}

impl Workload for NativeWorkload {
    fn functions(&self) -> &[FunctionProfile] {
        self.reader.functions()
    }

    fn horizon(&self) -> Timestamp {
        self.reader.horizon()
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        self.reader.read_arrival().expect("the file was checked and is not written to during a run")
    }

    /// Starts over; everything in the file is fixed, so the seed changes nothing.
    fn restart(&mut self, _seed: Seed) {
        self.reader =
            open_reader(&self.path).expect("the file was checked and is not moved during a run");
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
        io::ErrorKind::UnexpectedEof => native(file, format!("cut short {place}")),
        _ => TraceError::Unreadable { file: file.into(), source },
    })
}

fn read_u32(input: &mut impl Read, file: &str) -> Result<u32, TraceError> {
    let mut bytes = [0; 4];
    read_exact(input, &mut bytes, file, "before its end")?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads `length` bytes without believing the length: memory grows with what really comes.
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
        return Err(native(file, format!("cut short {place}")));
    }
    Ok(bytes)
}

fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for place in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte has room for one bit only.
        if place == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn encode(bytes: &mut Vec<u8>, arrival: &Arrival, last: Timestamp) {
    let Arrival { at, function, demand } = arrival;
    let CallDemand {
        work,
        fixed,
        parallelism,
        memory_base,
        memory_peak,
        rise,
        jumps,
        cycles,
        shape,
        input,
    } = *demand;
    put(bytes, at.since(last).as_nanos());
    put(bytes, u64::from(function.0));
    put(bytes, work);
    put(bytes, fixed.as_nanos());
    put(bytes, u64::from(parallelism.get()));
    put(bytes, u64::from(memory_base.get()));
    put(bytes, u64::from(memory_peak.get()));
    put(bytes, rise.as_nanos());
    put(bytes, u64::from(cycles) << 2 | u64::from(jumps) << 1 | u64::from(input.is_some()));
    put(bytes, u64::from(shape));
    if let Some(input) = input {
        bytes.extend_from_slice(&input.to_bits().to_le_bytes());
    }
}

fn decode(bytes: &mut &[u8], last: Timestamp) -> Option<Arrival> {
    let small = |bytes: &mut &[u8]| u32::try_from(take(bytes)?).ok();
    let at = Timestamp::from_nanos(last.as_nanos().checked_add(take(bytes)?)?);
    let function = FunctionId(small(bytes)?);
    let work = take(bytes)?;
    let fixed = Duration::from_nanos(take(bytes)?);
    let parallelism = MilliCpu::new(small(bytes)?);
    let memory_base = Mebibytes::new(small(bytes)?);
    let memory_peak = Mebibytes::new(small(bytes)?);
    let rise = Duration::from_nanos(take(bytes)?);
    let flags = take(bytes)?;
    let shape = small(bytes)?;
    let input = if flags & 1 == 1 {
        let (value, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        Some(f32::from_bits(u32::from_le_bytes(*value)))
    } else {
        None
    };
    let demand = CallDemand {
        work,
        fixed,
        parallelism,
        memory_base,
        memory_peak,
        rise,
        jumps: flags & 2 == 2,
        cycles: u8::try_from(flags >> 2).ok()?,
        shape,
        input,
    };
    Some(Arrival { at, function, demand })
}
