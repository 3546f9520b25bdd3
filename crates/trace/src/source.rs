//! Where a workload comes from: the generator, or a path whose kind is found out.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Seed, Timestamp, Trigger, Workload};

use crate::azure_like::{AzureLikeSettings, open_azure_like};
use crate::binned::{Binned, Placement};
use crate::demand_model::FunctionFacts;
use crate::detect::{Detected, TraceKind, detect};
use crate::error::TraceError;
use crate::minute_counts::{BinRates, Caps, MinuteCounts};
use crate::parameters::demand;
use crate::quantiles::Quantiles;
use crate::{azure_2019, azure_2021, huawei, native};

/// Where a workload comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// Generated from numbers fitted to Azure's functions of 2019.
    AzureLike(AzureLikeSettings),
    /// Read from a file or a directory.
    File {
        /// Which.
        path: PathBuf,
        /// How.
        #[serde(default)]
        options: ReadOptions,
    },
}

/// How a trace is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// Where inside a minute calls arrive, if the trace has counts per minute.
    pub placement: Placement,
    /// Limits on single functions, if the trace has counts per minute.
    pub caps: Option<Caps>,
    /// Share of a Huawei table's requests that is kept.
    pub huawei_scale: f64,
    /// First minute and the one after the last, counted from the beginning of the trace.
    pub window_minutes: Option<(u32, u32)>,
    /// Only the first so many functions of the file.
    pub max_functions: Option<usize>,
    /// Without the function that is called most often.
    pub without_busiest: bool,
    /// Leave out functions that not all tables know, instead of refusing the trace.
    pub skip_incomplete: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            caps: None,
            huawei_scale: 1e-3,
            window_minutes: None,
            max_functions: None,
            without_busiest: false,
            skip_incomplete: false,
        }
    }
}

/// A workload, and what was noticed while it was read.
pub struct Opened {
    /// The workload.
    pub workload: Box<dyn Workload + Send>,
    /// What was found, and what was done about oddities; one sentence each.
    pub notices: Vec<String>,
}

impl Source {
    /// Opens the workload.
    pub fn open(&self, seed: Seed) -> Result<Box<dyn Workload + Send>, TraceError> {
        self.open_with_notices(seed).map(|opened| opened.workload)
    }

    /// Opens the workload and tells what was noticed.
    pub fn open_with_notices(&self, seed: Seed) -> Result<Opened, TraceError> {
        match self {
            Self::AzureLike(settings) => {
                let workload = open_azure_like(settings, seed)?;
                Ok(Opened { workload: Box::new(workload), notices: Vec::new() })
            }
            Self::File { path, options } => open_file(path, options, seed),
        }
    }

    /// One line on what the workload is.
    pub fn describe(&self) -> String {
        match self {
            Self::AzureLike(settings) => settings.describe(),
            Self::File { path, options } => {
                let mut text = path.display().to_string();
                if let Some((from, to)) = options.window_minutes {
                    text += &format!(", minutes {from} to {to}");
                }
                if let Some(functions) = options.max_functions {
                    text += &format!(", first {functions} functions");
                }
                if options.without_busiest {
                    text += ", without the busiest function";
                }
                if let Some(caps) = options.caps {
                    let Caps { busy, busy_in_a_minute } = caps;
                    text += &format!(
                        ", functions capped at {busy} busy (any minute {busy_in_a_minute})"
                    );
                }
                text
            }
        }
    }
}

fn open_file(path: &Path, options: &ReadOptions, seed: Seed) -> Result<Opened, TraceError> {
    options.check()?;
    let detected = detect(path)?;
    let mut notices = vec![detected.describe()];
    notices.extend(detected.notices.iter().cloned());
    let workload: Box<dyn Workload + Send> = match &detected.kind {
        TraceKind::Azure2019 { .. } => open_azure_2019(&detected, options, seed, &mut notices)?,
        TraceKind::Azure2021 { calls } => open_azure_2021(calls, options, seed)?,
        TraceKind::Huawei { requests } => open_huawei(requests, options, seed, &mut notices)?,
        TraceKind::Native { file } => Box::new(native::NativeWorkload::open(file)?),
    };
    Ok(Opened { workload, notices })
}

