//! Queueing: as many instances as an M/M/c queue needs so that few calls wait, one cold start ahead.
//!
//! ```text
//!   lambda = the smoothed arrival rate, extrapolated by one cold start + one window
//!   a      = lambda x S + queued x S / drain          busy slots: new calls and the backlog
//!   c      = fewest slots with Erlang C(c, a) <= share that may wait      about a + beta sqrt(a)
//!   instances = ceil(c / concurrency)
//! ```
//!
//! Ten calls per second of 300 ms each keep 3 slots busy. With 6 slots 9.9 % of the calls wait, with 7
//! slots 3.8 %: at a limit of 5 % the function gets 7 instances of one call, or 1 of ten.
//!
//! A falling trend is ignored until the level itself has fallen. A function that expects less than one call
//! within its keep-alive gets a target of zero instances; an existing one stays for that time. Sizes remain
//! at the user's reservation, as with [`crate::Fixed`].

use serde::{Deserialize, Serialize};
use windfall_core::{
    Decision, Duration, FunctionView, Observation, Policy, PolicyError, Setting, Target,
};

use crate::erlang::servers_for;
use crate::holt::{Holt, weight};
use crate::per_function::PerFunction;

/// Settings of [`Queueing`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueingSettings {
    /// Share of calls that may have to wait.
    pub wait_share: f64,
    /// Half-life of the arrival rate, seconds.
    pub rate_half_life_seconds: f64,
    /// Half-life of the rate's trend, seconds.
    pub trend_half_life_seconds: f64,
    /// Half-life of the mean service time, seconds.
    pub service_half_life_seconds: f64,
    /// Time in which the backlog of queued calls should be served, seconds.
    pub drain_seconds: f64,
    /// Keep-alive of idle instances above the target number, seconds.
    pub keep_alive_seconds: f64,
}

impl Default for QueueingSettings {
    fn default() -> Self {
        Self {
            wait_share: 0.05,
            rate_half_life_seconds: 10.0,
            trend_half_life_seconds: 30.0,
            service_half_life_seconds: 60.0,
            drain_seconds: 10.0,
            keep_alive_seconds: 60.0,
        }
    }
}

/// Traffic estimates of one function.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    rate: Holt,
    service_seconds: Option<f64>,
}

/// Square-root staffing by Erlang's formula.
#[derive(Clone, Debug, Default)]
pub struct Queueing {
    settings: QueueingSettings,
    functions: PerFunction<Traffic>,
}

