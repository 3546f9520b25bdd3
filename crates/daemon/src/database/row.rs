//! Rows of history on their way to the writer.

use rusqlite::{Transaction, params};
use windfall_core::{CallRecord, FunctionProfile};

use crate::governance::ORDER_RULES;
use crate::learning::Version;
use crate::live::TapeEntry;

/// One row, in the words of the tables.
pub(super) enum Row {
    Call {
        at_ms: i64,
        function: String,
        call: Box<CallRecord>,
    },
    Decision {
        at_ms: i64,
        function: Option<String>,
        entry: Box<TapeEntry>,
    },
    Version {
        at_ms: i64,
        version: Box<Version>,
    },
    /// Everything before it is to be on disk when it is answered.
    Flush(std::sync::mpsc::SyncSender<()>),
}

impl Row {
    /// Writes the row.
    pub(super) fn write(&self, to: &Transaction<'_>) -> rusqlite::Result<()> {
        match self {
            Self::Call { at_ms, function, call } => write_call(to, *at_ms, function, call),
            Self::Decision { at_ms, function, entry } => {
                write_decision(to, *at_ms, function, entry)
            }
            Self::Version { at_ms, version } => write_version(to, *at_ms, version),
            Self::Flush(_) => Ok(()),
        }
    }
}

fn write_call(
    to: &Transaction<'_>,
    at_ms: i64,
    function: &str,
    call: &CallRecord,
) -> rusqlite::Result<()> {
    let is_trip = |rule: &str| !ORDER_RULES.contains(&rule);
    let trips = call.amendments.iter().filter(|one| is_trip(one.rule.as_ref())).count();
    let core_seconds = |millicore_nanos: u64| millicore_nanos as f64 * 1e-12;
    to.prepare_cached(
        "INSERT INTO calls (at_ms, call, function, node, ended, latency_ms, run_ms, cold_start_ms, reserved_millicpu, \
         reserved_mib, first_millicpu, first_mib, lowest_millicpu, highest_millicpu, held_core_s, used_core_s, changes, \
         trips) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)",
    )?
    .execute(params![
        at_ms,
        call.id.0 as i64,
        function,
        call.node.0,
        crate::live::end_word(call.end),
        call.ended_at.since(call.arrived_at).as_millis_f64(),
        call.run.as_millis_f64(),
        call.cold_start.as_millis_f64(),
        call.reservation.cpu.get(),
        call.reservation.memory.get(),
        call.first_grant.cpu.get(),
        call.first_grant.memory.get(),
        call.lowest_grant.cpu.get(),
        call.highest_grant.cpu.get(),
        core_seconds(call.cpu_granted) + core_seconds(call.cpu_held_back),
        core_seconds(call.cpu_used),
        call.changes,
        trips as i64,
    ])?;
    let lent = call.highest_grant.cpu.saturating_sub(call.reservation.cpu).get();
    if lent > 0 {
        to.prepare_cached(
            "INSERT INTO loans (at_ms, call, function, node, lent_millicpu, for_ms) VALUES (?1,?2,?3,?4,?5,?6)",
        )?
        .execute(params![
            at_ms,
            call.id.0 as i64,
            function,
            call.node.0,
            lent,
            call.run.as_millis_f64()
        ])?;
    }
    Ok(())
}

fn write_decision(
    to: &Transaction<'_>,
    at_ms: i64,
    function: &Option<String>,
    entry: &TapeEntry,
) -> rusqlite::Result<()> {
    let amended = serde_json::to_string(&entry.amended).unwrap_or_default();
    let kind = serde_json::to_value(entry.kind).unwrap_or_default();
    to.prepare_cached(
        "INSERT INTO decisions (at_ms, kind, function, call, seen, decided, amended, done, outcome, trip) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
    )?
    .execute(params![
        at_ms,
        kind.as_str().unwrap_or_default(),
        function,
        entry.call.map(|call| call as i64),
        entry.seen,
        entry.decided,
        amended,
        entry.done,
        entry.outcome,
        entry.trip,
    ])?;
    Ok(())
}

fn write_version(to: &Transaction<'_>, at_ms: i64, version: &Version) -> rusqlite::Result<()> {
    let fate = serde_json::to_value(version.fate).unwrap_or_default();
    to.prepare_cached(
        "INSERT INTO policy_versions (at_ms, number, policy, settings, origin, fate, reason) \
         VALUES (?1,?2,?3,?4,?5,?6,?7)",
    )?
    .execute(params![
        at_ms,
        version.number,
        version.policy,
        version.settings,
        version.origin,
        fate.as_str().unwrap_or_default(),
        version.reason,
    ])?;
    Ok(())
}

/// Writes a function down, or its reservation anew.
pub(super) fn write_function(
    to: &Transaction<'_>,
    at_ms: i64,
    function: &FunctionProfile,
) -> rusqlite::Result<()> {
    to.prepare_cached(
        "INSERT INTO functions VALUES (?1,?2,?3,?4,?5,?6) ON CONFLICT (name) DO UPDATE SET \
         reserved_millicpu = excluded.reserved_millicpu, reserved_mib = excluded.reserved_mib",
    )?
    .execute(params![
        function.name,
        function.application,
        function.runtime,
        function.reservation.cpu.get(),
        function.reservation.memory.get(),
        at_ms
    ])?;
    Ok(())
}
