//! One finished call in the form that the function page lists.

use std::collections::BTreeMap;

use serde::Serialize;
use windfall_core::{CallEnd, CallRecord};

/// A finished call, in plain numbers.
#[derive(Clone, Debug, Serialize)]
pub struct RecentCall {
    /// Its number.
    pub id: u64,
    /// When it ended, seconds since the start.
    pub at: f64,
    /// From arrival to end, milliseconds.
    pub latency_ms: f32,
    /// Running, milliseconds.
    pub run_ms: f32,
    /// Waiting for a new instance, milliseconds; 0 if it was served by a warm one.
    pub cold_start_ms: f32,
    /// Least CPU it ever held, cores.
    pub lowest_cores: f32,
    /// CPU it began with, cores.
    pub first_cores: f32,
    /// Most CPU it ever held, cores.
    pub highest_cores: f32,
    /// Memory it began with, MiB.
    pub memory_mib: f32,
    /// Mean CPU in use, cores.
    pub used_cores: f32,
    /// What the policy decided at dispatch, cores.
    pub wanted_cores: f32,
    /// What the shadow policy would have decided, cores.
    pub shadow_cores: Option<f32>,
    /// How it ended.
    pub end: &'static str,
    /// Whether it met the objective, if that is known.
    pub met: Option<bool>,
    /// Safeguards and orders that changed something, with how often.
    pub amended: BTreeMap<String, u32>,
}

/// The word for how a call ended.
pub(crate) const fn end_word(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Completed => "completed",
        CallEnd::OutOfMemory => "out-of-memory",
        CallEnd::NodeLost => "node-lost",
        CallEnd::Rejected => "rejected",
    }
}

impl RecentCall {
    pub(super) fn of(call: &CallRecord, at: f64, met: Option<bool>) -> Self {
        let run = call.run.as_nanos_f64().max(1.0);
        let mut amended = BTreeMap::new();
        for amendment in &call.amendments {
            *amended.entry(amendment.rule.to_string()).or_default() += 1;
        }
        Self {
            id: call.id.0,
            at,
            latency_ms: call.ended_at.since(call.arrived_at).as_millis_f64() as f32,
            run_ms: call.run.as_millis_f64() as f32,
            cold_start_ms: call.cold_start.as_millis_f64() as f32,
            lowest_cores: call.lowest_grant.cpu.cores() as f32,
            first_cores: call.first_grant.cpu.cores() as f32,
            highest_cores: call.highest_grant.cpu.cores() as f32,
            memory_mib: call.first_grant.memory.mib() as f32,
            used_cores: (call.cpu_used as f64 * 1e-3 / run) as f32,
            wanted_cores: call.wanted.cores as f32,
            shadow_cores: call.shadow.map(|size| size.cores as f32),
            end: end_word(call.end),
            met,
            amended,
        }
    }
}
