//! Observations for tests of tick policies.

use windfall_core::{
    Allocation, ClusterView, Duration, FunctionId, FunctionView, Instances, Observation, Timestamp,
};

/// A function without calls: 1 core and 256 MiB, one call per instance, cold start of 1 s.
pub(crate) fn function(id: u32) -> FunctionView {
    FunctionView {
        function: FunctionId(id),
        reservation: Allocation::new(1000, 256),
        allocation: Allocation::new(1000, 256),
        kept: None,
        start_cpu: None,
        concurrency: 1,
        ready: Instances::ZERO,
        busy: Instances::ZERO,
        starting: Instances::ZERO,
        in_flight: 0,
        queued: 0,
        mean_concurrency: 0.0,
        arrivals: 0,
        completions: 0,
        cold_starts: 0,
        mean_run: None,
        mean_wait: None,
        cpu_used_cores: 0.0,
        memory_peak_mib: 0.0,
        cold_start: Duration::from_secs(1),
        presence: Vec::new(),
    }
}

/// `functions` over a window of 2 s, on four nodes of 16 cores and 16 GiB.
pub(crate) fn observation(functions: Vec<FunctionView>) -> Observation {
    Observation {
        now: Timestamp::from_secs(2),
        taken_at: Timestamp::from_secs(2),
        window: Duration::from_secs(2),
        cluster: ClusterView {
            nodes: 4,
            capacity_cores: 64.0,
            capacity_mib: 65_536.0,
            ..ClusterView::default()
        },
        functions,
        settled: Vec::new(),
    }
}
