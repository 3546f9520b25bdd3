//! Autothrottle's captain: a quota per service that follows a target share of throttled periods (Wang et al., NSDI 2024).
//!
//! ```text
//!   every 100 ms    one period: was it throttled, how much was used (u)
//!   every 10        r = share of throttled periods,  margin = max(0, margin + r - target)
//!                   r > 3 target            quota *= 1 + (r - 3 target)
//!                   else                    p = max(u) + margin * deviation(u) over the last 50 periods
//!                                           p <= 0.9 quota: quota = max(0.5 quota, p)
//!   after a cut     every period: r > 3 target: quota = 2 * (quota before) - quota,  margin += r - target
//! ```
//!
//! With a target of 0.1, a quota of 2 cores and four of ten periods throttled, the quota becomes 2 x 1.1 = 2.2 cores;
//! with none throttled, use of at most 0.8 and a margin of 2.9 times a deviation of 0.1, it becomes 1.09 cores.
//!
//! A service is a function here and its calls share one quota each; every window of 100 ms of any of its calls is a
//! period. The tower, which learns targets for groups of services, needs instances that are shared by calls: there is no
//! latency of a service to learn from where every call brings its own size, so the target is a setting.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windfall_core::{
    CallDecision, CallOutcome, CallPolicy, CallView, Duration, FunctionId, PolicyError, RunningCall,
};

use crate::per_function::PerFunction;

/// Periods between two decisions, and periods that the peak is taken over.
const DECIDE_EVERY: u32 = 10;
const HISTORY: usize = 50;
const FLOOR_CORES: f64 = 0.01;
const FIRST_MARGIN: f64 = 3.0;

/// Settings of [`Autothrottle`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutothrottleSettings {
    /// Share of periods that may be throttled.
    pub target: f64,
    /// Length of a period.
    pub period_millis: u64,
}

impl Default for AutothrottleSettings {
    fn default() -> Self {
        Self { target: 0.02, period_millis: 100 }
    }
}

/// One service's quota.
#[derive(Clone, Debug)]
pub struct Captain {
    quota: f64,
    margin: f64,
    periods: u32,
    throttled: f64,
    used: VecDeque<f64>,
    /// The quota before the last cut, while that is on probation.
    before_cut: Option<f64>,
    /// Whether a change of the quota empties the history of use.
    forgets: bool,
}

impl Captain {
    fn new(quota: f64) -> Self {
        let (periods, throttled) = (0, 0.0);
        let (used, before_cut, forgets) = (VecDeque::new(), None, false);
        Self { quota, margin: FIRST_MARGIN, periods, throttled, used, before_cut, forgets }
    }

    /// A captain of a service, whose use after a change of its quota has nothing to do with its use before.
    pub fn of_service(quota: f64) -> Self {
        Self { forgets: true, ..Self::new(quota) }
    }

    /// Cores that the service may use.
    pub fn quota(&self) -> f64 {
        self.quota
    }

    /// The service may use no more than `cores`, whatever the captain says.
    pub fn limit(&mut self, cores: f64) {
        self.quota = self.quota.min(cores);
    }

    /// A period has passed in which so many cores were used.
    pub fn pass(&mut self, used: f64, was_throttled: bool, target: f64) {
        self.periods += 1;
        self.throttled += f64::from(was_throttled);
        self.used.push_back(used);
        if self.used.len() > HISTORY {
            self.used.pop_front();
        }
        let share = self.throttled / f64::from(self.periods);
        if let Some(before) = self.before_cut.filter(|_| share > 3.0 * target) {
            self.quota = (2.0 * before - self.quota).max(FLOOR_CORES);
            self.margin += share - target;
            self.forget();
            self.decided(None);
        } else if self.periods >= DECIDE_EVERY {
            self.decide(share, target);
        }
    }

    fn decide(&mut self, share: f64, target: f64) {
        self.margin = (self.margin + share - target).max(0.0);
        if share > 3.0 * target {
            self.quota *= 1.0 + (share - 3.0 * target);
            self.forget();
            return self.decided(None);
        }
        let peak = self.used.iter().copied().fold(0.0, f64::max);
        let needed = peak + self.margin * self.deviation();
        if needed > 0.9 * self.quota {
            return self.decided(None);
        }
        let before = self.quota;
        self.quota = needed.max(0.5 * self.quota).max(FLOOR_CORES);
        self.forget();
        self.decided(Some(before));
    }

    fn forget(&mut self) {
        if self.forgets {
            self.used.clear();
        }
    }

    fn decided(&mut self, before_cut: Option<f64>) {
        self.before_cut = before_cut;
        (self.periods, self.throttled) = (0, 0.0);
    }

    fn deviation(&self) -> f64 {
        let count = self.used.len().max(1) as f64;
        let mean = self.used.iter().sum::<f64>() / count;
        (self.used.iter().map(|used| (used - mean).powi(2)).sum::<f64>() / count).sqrt()
    }
}

/// One captain for each function.
#[derive(Clone, Debug, Default)]
pub struct Autothrottle {
    settings: AutothrottleSettings,
    functions: PerFunction<Option<Captain>>,
}

impl Autothrottle {
    /// Creates a policy without history.
    pub fn new(settings: AutothrottleSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn captain(&mut self, function: FunctionId, reserved: f64) -> &mut Captain {
        self.functions.state(function).get_or_insert_with(|| Captain::new(reserved))
    }

    fn period(&self) -> Duration {
        Duration::from_millis(self.settings.period_millis.max(1))
    }
}

impl CallPolicy for Autothrottle {
    fn name(&self) -> &str {
        "autothrottle"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let look_after = Some(self.period());
        let quota = self.captain(call.function, call.reservation.cpu.cores()).quota;
        Ok(CallDecision {
            cpu_cores: quota.min(call.ceiling.cpu.cores()),
            look_after,
            ..CallDecision::exactly(call.reservation, "the captain's quota")
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let (look_after, target) = (Some(self.period()), self.settings.target);
        let captain = self.captain(running.function, running.reservation.cpu.cores());
        let was_throttled = running.sensed.throttled_share > 0.0;
        captain.pass(running.sensed.cpu_used_cores, was_throttled, target);
        let cpu_cores = captain.quota.min(running.ceiling.cpu.cores());
        Ok(CallDecision {
            cpu_cores,
            look_after,
            ..CallDecision::exactly(running.grant, "the captain's quota")
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        // A call that ends within its first period was seen by no look.
        if outcome.run() < self.period() {
            let target = self.settings.target;
            let was_throttled = !outcome.throttled.is_zero();
            let captain = self.captain(outcome.function, outcome.reservation.cpu.cores());
            captain.pass(outcome.cpu_mean_cores, was_throttled, target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_worked_numbers() {
        let mut captain = Captain::new(2.0);
        (0..10).for_each(|period| captain.pass(2.0, period < 4, 0.1));
        assert!(close(captain.quota, 2.2), "{}", captain.quota);
        let mut captain = Captain::new(2.0);
        (0..10).for_each(|period| captain.pass([0.6, 0.8][period % 2], false, 0.1));
        // The margin is 3 - 0.1 = 2.9 and the deviation 0.1: 0.8 + 0.29.
        assert!(close(captain.quota, 1.09), "{}", captain.quota);
    }

    #[test]
    fn a_cut_that_throttles_is_taken_back_with_interest() {
        let mut captain = Captain::new(2.0);
        (0..10).for_each(|_| captain.pass(0.1, false, 0.1));
        assert!(close(captain.quota, 1.0), "at most halved");
        captain.pass(1.0, true, 0.1);
        assert!(close(captain.quota, 3.0), "twice the old quota less the new");
    }
}
