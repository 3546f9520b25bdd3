//! Builds a workload from the tables of a published trace: applies windows and filters, and attaches to
//! every function the facts that its trace records.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use windfall_core::statistics::nearest_neighbour;
use windfall_core::{Duration, Seed, Timestamp, Trigger, Workload};

use crate::azure_2019;
use crate::azure_2021::{self, Call};
use crate::bin_rates::{BinRates, Drawing, FunctionRates};
use crate::binned::{Binned, Placement};
use crate::demand_model::FunctionFacts;
use crate::error::TraceError;
use crate::huawei;
use crate::invocation_list::InvocationList;
use crate::minute_counts::MinuteCounts;
use crate::options::{Needs, ReadOptions};
use crate::parameters::{Span, demand};
use crate::quantiles::Quantiles;
use crate::times_only::TimesOnly;

const MINUTE_NS: u64 = 60_000_000_000;

/// The three tables of Azure 2019.
pub(crate) struct Tables<'a> {
    pub(crate) invocations: &'a Path,
    pub(crate) durations: &'a Path,
    pub(crate) memory: &'a Path,
}

fn opened(path: &Path) -> Result<(File, String), TraceError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((file, name)),
        Err(source) => Err(TraceError::Unreadable { file: name.into(), source }),
    }
}

fn not_empty<T>(kept: Vec<T>, file: &str) -> Result<Vec<T>, TraceError> {
    if kept.is_empty() { Err(TraceError::NothingLeft { file: file.into() }) } else { Ok(kept) }
}

/// Azure 2019: counts per minute.
pub(crate) fn open_azure_2019(
    tables: &Tables<'_>,
    options: &ReadOptions,
    seed: Seed,
    notices: &mut Vec<String>,
) -> Result<Box<dyn Workload>, TraceError> {
    let (file, name) = opened(tables.invocations)?;
    let invocations = azure_2019::read_invocations(file, &name)?;
    let (file, durations_name) = opened(tables.durations)?;
    let durations = azure_2019::read_durations(file, &durations_name)?;
    let (file, memory_name) = opened(tables.memory)?;
    let memory = azure_2019::read_memory(file, &memory_name)?;
    let facts =
        azure_2019::join(&invocations, &name, (&durations, &memory), options.skip_incomplete)?;
    let incomplete = facts.iter().filter(|facts| facts.is_none()).count();
    if incomplete > 0 {
        notices
            .push(format!("{name}: {incomplete} functions left out that are missing from a table"));
    }
    let (first, minutes) = options.window(invocations.minutes)?;
    let stretch = options.overlay_minutes.map_or(minutes, |stretch| stretch.min(minutes));
    let (rows, totals) = rows_in(&invocations, (first, minutes), stretch);
    let calls: Vec<f64> = invocations
        .functions
        .iter()
        .map(|calls| calls.minutes.iter().map(|&(_, count)| f64::from(count)).sum())
        .collect();
    let keep = options.keep(&calls);
    let kept: Vec<(FunctionFacts, &[(u32, u32)])> = facts
        .into_iter()
        .zip(&rows)
        .zip(keep)
        .filter(|(_, keep)| *keep)
        .filter_map(|((facts, row), _)| facts.map(|facts| (facts, row.as_slice())))
        .filter(|(facts, _)| options.takes(facts))
        .collect();
    let (facts, rows): (Vec<FunctionFacts>, Vec<_>) = not_empty(kept, &name)?.into_iter().unzip();
    let counts = MinuteCounts::new(stretch, &rows, totals, options.caps);
    let memory = median_memory(&facts);
    let workload = Binned::new(facts, counts, options.placement, seed);
    Ok(with_needs(workload, memory, options.needs))
}

/// Median memory of each function in MiB, if the trace records it.
fn median_memory(facts: &[FunctionFacts]) -> Vec<Option<f64>> {
    facts.iter().map(|facts| facts.memory_mib.as_ref().map(|memory| memory.at(0.5))).collect()
}

fn with_needs(
    workload: impl Workload + 'static,
    memory_mib: Vec<Option<f64>>,
    needs: Needs,
) -> Box<dyn Workload + Send> {
    match needs {
        Needs::Modelled => Box::new(workload),
        Needs::TimesOnly => Box::new(TimesOnly::new(workload, memory_mib)),
    }
}

/// Each function's minutes inside the window, counted from its start and laid over each other in stretches of `stretch`
/// minutes, and the total calls per minute.
fn rows_in(
    invocations: &azure_2019::Invocations,
    (first, minutes): (u32, u32),
    stretch: u32,
) -> (Vec<Vec<(u32, u32)>>, Vec<u64>) {
    let inside = |calls: &azure_2019::FunctionCalls| -> Vec<(u32, u32)> {
        let mut sums = BTreeMap::new();
        for &(minute, calls) in &calls.minutes {
            let minute = minute.wrapping_sub(first);
            if minute < minutes {
                *sums.entry(minute % stretch).or_insert(0) += calls;
            }
        }
        sums.into_iter().collect()
    };
    let rows: Vec<Vec<(u32, u32)>> = invocations.functions.iter().map(inside).collect();
    let mut totals = vec![0u64; stretch as usize];
    for &(minute, calls) in rows.iter().flatten() {
        totals[minute as usize] += u64::from(calls);
    }
    (rows, totals)
}

