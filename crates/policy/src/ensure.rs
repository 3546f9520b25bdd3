//! ENSURE's CPU regulation: raise a function that runs slow, lower one when cores are scarce.
//!
//! Each function is compared with its own runs at the user's size and counts its own regulation period:
//!
//! ```text
//!   reference = median run of its calls at the user's size       latency = mean run of its last 3 calls
//!   class     = MP if its mean run > 5 s : every 5th call, step 1 core
//!               ET otherwise             : every 3rd call, step 2 cores
//!
//!   free CPU >  step  and  latency >= 1.10 reference  ->  cpu + step     (at most the ceiling)
//!   free CPU <= step  and  latency <  1.10 reference  ->  cpu - step     (at most half of it per step)
//!   otherwise                                             cpu
//! ```
//!
//! Reference 1 s, last calls 1.2, 1.1 and 1.3 s: a latency of 1.2, so a function on 2 cores goes to 4.
//! Memory stays at the reservation. ENSURE's scaling is [`crate::EnsureScaling`].

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windfall_core::statistics::mean;
use windfall_core::{CallDecision, CallOutcome, CallPolicy, CallView, FunctionId, PolicyError};

use crate::per_function::PerFunction;
use windfall_core::QuantileWindow;

/// Settings of [`Ensure`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnsureSettings {
    /// Number of recent calls whose mean run time is the current latency.
    pub window: usize,
    /// Ratio of latency to reference at which a function counts as slow.
    pub latency_threshold: f64,
    /// Calls at the user's size before regulation begins.
    pub calibration_calls: usize,
    /// Number of recent calls at the user's size whose median is the reference.
    pub reference_window: usize,
    /// Mean run above which a function is of class MP, seconds.
    pub mp_run_seconds: f64,
    /// Calls of an MP function between two regulations.
    pub mp_period: u32,
    /// Step of an MP function, cores.
    pub mp_step_cpu_cores: f64,
    /// Calls of an ET function between two regulations.
    pub et_period: u32,
    /// Step of an ET function, cores.
    pub et_step_cpu_cores: f64,
    /// Largest share of its CPU that a function loses in one regulation.
    pub most_cut: f64,
    /// Minimum CPU of a call, cores; the reservation if that is lower.
    pub floor_cpu_cores: f64,
}

impl Default for EnsureSettings {
    fn default() -> Self {
        Self {
            window: 3,
            latency_threshold: 1.10,
            calibration_calls: 3,
            reference_window: 32,
            mp_run_seconds: 5.0,
            mp_period: 5,
            mp_step_cpu_cores: 1.0,
            et_period: 3,
            et_step_cpu_cores: 2.0,
            most_cut: 0.5,
            floor_cpu_cores: 0.1,
        }
    }
}

/// A grant within this many millicores of the reservation counts as the user's size.
const ROUNDING_MILLIS: u32 = 1;

/// Regulation state of one function.
#[derive(Clone, Debug)]
struct Regulated {
    /// Current CPU in cores; `None` (the reservation) until the first regulation.
    cpu_cores: Option<f64>,
    calls_since_regulation: u32,
    last_runs: VecDeque<f64>,
    runs_at_user_size: QuantileWindow,
    mean_run: f64,
    runs: f64,
}

/// CPU regulation by latency, per function.
#[derive(Clone, Debug, Default)]
pub struct Ensure {
    settings: EnsureSettings,
    functions: PerFunction<Option<Regulated>>,
}

impl Ensure {
    /// Creates a policy without history.
    pub fn new(settings: EnsureSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn function(&mut self, function: FunctionId) -> &mut Regulated {
        let reference_window = self.settings.reference_window;
        self.functions.state(function).get_or_insert_with(|| Regulated {
            cpu_cores: None,
            calls_since_regulation: 0,
            last_runs: VecDeque::new(),
            runs_at_user_size: QuantileWindow::new(reference_window),
            mean_run: 0.0,
            runs: 0.0,
        })
    }
}

impl Regulated {
    /// Ratio of latency to reference; `None` while either is unknown.
    fn slowness(&self) -> Option<f64> {
        let reference = self.runs_at_user_size.quantile(0.5).filter(|&run| run > 0.0)?;
        Some(mean(&self.last_runs)? / reference)
    }

