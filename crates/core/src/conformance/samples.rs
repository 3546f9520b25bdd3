//! Ordinary and extreme inputs that the suites share.

use crate::call::{CallId, CallOutcome, CallView, NodeId, Room, RunningCall, Sensed};
use crate::call_control::CallCapabilities;
use crate::observation::{ClusterView, FunctionView, Observation};
use crate::time::{Duration, Timestamp};
use crate::units::{Allocation, Instances};
use crate::workload::FunctionId;

pub(super) fn function(id: u32, reservation: Allocation, ready: u32, queued: u32) -> FunctionView {
    FunctionView {
        function: FunctionId(id),
        reservation,
        allocation: reservation,
        kept: None,
        start_cpu: None,
        concurrency: 1,
        ready: Instances::new(ready),
        busy: Instances::new(ready / 2),
        starting: Instances::ZERO,
        in_flight: ready / 2,
        queued,
        mean_concurrency: f64::from(ready) / 2.0 + f64::from(queued),
        arrivals: queued.saturating_add(ready),
        completions: ready,
        cold_starts: 0,
        mean_run: (ready > 0).then(|| Duration::from_millis(250)),
        mean_wait: (ready > 0).then(|| Duration::from_millis(5)),
        cpu_used_cores: f64::from(ready) * 0.3,
        memory_peak_mib: 100.0,
        cold_start: Duration::from_millis(500),
        presence: Vec::new(),
    }
}

/// A sequence of views: no functions, ordinary ones, one reserving next to nothing, one with a huge
/// queue, and one that comes with old numbers.
pub fn observations() -> Vec<Observation> {
    let usual = Allocation::new(1000, 256);
    let functions = [
        vec![],
        vec![function(0, usual, 4, 0), function(1, Allocation::new(1, 1), 1, 0)],
        vec![function(0, usual, 4, 3), function(1, Allocation::new(1, 1), 0, 1)],
        vec![function(0, usual, 0, u32::MAX), function(1, usual, 0, 0)],
        vec![function(0, usual, 40, 0), function(1, usual, 2, 9)],
    ];
    let at = |tick: usize| Timestamp::from_secs(60 + 10 * tick as u64);
    let view = |(tick, functions): (usize, Vec<FunctionView>)| Observation {
        now: at(tick),
        taken_at: if tick == 4 { at(tick - 3) } else { at(tick) },
        window: Duration::from_secs(10),
        cluster: ClusterView {
            nodes: 2,
            capacity_cores: 64.0,
            capacity_mib: 65_536.0,
            granted_cores: 8.0,
            granted_mib: 2048.0,
            queued: functions.iter().map(|f| u64::from(f.queued)).sum(),
        },
        functions,
        settled: Vec::new(),
    };
    functions.into_iter().enumerate().map(view).collect()
}

/// Calls about to start: ordinary, with input, with a reservation of next to nothing, at the ceiling,
/// behind a huge queue, on a cluster with nothing free.
pub fn calls() -> Vec<CallView> {
    let usual = CallView {
        id: CallId(0),
        function: FunctionId(0),
        now: Timestamp::from_secs(10),
        arrived_at: Timestamp::from_secs(9),
        input: None,
        reservation: Allocation::new(1000, 256),
        ceiling: Allocation::new(8000, 4096),
        free_in_cluster: Room { cores: 32.0, mib: 32_768.0 },
        waiting: 0,
        capabilities: CallCapabilities::ALL,
        foresight: None,
    };
    let variants = [
        usual.clone(),
        CallView { input: Some(12.5), ..usual.clone() },
        CallView { reservation: Allocation::new(1, 1), function: FunctionId(1), ..usual.clone() },
        CallView { reservation: usual.ceiling, function: FunctionId(2), ..usual.clone() },
        CallView { waiting: u64::MAX, free_in_cluster: Room::default(), ..usual.clone() },
        CallView { input: Some(0.0), function: FunctionId(900), ..usual },
    ];
    let mut id = 0;
    let mut calls = Vec::new();
    for round in 0..8u64 {
        for call in &variants {
            let now = call.now + Duration::from_secs(round);
            calls.push(CallView { id: CallId(id), now, arrived_at: now, ..call.clone() });
            id += 1;
        }
    }
    calls
}

/// Looks at `call` while it holds `grant`: idle, busy, throttled, close to its memory limit.
pub fn running_calls(call: &CallView, grant: Allocation) -> Vec<RunningCall> {
    let sensed = |cpu_share: f64, throttled_share: f64, memory_share: f64| Sensed {
        window: Duration::from_millis(100),
        cpu_used_cores: grant.cpu.cores() * cpu_share,
        throttled_share,
        delayed_share: 0.0,
        memory_mib: grant.memory.mib() * memory_share,
    };
    [sensed(0.0, 0.0, 0.1), sensed(0.6, 0.0, 0.5), sensed(1.0, 1.0, 0.5), sensed(0.4, 0.1, 0.99)]
        .into_iter()
        .zip(1..)
        .map(|(sensed, look)| RunningCall {
            id: call.id,
            function: call.function,
            node: NodeId(0),
            now: call.now + Duration::from_millis(100) * look,
            started_at: call.now,
            input: call.input,
            reservation: call.reservation,
            ceiling: call.ceiling,
            grant,
            owed: Allocation::ZERO,
            free_on_node: Allocation::new(16_000, 16_384),
            waiting: call.waiting,
            node_is_short: false,
            actuation_delay: Duration::from_millis(10),
            capabilities: call.capabilities,
            sensed,
        })
        .collect()
}

/// An end of `call` after half a second on `grant`, with half of it used or killed at its limit.
pub fn outcome_of(call: &CallView, grant: Allocation, was_killed: bool) -> CallOutcome {
    let memory_share = if was_killed { 1.0 } else { 0.5 };
    CallOutcome {
        id: call.id,
        function: call.function,
        node: NodeId(0),
        input: call.input,
        reservation: call.reservation,
        first_grant: grant,
        last_grant: grant,
        arrived_at: call.arrived_at,
        started_at: call.now,
        ended_at: call.now + Duration::from_millis(500),
        was_killed,
        cpu_peak_cores: grant.cpu.cores() * 0.5,
        memory_peak_mib: grant.memory.mib() * memory_share,
        cpu_mean_cores: grant.cpu.cores() * 0.4,
        throttled: Duration::ZERO,
        delayed: Duration::ZERO,
    }
}
