//! The story of a call: how it begins, and how the stories of several attempts become one.

use windfall_core::{
    Allocation, CallEnd, CallPlan, CallRecord, DecidedBy, Duration, FunctionId, NodeId, Timestamp,
};

use crate::function::Waiting;

/// The story of an attempt that begins to hold `grant` now; everything else is still to happen.
#[inline]
pub(crate) fn first_page(
    function: u32,
    waiting: &Waiting,
    reservation: Allocation,
    grant: Allocation,
    now: Timestamp,
) -> CallRecord {
    CallRecord {
        id: waiting.id,
        function: FunctionId(function),
        node: NodeId(0),
        end: CallEnd::Completed,
        arrived_at: waiting.arrived_at,
        started_at: now,
        ended_at: now,
        cold_start: Duration::ZERO,
        run: Duration::ZERO,
        baseline: waiting.demand.run_time(reservation.cpu),
        attempts: 1,
        oom_kills: 0,
        input: waiting.demand.input,
        reservation,
        wanted: (0.0, 0.0),
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: grant,
        lowest_grant: grant,
        highest_grant: grant,
        cpu_granted: 0,
        cpu_used: 0,
        memory_granted: 0,
        memory_used: 0,
        changes: 0,
        looks: 0,
        amendments: Vec::new(),
        steps: Vec::new(),
    }
}

/// Puts on record what was wished at dispatch, and by whom.
#[inline]
pub(crate) fn note_plan(record: &mut CallRecord, plan: &mut CallPlan) {
    record.wanted = plan.wanted();
    if let Some(notes) = plan.take_notes() {
        record.decided_by = notes.decided_by;
        record.shadow = notes.shadow;
        record.amendments = notes.amendments;
    }
}

/// Puts the attempts that were killed before the last one. Only the first was planned: later ones get
/// the user's size.
#[cold]
pub(crate) fn put_before(earlier: CallRecord, record: &mut CallRecord) {
    let CallRecord { mut amendments, mut steps, .. } = earlier;
    amendments.append(&mut record.amendments);
    steps.append(&mut record.steps);
    record.amendments = amendments;
    record.steps = steps;
    record.wanted = earlier.wanted;
    record.decided_by = earlier.decided_by;
    record.shadow = earlier.shadow;
    record.cold_start += earlier.cold_start;
    record.run += earlier.run;
    record.attempts += earlier.attempts;
    record.oom_kills += earlier.oom_kills;
    record.first_grant = earlier.first_grant;
    record.lowest_grant = record.lowest_grant.min(earlier.lowest_grant);
    record.highest_grant = record.highest_grant.max(earlier.highest_grant);
    record.cpu_granted += earlier.cpu_granted;
    record.cpu_used += earlier.cpu_used;
    record.memory_granted += earlier.memory_granted;
    record.memory_used += earlier.memory_used;
    record.changes += earlier.changes;
    record.looks += earlier.looks;
}

/// The story of a call that was turned away.
pub(crate) fn record_of_rejected(
    function: u32,
    waiting: &Waiting,
    reservation: Allocation,
    now: Timestamp,
) -> CallRecord {
    CallRecord {
        end: CallEnd::Rejected,
        attempts: 0,
        wanted: (reservation.cpu.cores(), reservation.memory.mib()),
        ..first_page(function, waiting, reservation, reservation, now)
    }
}