    /// Returns the CPU after a regulation if one is due, else `cpu` unchanged.
    fn regulate(&mut self, cpu: f64, call: &CallView, settings: &EnsureSettings) -> f64 {
        let is_mp = self.mean_run > settings.mp_run_seconds;
        let (period, step) = if is_mp {
            (settings.mp_period, settings.mp_step_cpu_cores)
        } else {
            (settings.et_period, settings.et_step_cpu_cores)
        };
        self.calls_since_regulation = self.calls_since_regulation.saturating_add(1);
        let Some(slowness) = self.slowness().filter(|_| self.calls_since_regulation >= period)
        else {
            return cpu;
        };
        self.calls_since_regulation = 0;
        let is_scarce = call.free_in_cluster.cores <= step;
        match (is_scarce, slowness >= settings.latency_threshold) {
            (false, true) => cpu + step,
            (true, false) => cpu - step.min(cpu * settings.most_cut),
            (true, true) | (false, false) => cpu,
        }
    }
}

impl CallPolicy for Ensure {
    fn name(&self) -> &str {
        "ensure"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let function = self.function(call.function);
        let at_user_size = CallDecision::exactly(call.reservation, "calibrates at the user's size");
        if function.cpu_cores.is_none()
            && function.runs_at_user_size.len() < settings.calibration_calls
        {
            return Ok(at_user_size);
        }
        let cpu = function.cpu_cores.unwrap_or(call.reservation.cpu.cores());
        let cpu = function.regulate(cpu, call, &settings);
        let floor = settings.floor_cpu_cores.min(call.reservation.cpu.cores());
        let cpu = cpu.max(floor).min(call.ceiling.cpu.cores());
        function.cpu_cores = Some(cpu);
        Ok(CallDecision { cpu_cores: cpu, why: "regulated by latency", ..at_user_size })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        if outcome.was_killed {
            return;
        }
        let settings = self.settings;
        let run = outcome.run().as_secs_f64();
        let function = self.function(outcome.function);
        function.runs += 1.0;
        function.mean_run += (run - function.mean_run) / function.runs;
        if function.last_runs.len() >= settings.window.max(1) {
            function.last_runs.pop_front();
        }
        function.last_runs.push_back(run);
        // A decision in cores is rounded up to whole millicores and may end one above the reservation.
        let user = outcome.reservation.cpu.get();
        let grants = [outcome.first_grant, outcome.last_grant];
        if grants.iter().all(|grant| grant.cpu.get().abs_diff(user) <= ROUNDING_MILLIS) {
            function.runs_at_user_size.push(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second, outcome, view};
    use windfall_core::{Allocation, MilliCpu, Room, Timestamp};

    const USER: Allocation = Allocation::new(2000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);

    fn ran(function: u32, grant: u32, millis: u64) -> CallOutcome {
        CallOutcome {
            function: FunctionId(function),
            ended_at: Timestamp::from_nanos(millis * 1_000_000),
            ..outcome(USER, Allocation::new(grant, 512), 1.0, 100.0)
        }
    }

    /// A policy after three calls of one second at the user's size.
    fn calibrated(settings: EnsureSettings) -> Ensure {
        let mut ensure = Ensure::new(settings);
        (0..3).for_each(|_| ensure.learn(&ran(0, 2000, 1000)));
        ensure
    }

    fn sizes(ensure: &mut Ensure, free: f64, calls: usize) -> Vec<f64> {
        let call =
            CallView { free_in_cluster: Room { cores: free, mib: 4096.0 }, ..view(USER, CEILING) };
        (0..calls).map(|_| ensure.size(&call).unwrap().cpu_cores).collect()
    }

    #[test]
    fn a_slow_function_is_raised_on_its_third_call() {
        let mut ensure = calibrated(EnsureSettings::default());
        for millis in [1200, 1100, 1300] {
            ensure.learn(&ran(0, 1990, millis));
        }
        assert_eq!(sizes(&mut ensure, 16.0, 7), [2.0, 2.0, 4.0, 4.0, 4.0, 6.0, 6.0]);
        assert_eq!(sizes(&mut ensure, 16.0, 8).last(), Some(&8.0));
    }

    #[test]
    fn a_function_with_long_calls_takes_smaller_and_rarer_steps() {
        let mut ensure = Ensure::default();
        (0..3).for_each(|_| ensure.learn(&ran(0, 2000, 6000)));
        (0..3).for_each(|_| ensure.learn(&ran(0, 1990, 9000)));
        assert_eq!(sizes(&mut ensure, 16.0, 6), [2.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn scarce_cores_are_taken_from_functions_that_are_not_slow() {
        let mut ensure = calibrated(EnsureSettings::default());
        // Half of 2, half of 1, half of 0.5.
        assert_eq!(sizes(&mut ensure, 2.0, 9), [2.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]);
        (0..3).for_each(|_| ensure.learn(&ran(0, 250, 4000)));
        assert_eq!(sizes(&mut ensure, 2.0, 4), [0.25; 4]);
        assert_eq!(sizes(&mut ensure, 16.0, 3).last(), Some(&2.25));
    }

    #[test]
    fn functions_have_their_own_period_and_size() {
        let mut ensure = calibrated(EnsureSettings::default());
        (0..3).for_each(|_| ensure.learn(&ran(1, 2000, 1000)));
        (0..3).for_each(|_| ensure.learn(&ran(0, 1990, 2000)));
        let other = CallView { function: FunctionId(1), ..view(USER, CEILING) };
        for expected in [2.0, 2.0, 4.0] {
            assert_eq!(ensure.size(&other).unwrap().cpu_cores, 2.0);
            assert_eq!(sizes(&mut ensure, 16.0, 1), [expected]);
        }
    }

    #[test]
    fn a_partly_filled_window_is_averaged_over_its_own_calls() {
        let settings = EnsureSettings { window: 10, ..EnsureSettings::default() };
        let mut ensure = calibrated(settings);
        // The mean of 1, 1 and 1 s is 1 s, not 0.3 s: neither slow nor fast.
        assert_eq!(ensure.function(FunctionId(0)).slowness(), Some(1.0));
    }

    #[test]
    fn the_floor_does_not_raise_a_small_reservation() {
        let tiny = Allocation::new(50, 64);
        let mut ensure = Ensure::default();
        (0..3).for_each(|_| ensure.learn(&outcome(tiny, tiny, 0.04, 32.0)));
        assert_eq!(ensure.size(&view(tiny, CEILING)).unwrap().cpu_cores, 0.05);
    }

    #[test]
    fn a_steady_function_on_a_free_platform_stays_at_the_users_size() {
        let mut platform = FakePlatform::new(USER, CEILING);
        let mut ensure = Ensure::default();
        for _ in 0..10 {
            let call = platform.call(&mut ensure, one_core_second());
            assert_eq!(call.first_grant.cpu, MilliCpu::new(2000));
        }
    }
}