/// Huawei: rates per bin.
pub(crate) fn open_huawei(
    path: &Path,
    options: &ReadOptions,
    seed: Seed,
    notices: &mut Vec<String>,
) -> Result<Box<dyn Workload>, TraceError> {
    let (file, name) = opened(path)?;
    let requests = huawei::read_requests(file, &name)?;
    notices.extend(requests.notices.iter().cloned());
    let bins = requests.series[0].requests.len();
    let minutes = (requests.bin.as_nanos() / MINUTE_NS) as u32;
    let window = options.window((bins as u32).saturating_mul(minutes))?;
    let scale = options.huawei_scale / f64::from(minutes);
    let mut totals = vec![0.0; bins];
    let mut calls = Vec::new();
    for series in &requests.series {
        for (total, &count) in totals.iter_mut().zip(&series.requests) {
            *total += f64::from(count) * scale;
        }
        calls.push(series.requests.iter().map(|&count| f64::from(count)).sum());
    }
    let keep = options.keep(&calls);
    let (mut facts, mut rates) = (Vec::new(), Vec::new());
    for (member, series) in requests.series.into_iter().enumerate().filter(|(i, _)| keep[*i]) {
        if !options.holds(&series.user) {
            continue;
        }
        facts.push(FunctionFacts {
            member: member as u64,
            name: series.name,
            application: series.user,
            trigger: Trigger::Other,
            duration_ms: None,
            memory_mib: None,
            reservation: Some(series.reservation),
        });
        let per_minute = series.requests.iter().map(|&n| (f64::from(n) * scale) as f32).collect();
        rates.push(FunctionRates { member: member as u64, per_minute });
    }
    let facts = not_empty(facts, &name)?;
    let is_gusty = options.placement == Placement::Gusty;
    let calls_at_once = options.calls_at_once.map(|range| Span::new(range.low, range.high));
    let drawing = Drawing { is_gusty, calls_at_once, caps: options.caps };
    let rates = BinRates::new(rates, totals, minutes, window, drawing);
    let memory = median_memory(&facts);
    // If every second has its own rate, calls are placed uniformly within it.
    let placement = if is_gusty { Placement::Uniform } else { options.placement };
    let workload = Binned::new(facts, rates, placement, seed);
    Ok(with_needs(workload, memory, options.needs))
}

/// Azure 2021: single calls.
pub(crate) fn open_azure_2021(
    path: &Path,
    options: &ReadOptions,
    seed: Seed,
) -> Result<impl Workload + use<>, TraceError> {
    let (file, name) = opened(path)?;
    let invocations = azure_2021::read_invocations(file, &name)?;
    let last_minute = invocations.calls.last().map_or(0, |call| call.start_ns / MINUTE_NS + 1);
    let (first, minutes) = options.window(u32::try_from(last_minute).unwrap_or(u32::MAX))?;
    let (facts, place) = facts_of_calls(invocations.functions, &invocations.calls, options);
    let limits = &demand().duration;
    let (start, end) = (u64::from(first) * MINUTE_NS, u64::from(minutes) * MINUTE_NS);
    let (low, high) = ((limits.low_ms * 1e6) as u64, (limits.high_ms * 1e6) as u64);
    let calls = invocations.calls.into_iter().filter_map(|call| {
        let start_ns = call.start_ns.checked_sub(start).filter(|&offset| offset < end)?;
        let function = place[call.function as usize]?;
        Some(Call { start_ns, run_ns: call.run_ns.clamp(low, high), function })
    });
    let calls: Vec<Call> = calls.collect();
    let facts = not_empty(facts, &name)?;
    let horizon = Timestamp::ZERO + Duration::from_nanos(end);
    Ok(InvocationList::new(facts, calls, horizon, seed))
}

/// Facts of the functions that are kept, and the new index of every function.
fn facts_of_calls(
    functions: Vec<(String, String)>,
    calls: &[Call],
    options: &ReadOptions,
) -> (Vec<FunctionFacts>, Vec<Option<u32>>) {
    let mut counts = vec![0.0; functions.len()];
    let mut runs_ms = vec![Vec::new(); functions.len()];
    for call in calls {
        counts[call.function as usize] += 1.0;
        runs_ms[call.function as usize].push(call.run_ns as f32 * 1e-6);
    }
    let keep = options.keep(&counts);
    let (mut facts, mut place) = (Vec::new(), vec![None; keep.len()]);
    for (member, (application, function)) in functions.into_iter().enumerate() {
        if !keep[member] {
            continue;
        }
        let known = FunctionFacts {
            member: member as u64,
            name: format!("{application}/{function}"),
            application,
            trigger: Trigger::Other,
            duration_ms: Some(percentiles_of(std::mem::take(&mut runs_ms[member]))),
            memory_mib: None,
            reservation: None,
        };
        if options.without_sleepers && known.sleeps() {
            continue;
        }
        place[member] = Some(facts.len() as u32);
        facts.push(known);
    }
    (facts, place)
}

/// Percentiles of measured run times in ms.
fn percentiles_of(mut values: Vec<f32>) -> Quantiles {
    values.sort_unstable_by(f32::total_cmp);
    let limits = &demand().duration;
    let at = |probability: f64| {
        let value = nearest_neighbour(&values, probability);
        (probability, value.map_or(limits.low_ms, f64::from))
    };
    Quantiles::new([0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0].map(at), limits.low_ms, limits.high_ms)
}
