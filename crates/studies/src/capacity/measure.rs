//! What one run did to each function's calls, as far as an objective asks.

use std::sync::atomic::{AtomicBool, Ordering};

use windfall_core::{CallEnd, CallRecord, Duration, TelemetrySink, Timestamp};
use windfall_telemetry::metrics::SLOWDOWN_FLOOR;

use super::objective::Objective;

/// Classes of duration.
pub const CLASSES: usize = 4;
/// Where one class ends and the next begins: run time alone at the reservation.
const CLASS_ENDS: [Duration; CLASSES - 1] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(10)];
/// A run with this many times the slow calls or violations that are allowed in all is given up: it is far beyond what
/// is held.
const HOPELESS: f64 = 5.0;
/// A wait of this many times what is allowed cannot be distinguished from a longer one.
const LONGEST: f64 = 1e6;

/// What happened to one function's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionService {
    /// Calls in each class.
    pub calls: [u32; CLASSES],
    /// Those that were slow.
    pub slow: [u32; CLASSES],
    /// Calls that ran longer than alone at their reservation.
    pub violations: u32,
    /// Times a call was killed for memory.
    pub kills: u32,
    /// The longest wait over what was allowed for that call.
    pub longest_wait: f32,
}

/// Watches one run.
pub struct ServiceMeasure<'a> {
    objective: Objective,
    from: Timestamp,
    /// So many slow calls are hopeless.
    most_slow: f64,
    slow: u64,
    /// And so many that ran too long.
    most_violations: f64,
    violations: u64,
    is_decided: &'a AtomicBool,
    functions: Vec<FunctionService>,
    /// Millicore-nanoseconds and MiB-nanoseconds used, warm-up included.
    pub used: Used,
}

/// What calls used over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Millicore-nanoseconds.
    pub cpu: f64,
    /// MiB-nanoseconds.
    pub memory: f64,
}

impl<'a> ServiceMeasure<'a> {
    /// Watches a run of about `calls` calls by `objective`; `is_decided` becomes true when it can be given up.
    pub fn new(
        objective: Objective,
        warm_up: Duration,
        calls: u64,
        is_decided: &'a AtomicBool,
    ) -> Self {
        Self {
            objective,
            from: Timestamp::ZERO + warm_up,
            most_slow: (HOPELESS * objective.slow_share * calls as f64).max(100.0),
            slow: 0,
            most_violations: (HOPELESS * objective.violation_share * calls as f64).max(100.0),
            violations: 0,
            is_decided,
            functions: Vec::new(),
            used: Used::default(),
        }
    }

    /// What happened to each function's calls.
    pub fn into_functions(self) -> Vec<FunctionService> {
        self.functions
    }

    fn function(&mut self, place: usize) -> &mut FunctionService {
        if place >= self.functions.len() {
            self.functions.resize(place + 1, FunctionService::default());
        }
        &mut self.functions[place]
    }

    /// How long a call waited over what was allowed.
    fn wait_over_allowed(&self, call: &CallRecord, baseline: Duration) -> f64 {
        let Objective { longest_wait, longest_wait_runs, .. } = self.objective;
        let wait = call.ended_at.since(call.arrived_at).saturating_sub(call.run).as_secs_f64();
        let runs = baseline.as_secs_f64() * longest_wait_runs;
        wait / longest_wait.as_secs_f64().max(runs).max(1e-9)
    }
}

/// The class of a call that runs for `baseline` alone at its reservation.
fn class(baseline: Duration) -> usize {
    CLASS_ENDS.iter().take_while(|&&end| baseline >= end).count()
}

impl TelemetrySink for ServiceMeasure<'_> {
    fn call(&mut self, call: &CallRecord) {
        self.used.cpu += call.cpu_used as f64;
        self.used.memory += call.memory_used as f64;
        let Some(baseline) = call.baseline.filter(|_| call.arrived_at >= self.from) else { return };
        let place = call.function.index();
        if call.end == CallEnd::OutOfMemory {
            // Killed at the user's own size: no policy could have saved it, so it is a kill and nothing else.
            self.function(place).kills += u32::from(call.oom_kills);
            return;
        }
        let Objective { slow_above, violation_above, .. } = self.objective;
        let answered = call.end == CallEnd::Completed;
        let is_over =
            |value: Option<f64>, most: f64| !answered || value.is_some_and(|value| value > most);
        let is_slow = is_over(call.bounded_slowdown(SLOWDOWN_FLOOR), slow_above);
        let is_violated = is_over(call.relative_run(), violation_above);
        let wait = if answered { self.wait_over_allowed(call, baseline) } else { LONGEST };
        let class = class(baseline);
        let function = self.function(place);
        function.calls[class] += 1;
        function.slow[class] += u32::from(is_slow);
        function.violations += u32::from(is_violated);
        function.kills += u32::from(call.oom_kills);
        function.longest_wait = function.longest_wait.max(wait.min(LONGEST) as f32);
        self.slow += u64::from(is_slow);
        self.violations += u64::from(is_violated);
        if self.slow as f64 > self.most_slow || self.violations as f64 > self.most_violations {
            self.is_decided.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arrived: u64, wait: u64, run: u64, baseline: u64) -> CallRecord {
        let at = Timestamp::from_secs;
        CallRecord {
            arrived_at: at(arrived),
            started_at: at(arrived + wait),
            ended_at: at(arrived + wait + run),
            run: Duration::from_secs(run),
            baseline: Some(Duration::from_secs(baseline)),
            ..CallRecord::default()
        }
    }

    #[test]
    fn waits_runs_and_classes_are_counted_after_the_warm_up() {
        let decided = AtomicBool::new(false);
        let warm_up = Duration::from_secs(100);
        let mut measure = ServiceMeasure::new(Objective::default(), warm_up, 1000, &decided);
        measure.call(&call(50, 900, 5, 5));
        measure.call(&call(100, 30, 5, 5));
        measure.call(&call(100, 0, 6, 5));
        measure.call(&call(100, 100, 20, 20));
        let [function] = measure.into_functions()[..] else { panic!("one function") };
        assert_eq!((function.calls, function.slow), ([0, 0, 2, 1], [0, 0, 1, 1]));
        assert_eq!(function.violations, 1);
        // 30 s of 60 s, and 100 s of ten times 20 s: both are half of what is allowed.
        assert!((function.longest_wait - 0.5).abs() < 1e-6);
        assert!(!decided.load(Ordering::Relaxed));
    }

    #[test]
    fn a_hopeless_run_is_given_up() {
        let decided = AtomicBool::new(false);
        let mut measure =
            ServiceMeasure::new(Objective::default(), Duration::ZERO, 10_000, &decided);
        (0..500).for_each(|_| measure.call(&call(0, 10, 1, 1)));
        assert!(!decided.load(Ordering::Relaxed), "5 % of 10,000 may still come");
        measure.call(&call(0, 10, 1, 1));
        assert!(decided.load(Ordering::Relaxed));
    }
}
