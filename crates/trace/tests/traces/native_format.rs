//! Windfall's own format: round trips are exact, and invalid files are rejected.

use proptest::prelude::*;
use windfall_core::{
    Allocation, Arrival, CallDemand, ColdStart, Duration, FunctionId, FunctionProfile, Mebibytes,
    MilliCpu, Seed, Timestamp, Trigger,
};
use windfall_trace::{AzureLikeSettings, ReadOptions, Source, TraceError, native};

use crate::refusing::refused;
use crate::{all, file};

fn profile() -> FunctionProfile {
    FunctionProfile {
        name: "f".into(),
        application: "a".into(),
        trigger: Trigger::Http,
        runtime: "python".into(),
        reservation: Allocation::new(1000, 256),
        cold_start: ColdStart { median: Duration::from_millis(500), sigma: 0.3 },
    }
}

fn written(gaps: &[(u64, u64, Option<f32>)]) -> (Vec<Arrival>, Vec<u8>) {
    let mut at = Timestamp::ZERO;
    let arrivals: Vec<Arrival> = gaps
        .iter()
        .map(|&(gap, number, input)| {
            at += Duration::from_nanos(gap);
            let mut demand = CallDemand {
                work: number >> 2,
                fixed: Duration::from_nanos(number >> 3),
                parallelism: MilliCpu::new(number as u32 | 1),
                memory_base: Mebibytes::new((number >> 43) as u32),
                memory_peak: Mebibytes::new(1 << 24),
                rise: Duration::ZERO,
                jumps: number & 1 == 1,
                cycles: (number as u8 >> 1).max(1),
                shape: (number >> 5) as u32,
                input,
            };
            demand.rise = Duration::from_nanos(demand.fastest().as_nanos() / (1 + (number & 3)));
            Arrival { at, function: FunctionId(0), demand }
        })
        .collect();
    let mut writer = native::Writer::new(Vec::new(), &[profile()], Timestamp::MAX).unwrap();
    for arrival in &arrivals {
        writer.push(arrival).unwrap();
    }
    (arrivals, writer.finish().unwrap())
}

fn read(bytes: &[u8]) -> Result<Vec<Arrival>, TraceError> {
    let mut reader = native::Reader::new(bytes, "n")?;
    let mut arrivals = Vec::new();
    while let Some(arrival) = reader.read_arrival()? {
        arrivals.push(arrival);
    }
    Ok(arrivals)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_native_trace_comes_back_exactly(gaps in prop::collection::vec((0u64..1 << 40, any::<u64>(), prop::option::of(-1e30f32..1e30)), 0..200)) {
        let (arrivals, bytes) = written(&gaps);
        prop_assert_eq!(read(&bytes).unwrap(), arrivals);
    }

    #[test]
    fn a_truncated_or_corrupt_native_trace_is_rejected(numbers in prop::collection::vec(any::<u64>(), 1..50), place: prop::sample::Index, bit in 0u8..8) {
        let gaps: Vec<_> = numbers.iter().map(|&number| (number >> 30, number, None)).collect();
        let (_, mut bytes) = written(&gaps);
        let place = place.index(bytes.len());
        prop_assert!(read(&bytes[..place]).is_err(), "cut at {}", place);
        bytes[place] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err(), "corrupted at {}", place);
    }
}

fn demand() -> CallDemand {
    CallDemand {
        work: 1_000_000_000_000,
        fixed: Duration::from_millis(200),
        parallelism: MilliCpu::new(1000),
        memory_base: Mebibytes::new(100),
        memory_peak: Mebibytes::new(300),
        rise: Duration::from_millis(400),
        jumps: false,
        cycles: 1,
        shape: 0,
        input: None,
    }
}

#[test]
fn invalid_demands_are_rejected() {
    let usual = demand;
    let cases = [
        (CallDemand { cycles: 0, ..usual() }, "1 to 127 cycles"),
        (CallDemand { cycles: 128, ..usual() }, "1 to 127 cycles"),
        (CallDemand { parallelism: MilliCpu::ZERO, ..usual() }, "at least one millicore"),
        (CallDemand { work: u64::MAX, ..usual() }, "millicore-nanoseconds of work"),
        (CallDemand { fixed: Duration::MAX, ..usual() }, "millicore-nanoseconds of work"),
        (
            CallDemand { memory_base: Mebibytes::new(301), ..usual() },
            "no more memory than its peak",
        ),
        (CallDemand { memory_peak: Mebibytes::MAX, ..usual() }, "at most 16 TiB"),
        (CallDemand { rise: Duration::from_millis(1201), ..usual() }, "within its fastest run"),
        (CallDemand { input: Some(f32::NAN), ..usual() }, "a finite input size"),
        (CallDemand { input: Some(f32::INFINITY), ..usual() }, "a finite input size"),
    ];
    for (demand, fault) in cases {
        let mut writer = native::Writer::new(Vec::new(), &[profile()], Timestamp::MAX).unwrap();
        let arrival = Arrival { at: Timestamp::ZERO, function: FunctionId(0), demand };
        let text = refused(writer.push(&arrival));
        assert!(text.starts_with("the trace to be written: arrival 1 "), "{text}");
        assert!(text.contains(fault), "{text}");
    }
}

