//! The story of a call: how it begins, and how the stories of several attempts become one.

use windfall_core::{
    Allocation, CallEnd, CallPlan, CallRecord, CpuCeiling, DecidedBy, Duration, FunctionId, NodeId,
    PlainSize, Timestamp,
};

use crate::function::Waiting;

/// Starts the record of an attempt that holds `grant` from now on, in place of one that was reported; everything
/// else is still to happen. Field by field, where it lies: a story that is written elsewhere and then moved
/// costs a call a tenth of its time.
#[inline(always)]
pub(crate) fn begin_story(
    record: &mut CallRecord,
    function: u32,
    waiting: &Waiting,
    reservation: Allocation,
    grant: Allocation,
    now: Timestamp,
) {
    record.id = waiting.id;
    record.function = FunctionId(function);
    record.node = NodeId(0);
    record.end = CallEnd::Completed;
    record.arrived_at = waiting.arrived_at;
    record.started_at = now;
    record.ended_at = now;
    record.cold_start = Duration::ZERO;
    record.run = Duration::ZERO;
    record.baseline = Some(waiting.demand.run_time(reservation.cpu));
    (record.attempts, record.oom_kills) = (1, 0);
    record.input = waiting.demand.input;
    record.reservation = reservation;
    // Unless a plan says otherwise; without one the user's size is what is wanted.
    record.wanted = PlainSize::from(reservation);
    record.decided_by = DecidedBy::Policy;
    record.shadow = None;
    record.cpu_ceiling = CpuCeiling::AtGrant;
    record.first_grant = grant;
    record.lowest_grant = grant;
    record.highest_grant = grant;
    (record.cpu_granted, record.cpu_held_back, record.cpu_used) = (0, 0, 0);
    (record.memory_granted, record.memory_used) = (0, 0);
    (record.changes, record.looks) = (0, 0);
    record.amendments.clear();
    record.steps.clear();
}

/// Puts on record what was decided at dispatch, and by whom.
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
    record.cpu_held_back += earlier.cpu_held_back;
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
    let mut record = CallRecord::default();
    begin_story(&mut record, function, waiting, reservation, reservation, now);
    record.end = CallEnd::Rejected;
    record.attempts = 0;
    record
}
