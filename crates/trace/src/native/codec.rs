//! Encoding of one arrival, and checks of its demand.

use windfall_core::{Arrival, CallDemand, Duration, FunctionId, Mebibytes, MilliCpu, Timestamp};

/// Maximum number of cycles of a call: its segments are counted in eight bits.
const MAX_CYCLES: u8 = 127;
/// Maximum work and waiting time, so that the run time on one millicore fits into 64 bits.
const MAX_WORK: u64 = 1 << 62;
/// Maximum memory peak: 16 TiB.
const MAX_MEMORY: Mebibytes = Mebibytes::new(1 << 24);

/// Returns what is wrong with a demand, if anything.
pub(super) fn fault_of(demand: &CallDemand) -> Option<&'static str> {
    let CallDemand { work, fixed, parallelism, memory_base, memory_peak, rise, .. } = demand;
    if !(1..=MAX_CYCLES).contains(&demand.cycles) {
        return Some("must have 1 to 127 cycles");
    }
    if parallelism.get() == 0 {
        return Some("must be able to use at least one millicore");
    }
    if *work > MAX_WORK || fixed.as_nanos() > MAX_WORK {
        return Some("must have at most 2^62 millicore-nanoseconds of work and 2^62 ns of waiting");
    }
    if memory_base > memory_peak || *memory_peak > MAX_MEMORY {
        return Some("must start with no more memory than its peak, which is at most 16 TiB");
    }
    if *rise > demand.fastest() {
        return Some("must reach its memory peak within its fastest run");
    }
    if demand.input.is_some_and(|input| !input.is_finite()) {
        return Some("must have a finite input size");
    }
    None
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
        // Only one bit of the tenth byte is used.
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

/// Appends an arrival.
pub(super) fn encode(bytes: &mut Vec<u8>, arrival: &Arrival, last: Timestamp) {
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

/// Decodes an arrival from the front of `bytes`; `None` if they are invalid.
pub(super) fn decode(bytes: &mut &[u8], last: Timestamp) -> Option<Arrival> {
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