impl Queueing {
    /// Creates a policy without history.
    pub fn new(settings: QueueingSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn observe(&mut self, view: &FunctionView, window: Duration) {
        let settings = self.settings;
        let half = Duration::from_secs_f64;
        let traffic = self.functions.state(view.function);
        traffic.rate.push(
            f64::from(view.arrivals) / window.as_secs_f64(),
            window,
            half(settings.rate_half_life_seconds),
            half(settings.trend_half_life_seconds),
        );
        if let Some(run) = view.mean_run {
            let run = run.as_secs_f64();
            let share = weight(window, half(settings.service_half_life_seconds));
            let known = traffic.service_seconds.unwrap_or(run);
            traffic.service_seconds = Some(known + share * (run - known));
        }
    }

    /// Number of instances for one function; `None` while its service time is unknown.
    fn instances(&self, view: &FunctionView, window: Duration) -> Option<u32> {
        let settings = self.settings;
        let traffic = self.functions.known(view.function)?;
        let service = traffic.service_seconds?;
        let ahead = view.cold_start + window;
        let rate = traffic.rate.level().max(traffic.rate.forecast(ahead));
        if view.queued == 0 && rate * settings.keep_alive_seconds < 1.0 {
            return Some(0);
        }
        let backlog = f64::from(view.queued) * service / settings.drain_seconds.max(1e-3);
        let slots = servers_for(rate * service + backlog, settings.wait_share).max(1);
        Some(slots.div_ceil(view.concurrency.max(1)))
    }
}

impl Policy for Queueing {
    fn name(&self) -> &str {
        "queueing"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        if seen.window.is_zero() {
            return Err(PolicyError {
                policy: self.name().to_owned(),
                problem: "the observation has a window of 0 s; it must be longer".to_owned(),
            });
        }
        let keep_alive = Duration::from_secs_f64(self.settings.keep_alive_seconds);
        let mut targets = Vec::with_capacity(seen.functions.len());
        for view in &seen.functions {
            self.observe(view, seen.window);
            if let Some(instances) = self.instances(view, seen.window) {
                targets.push(Target {
                    instances: Setting::Set(f64::from(instances)),
                    keep_alive: Setting::Set(keep_alive),
                    ..Target::keep(view.function)
                });
            }
        }
        let share = 100.0 * self.settings.wait_share;
        Ok(Decision { targets, reason: format!("slots such that {share} % of the calls wait") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::erlang::erlang_c;
    use crate::fake_tick::{function, observation};

    /// `rate` calls per second of 300 ms over a window of 2 s.
    fn busy(rate: u32) -> FunctionView {
        FunctionView {
            arrivals: 2 * rate,
            completions: 2 * rate,
            mean_run: (rate > 0).then_some(Duration::from_millis(300)),
            ..function(0)
        }
    }

    fn target_instances(policy: &mut Queueing, view: FunctionView) -> Option<f64> {
        let decision = policy.decide(&observation(vec![view])).unwrap();
        decision.targets.first().and_then(|target| target.instances.value())
    }

    #[test]
    fn the_worked_numbers() {
        assert!((erlang_c(6, 3.0) - 0.099).abs() < 0.001, "{}", erlang_c(6, 3.0));
        assert!((erlang_c(7, 3.0) - 0.038).abs() < 0.001, "{}", erlang_c(7, 3.0));
        assert_eq!(target_instances(&mut Queueing::default(), busy(10)), Some(7.0));
        let shared = FunctionView { concurrency: 10, ..busy(10) };
        assert_eq!(target_instances(&mut Queueing::default(), shared), Some(1.0));
    }

    #[test]
    fn a_rising_rate_is_anticipated_by_one_cold_start() {
        let (mut near, mut far) = (Queueing::default(), Queueing::default());
        let slow_start = |rate| FunctionView { cold_start: Duration::from_secs(20), ..busy(rate) };
        let (mut now, mut ahead) = (None, None);
        for rate in (10..60).step_by(2) {
            now = target_instances(&mut near, busy(rate));
            ahead = target_instances(&mut far, slow_start(rate));
        }
        assert!(ahead > now, "{ahead:?} {now:?}");
    }

    #[test]
    fn queued_calls_add_to_the_load() {
        let mut policy = Queueing::default();
        let calm = target_instances(&mut policy.clone(), busy(10));
        // 100 waiting calls of 0.3 s in 10 s keep 3 more slots busy.
        let swamped = target_instances(&mut policy, FunctionView { queued: 100, ..busy(10) });
        assert_eq!((calm, swamped), (Some(7.0), Some(f64::from(servers_for(6.0, 0.05)))));
    }

    #[test]
    fn a_function_without_calls_scales_to_zero() {
        let mut policy = Queueing::default();
        let first = target_instances(&mut policy, busy(10));
        let targets: Vec<_> = (0..120).map(|_| target_instances(&mut policy, busy(0))).collect();
        assert!(targets[0] <= first && targets[0] > Some(0.0));
        assert_eq!(targets.last(), Some(&Some(0.0)));
    }

    #[test]
    fn there_is_no_target_before_a_call_has_ended() {
        let unknown = FunctionView { arrivals: 5, mean_run: None, ..function(0) };
        assert_eq!(target_instances(&mut Queueing::default(), unknown), None);
    }

    #[test]
    fn an_observation_with_an_empty_window_is_an_error() {
        let seen = Observation { window: Duration::ZERO, ..observation(vec![busy(10)]) };
        assert!(Queueing::default().decide(&seen).is_err());
    }

    #[test]
    fn extreme_observations_give_finite_targets() {
        let flood = FunctionView {
            arrivals: u32::MAX,
            queued: u32::MAX,
            concurrency: 0,
            mean_run: Some(Duration::MAX),
            ..function(0)
        };
        let instances = target_instances(&mut Queueing::default(), flood).unwrap();
        assert!(instances.is_finite() && instances > 0.0);
    }
}