impl ReadOptions {
    fn check(&self) -> Result<(), TraceError> {
        let scale = self.huawei_scale;
        if !(scale > 0.0 && scale <= 1000.0) {
            let value = scale.to_string().into();
            let allowed = "more than 0, at most 1000";
            return Err(TraceError::BadSetting { setting: "huawei_scale", value, allowed });
        }
        if let Some((from, to)) = self.window_minutes.filter(|(from, to)| from >= to) {
            let value = format!("{from} to {to}").into();
            let allowed = "a first minute before the last";
            return Err(TraceError::BadSetting { setting: "window_minutes", value, allowed });
        }
        if let Some(caps) = self.caps {
            for (setting, value) in
                [("caps.busy", caps.busy), ("caps.busy_in_a_minute", caps.busy_in_a_minute)]
            {
                if !(value > 0.0 && value.is_finite()) {
                    let value = value.to_string().into();
                    return Err(TraceError::BadSetting { setting, value, allowed: "more than 0" });
                }
            }
        }
        Ok(())
    }

    /// The window within `minutes` minutes: first minute and length.
    fn window(&self, minutes: u32) -> (u32, u32) {
        let (from, to) = self.window_minutes.unwrap_or((0, minutes));
        (from.min(minutes), to.min(minutes).saturating_sub(from))
    }

