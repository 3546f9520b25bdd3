//! What the API says about functions, in plain numbers with their units in the names.

use serde_json::{Value, json};
use windfall_core::{FunctionId, Timestamp};

use super::ApiState;
use crate::governance::{Hold, Standing};
use crate::live::{FunctionLive, Live};

/// Points of a sparkline: five minutes of ten seconds.
const SPARK: usize = 30;

/// One row of the list of functions.
pub(super) fn row(state: &ApiState, live: &Live, id: FunctionId, function: &FunctionLive) -> Value {
    let now = live.now;
    let [reserved, held, used] = function.core_seconds;
    json!({
        "id": id.0,
        "name": function.profile.name,
        "application": function.profile.application,
        "runtime": function.profile.runtime,
        "standing": standing(state, id),
        "slo": function.slo_state(now),
        "budget_left": function.budget_left(now),
        "objective_ms": function.objective.target_ms,
        "objective_is_set": function.objective.is_set,
        "p50_ms": function.latency_ms(0.5),
        "p99_ms": function.latency_ms(0.99),
        "calls": function.calls,
        "failed": function.failed,
        "late": function.late,
        "calls_per_minute": function.calls_per_minute(now),
        "in_flight": function.in_flight,
        "queued": function.queued,
        "reserved_cores": function.profile.reservation.cpu.cores(),
        "reserved_mib": function.profile.reservation.memory.mib(),
        "core_seconds_reserved": reserved,
        "core_seconds_held": held,
        "core_seconds_used": used,
        "saved_core_hours": (reserved - held) / 3600.0,
        "trips": function.trips,
        "spark": spark(function, now),
    })
}

/// Who decides about a function, in one word with the reason.
pub(super) fn standing(state: &ApiState, id: FunctionId) -> Value {
    let (word, reason) = match state.governance.standing(id) {
        Standing::Managed => ("managed", ""),
        Standing::Pinned(_) => ("pinned", "the size is pinned"),
        Standing::Own(reason) => match state.governance.hold(id) {
            Some(Hold::Paused) => ("paused", reason),
            _ => ("own", reason),
        },
    };
    let size = match state.governance.hold(id) {
        Some(Hold::Pinned { size }) => {
            json!({ "cores": size.cpu.cores(), "mib": size.memory.mib() })
        }
        _ => Value::Null,
    };
    json!({ "word": word, "reason": reason, "pinned": size })
}

/// Calls per bucket over the last five minutes; empty ones are zero.
fn spark(function: &FunctionLive, now: Timestamp) -> Vec<u32> {
    let last = (now.as_secs_f64() / 10.0).floor() as i64;
    let mut counts = vec![0; SPARK];
    for bucket in function.buckets.iter().rev() {
        let back = last - (bucket.at / 10.0).round() as i64;
        match usize::try_from(back) {
            Ok(back) if back < SPARK => counts[SPARK - 1 - back] = bucket.calls,
            _ => break,
        }
    }
    counts
}

/// Everything about one function.
pub(super) fn detail(
    state: &ApiState,
    live: &Live,
    id: FunctionId,
    function: &FunctionLive,
) -> Value {
    let mut value = row(state, live, id, function);
    let (ready, busy, starting) = function.instances;
    let more = json!({
        "trigger": function.profile.trigger,
        "cold_start_ms": function.profile.cold_start.median.as_millis_f64(),
        "allocation_cores": function.allocation.cpu.cores(),
        "allocation_mib": function.allocation.memory.mib(),
        "instances": { "ready": ready, "busy": busy, "starting": starting },
        "objective_share": function.objective.share,
        "cold_starts": function.cold_starts,
        "idle_seconds": function.idle_seconds(live.now),
        "recommendation": function.recommendation(live.now),
        "buckets": function.buckets,
        "instance_steps": function.instance_history.steps(),
        "recent": function.recent,
        "now": live.now.as_secs_f64(),
    });
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

/// The price of `core_seconds`.
pub(super) fn money(state: &ApiState, core_seconds: f64) -> f64 {
    core_seconds / 3600.0 * state.settings.price_per_core_hour
}
