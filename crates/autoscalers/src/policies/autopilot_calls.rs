//! Google's Autopilot with per-call sizing.
//!
//! ```text
//!  CallOutcome ─► mean CPU and memory peak of the call ─► collected for one window (5 min)
//!  CallView ────► window ended? new recommendation ─► CPU and memory of the call
//! ```
//!
//! A call is one task of a job, measured over its whole run. Calls get what the user reserves until the first window has
//! ended.

use std::collections::BTreeMap;

use windfall_core::{CallDecision, CallOutcome, CallPolicy, CallView, FunctionId, PolicyError};

use super::autopilot::{AutopilotKind, Job};
use super::vpa::second;

/// Autopilot, one per function, for per-call sizing.
#[derive(Clone, Debug)]
pub struct AutopilotForCalls {
    kind: AutopilotKind,
    window_seconds: i64,
    functions: BTreeMap<FunctionId, Limited>,
}

#[derive(Clone, Debug)]
struct Limited {
    job: Job,
    /// CPU in cores and memory in MiB, after the first window with samples.
    limits: (Option<f64>, Option<f64>),
}

impl AutopilotForCalls {
    /// Creates a policy that decides once per `window_seconds` (300 in the paper).
    pub fn new(kind: AutopilotKind, window_seconds: i64) -> Self {
        Self { kind, window_seconds, functions: BTreeMap::new() }
    }

    fn function(&mut self, function: FunctionId, now: i64) -> &mut Limited {
        let kind = &self.kind;
        self.functions
            .entry(function)
            .or_insert_with(|| Limited { job: Job::new(kind, now), limits: (None, None) })
    }
}

impl Default for AutopilotForCalls {
    fn default() -> Self {
        Self::new(AutopilotKind::default(), 300)
    }
}

impl CallPolicy for AutopilotForCalls {
    fn name(&self) -> &str {
        "autopilot"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let (now, window_seconds) = (second(call.now), self.window_seconds);
        let function = self.function(call.function, now);
        if function.job.is_due(now, window_seconds) {
            function.limits = function.job.close_window(now);
        }
        let (cpu, memory) = function.limits;
        let reserved = CallDecision::exactly(call.reservation, "the recommended limit");
        if cpu.is_none() && memory.is_none() {
            return Ok(CallDecision { why: "no window seen yet", ..reserved });
        }
        Ok(CallDecision {
            cpu_cores: cpu.unwrap_or(reserved.cpu_cores).min(call.ceiling.cpu.cores()),
            memory_mib: memory.unwrap_or(reserved.memory_mib).min(call.ceiling.memory.mib()),
            ..reserved
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let function = self.function(outcome.function, second(outcome.started_at));
        function.job.sample(outcome.cpu_mean_cores, outcome.memory_peak_mib);
    }
}