/// A trace with one arrival that consists of these bytes, with valid checksums.
fn crafted(arrival: &[u8]) -> Vec<u8> {
    let writer =
        native::Writer::new(Vec::new(), &[profile()], Timestamp::from_nanos(1000)).unwrap();
    let empty = writer.finish().unwrap();
    let mut bytes = empty[..empty.len() - 16].to_vec();
    bytes.extend_from_slice(&(arrival.len() as u32).to_le_bytes());
    let body: Vec<u8> = 1u32.to_le_bytes().into_iter().chain(arrival.iter().copied()).collect();
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&1u64.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&1u64.to_le_bytes()).to_le_bytes());
    bytes
}

#[test]
fn a_crafted_file_is_checked_like_a_written_one() {
    // Time, function, work, fixed, parallelism, base, peak, rise, cycles and flags, shape.
    assert_eq!(read(&crafted(&[5, 0, 9, 1, 2, 3, 4, 1, 4, 0])).unwrap().len(), 1);
    for (bytes, fault) in [
        ([5, 1, 9, 1, 2, 3, 4, 1, 4, 0], "arrival 1 is of no known function"),
        ([5, 0, 9, 1, 0, 3, 4, 1, 4, 0], "arrival 1 must be able to use at least one millicore"),
        ([5, 0, 9, 1, 2, 5, 4, 1, 4, 0], "arrival 1 must start with no more memory than its peak"),
        ([5, 0, 9, 1, 2, 3, 4, 7, 4, 0], "arrival 1 must reach its memory peak within"),
        ([5, 0, 9, 1, 2, 3, 4, 1, 0, 0], "arrival 1 must have 1 to 127 cycles"),
        ([5, 0, 9, 1, 2, 3, 4, 1, 4, 0x80], "arrival 1 cannot be decoded"),
    ] {
        let text = refused(read(&crafted(&bytes)));
        assert!(text.starts_with(&format!("n: {fault}")), "{text}");
    }
    let late = [0xe9, 0x07, 0, 9, 1, 2, 3, 4, 1, 4, 0];
    assert_eq!(refused(read(&crafted(&late))), "n: arrival 1 is after the horizon");
    let mut longer = crafted(&[5, 0, 9, 1, 2, 3, 4, 1, 4, 0]);
    longer.push(0);
    assert_eq!(refused(read(&longer)), "n: bytes are left over after its end");
}

#[test]
fn duplicate_functions_and_empty_reservations_are_rejected() {
    let new = |functions: &[FunctionProfile]| {
        refused(native::Writer::new(Vec::new(), functions, Timestamp::MAX))
    };
    assert!(new(&[]).contains("names no function"));
    assert!(new(&[profile(), profile()]).contains("function `f` appears twice"));
    let idle = FunctionProfile { reservation: Allocation::new(0, 1), ..profile() };
    assert!(new(&[idle]).contains("function `f` reserves nothing"));
    let mut wild = profile();
    wild.cold_start.sigma = f64::NAN;
    assert!(new(&[wild]).contains("cold_start.sigma is NaN"));
}

#[test]
fn arrivals_must_be_written_in_order() {
    let horizon = Timestamp::from_nanos(10);
    let mut writer = native::Writer::new(Vec::new(), &[profile()], horizon).unwrap();
    let at =
        |at| Arrival { at: Timestamp::from_nanos(at), function: FunctionId(0), demand: demand() };
    writer.push(&at(7)).unwrap();
    let text = refused(writer.push(&at(6)));
    assert!(text.contains("arrivals must be in order of time"), "{text}");
    assert!(refused(writer.push(&at(11))).contains("not after the horizon"));
}

#[test]
fn a_written_workload_can_be_read_in_full_or_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.wf");
    let settings = AzureLikeSettings { functions: 20, calls_per_hour: 5e3, ..Default::default() };
    let source = Source::AzureLike(settings);
    native::write_file(&path, &mut *source.open(Seed::new(1)).unwrap()).unwrap();
    let original = all(&mut *source.open(Seed::new(1)).unwrap());
    let mut again = file(path.clone(), ReadOptions::default()).open(Seed::new(9)).unwrap();
    assert_eq!(all(&mut *again), original);
    again.restart(Seed::new(3));
    assert_eq!(all(&mut *again), original);

    let options = ReadOptions {
        window_minutes: Some((10, 20)),
        max_functions: Some(15),
        without_busiest: true,
        ..ReadOptions::default()
    };
    let mut part = file(path, options).open(Seed::new(1)).unwrap();
    assert_eq!(part.horizon(), Timestamp::ZERO + Duration::from_mins(10));
    let mut calls = [0; 20];
    original.iter().for_each(|arrival| calls[arrival.function.index()] += 1);
    let busiest = (0..20).rev().max_by_key(|&place| calls[place]).unwrap();
    let (from, to) = (Duration::from_mins(10), Duration::from_mins(20));
    let expected = original.iter().filter(|arrival| {
        let place = arrival.function.index();
        let at = arrival.at.since(Timestamp::ZERO);
        place < 15 && place != busiest && at >= from && at < to
    });
    let part = all(&mut *part);
    assert!(part.iter().map(|arrival| &arrival.demand).eq(expected.map(|arrival| &arrival.demand)));
    assert!(part.is_sorted_by_key(|arrival| arrival.at));
    assert!(!part.is_empty());
}
