//! Small records for tests: a call of function 1 with a baseline of one second at one core.

use windfall_core::call::CallId;
use windfall_core::{
    Allocation, Amendment, CallEnd, CallRecord, ColdStart, CpuCeiling, DecidedBy, Duration,
    FunctionId, FunctionProfile, NodeId, PlainSize, Resource, Timestamp, Trigger,
};

use crate::summary::RunLabel;

pub(crate) fn label(policy: &str, seed: u64) -> RunLabel {
    RunLabel { policy: policy.to_owned(), load: 0.8, seed }
}

/// A function called `name`.
pub(crate) fn function(name: &str) -> FunctionProfile {
    FunctionProfile {
        name: name.to_owned(),
        application: "shop".to_owned(),
        trigger: Trigger::Http,
        runtime: "rust".to_owned(),
        reservation: Allocation::new(1000, 512),
        cold_start: ColdStart { median: Duration::from_millis(500), sigma: 0.0 },
    }
}

/// Call `id`, arriving at second `id`, started at once and run for `seconds`.
pub(crate) fn call(id: u64, seconds: f64) -> CallRecord {
    let at = Timestamp::from_secs(id);
    let size = Allocation::new(1000, 512);
    CallRecord {
        id: CallId(id),
        function: FunctionId(1),
        node: NodeId(0),
        end: CallEnd::Completed,
        arrived_at: at,
        started_at: at,
        ended_at: at + Duration::from_secs_f64(seconds),
        cold_start: Duration::ZERO,
        run: Duration::from_secs_f64(seconds),
        baseline: Some(Duration::from_secs(1)),
        attempts: 1,
        oom_kills: 0,
        input: None,
        reservation: size,
        wanted: PlainSize { cores: 1.0, mib: 512.0 },
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: size,
        cpu_ceiling: CpuCeiling::AtGrant,
        lowest_grant: size,
        highest_grant: size,
        cpu_granted: 1_000_000_000_000,
        cpu_held_back: 0,
        cpu_used: 500_000_000_000,
        seen: None,
        memory_granted: 512_000_000_000,
        memory_used: 100_000_000_000,
        changes: 0,
        looks: 0,
        amendments: Vec::new(),
        steps: Vec::new(),
    }
}

pub(crate) fn amendment(rule: &str) -> Amendment {
    Amendment {
        rule: rule.to_owned().into(),
        function: FunctionId(1),
        resource: Resource::Cpu,
        proposed: Some(0.2),
        allowed: Some(0.5),
        reason: "recent peak 0.45 cores plus margin".into(),
    }
}