    /// Which of the functions with so many `calls` each are kept.
    fn keep(&self, calls: &[f64]) -> Vec<bool> {
        let first = self.max_functions.unwrap_or(usize::MAX);
        let mut keep: Vec<bool> = (0..calls.len()).map(|place| place < first).collect();
        // The earliest one if several are busiest.
        let busiest = (0..calls.len()).rev().max_by(|&a, &b| calls[a].total_cmp(&calls[b]));
        if let Some(busiest) = busiest.filter(|_| self.without_busiest) {
            keep[busiest] = false;
        }
        keep
    }
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

fn open_azure_2019(
    detected: &Detected,
    options: &ReadOptions,
    seed: Seed,
    notices: &mut Vec<String>,
) -> Result<Box<dyn Workload + Send>, TraceError> {
    let TraceKind::Azure2019 { invocations, durations, memory } = &detected.kind else {
        unreachable!("called for this kind only");
    };
    let (file, name) = opened(invocations)?;
    let invocations = azure_2019::read_invocations(file, &name)?;
    let (file, durations_name) = opened(durations)?;
    let durations = azure_2019::read_durations(file, &durations_name)?;
    let (file, memory_name) = opened(memory)?;
    let memory = azure_2019::read_memory(file, &memory_name)?;
    let facts =
        azure_2019::join(&invocations, &name, (&durations, &memory), options.skip_incomplete)?;
    let incomplete = facts.iter().filter(|facts| facts.is_none()).count();
    if incomplete > 0 {
        notices.push(format!("{name}: {incomplete} functions left out that not all tables know"));
    }

    let (first, minutes) = options.window(invocations.minutes);
    let last = first + minutes;
    let rows: Vec<Vec<(u32, u32)>> = invocations
        .functions
        .iter()
        .map(|calls| {
            let inside = calls.minutes.iter().filter(|(minute, _)| (first..last).contains(minute));
            inside.map(|&(minute, calls)| (minute - first, calls)).collect()
        })
        .collect();
    let mut totals = vec![0u64; minutes as usize];
    for &(minute, calls) in rows.iter().flatten() {
        totals[minute as usize] += u64::from(calls);
    }
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
        .collect();
    let (facts, rows): (Vec<FunctionFacts>, Vec<_>) = not_empty(kept, &name)?.into_iter().unzip();
    let counts = MinuteCounts::new(minutes, &rows, totals, options.caps);
    Ok(Box::new(Binned::new(facts, counts, options.placement, seed)))
}

fn open_huawei(
    path: &Path,
    options: &ReadOptions,
    seed: Seed,
    notices: &mut Vec<String>,
) -> Result<Box<dyn Workload + Send>, TraceError> {
    let (file, name) = opened(path)?;
    let requests = huawei::read_requests(file, &name)?;
    notices.extend(requests.notices.iter().cloned());
    let bins = requests.series[0].requests.len();
    let minutes = (requests.bin.as_nanos() / 60_000_000_000) as u32;
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
    let (mut facts, mut per_minute) = (Vec::new(), Vec::new());
    for (member, series) in requests.series.into_iter().enumerate().filter(|(i, _)| keep[*i]) {
        facts.push(FunctionFacts {
            member: member as u64,
            name: series.name,
            application: series.user,
            trigger: Trigger::Other,
            duration_ms: None,
            memory_mib: None,
            reservation: Some(series.reservation),
        });
        per_minute.push(series.requests.iter().map(|&n| (f64::from(n) * scale) as f32).collect());
    }
    let facts = not_empty(facts, &name)?;
    let window = options.window((bins as u32).saturating_mul(minutes));
    let rates = BinRates { per_minute, totals, minutes, window };
    Ok(Box::new(Binned::new(facts, rates, options.placement, seed)))
}

fn open_azure_2021(
    path: &Path,
    options: &ReadOptions,
    seed: Seed,
) -> Result<Box<dyn Workload + Send>, TraceError> {
    let (file, name) = opened(path)?;
    let invocations = azure_2021::read_invocations(file, &name)?;
    let mut counts = vec![0.0; invocations.functions.len()];
    let mut runs_ms = vec![Vec::new(); invocations.functions.len()];
    for call in &invocations.calls {
        counts[call.function as usize] += 1.0;
        runs_ms[call.function as usize].push(call.run_ns as f32 * 1e-6);
    }
    let limits = &demand().duration;
    let keep = options.keep(&counts);
    let (mut facts, mut place) = (Vec::new(), vec![None; keep.len()]);
    for (member, (application, function)) in invocations.functions.into_iter().enumerate() {
        if !keep[member] {
            continue;
        }
        place[member] = Some(facts.len() as u32);
        let runs = std::mem::take(&mut runs_ms[member]);
        facts.push(FunctionFacts {
            member: member as u64,
            name: format!("{application}/{function}"),
            application,
            trigger: Trigger::Other,
            duration_ms: Some(percentiles_of(runs)),
            memory_mib: None,
            reservation: None,
        });
    }
    let last_minute = invocations.calls.last().map_or(0, |call| call.start_ns / MINUTE_NS + 1);
    let (first, minutes) = options.window(u32::try_from(last_minute).unwrap_or(u32::MAX));
    let (start, end) = (u64::from(first) * MINUTE_NS, u64::from(minutes) * MINUTE_NS);
    let (low, high) = ((limits.low_ms * 1e6) as u64, (limits.high_ms * 1e6) as u64);
    let calls = invocations.calls.into_iter().filter_map(|call| {
        let start_ns = call.start_ns.checked_sub(start).filter(|&offset| offset < end)?;
        let function = place[call.function as usize]?;
        Some(azure_2021::Call { start_ns, run_ns: call.run_ns.clamp(low, high), function })
    });
    let calls: Vec<azure_2021::Call> = calls.collect();
    let facts = not_empty(facts, &name)?;
    let horizon = Timestamp::ZERO + Duration::from_nanos(end);
    Ok(Box::new(crate::invocation_list::InvocationList::new(facts, calls, horizon, seed)))
}

const MINUTE_NS: u64 = 60_000_000_000;

/// Percentiles of measured run times in ms.
fn percentiles_of(mut values: Vec<f32>) -> Quantiles {
    values.sort_unstable_by(f32::total_cmp);
    let limits = &demand().duration;
    let at = |probability: f64| {
        let place = probability * (values.len().max(1) - 1) as f64;
        let value = values.get(place.round() as usize);
        (probability, value.map_or(limits.low_ms, |&value| f64::from(value)))
    };
    Quantiles::new([0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0].map(at), limits.low_ms, limits.high_ms)
}
