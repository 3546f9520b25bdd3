//! The hybrid histogram of Shahrad et al., "Serverless in the Wild" (ATC 2020): unload after a call
//! and load again before the next one is due, based on the histogram of idle times.
//!
//! ```text
//!   idle times in bins of a minute up to R minutes; longer ones are out of bounds
//!   representative     pre-warm after the 5th percentile, stay until the 99th; 10 % margins on both
//!   bins too even      (CV of their counts at most 2): not representative, stay R minutes, never unload
//!   mostly out of bounds   the next idle time is forecast; pre-warm 15 % before it, stay until 15 % after
//! ```
//!
//! A timer every 30 minutes with R = 60: all idle times fall into bin 30, the CV is 7.7. Pre-warm after
//! 0.9 x 30 = 27 minutes and stay until 1.1 x 31 = 34.1: no cold start, and the instance is warm for 3 of
//! 30 minutes, where a keep-alive without cold starts would hold it for all 30.
//!
//! The paper decides per application, with one container each. This policy decides per function: the
//! histogram controls the first instance, and further ones, which the paper does not have, stay for a fixed
//! time after their last use. The paper forecasts out-of-bounds idle times with an ARIMA model; this policy
//! uses their running mean.

use serde::{Deserialize, Serialize};
use windfall_core::statistics::coefficient_of_variation;
use windfall_core::{
    Decision, Duration, FunctionView, Needs, Observation, Policy, PolicyError, Setting, Target,
    TickRecord, Timestamp,
};

use crate::level_track::LevelTrack;
use crate::per_function::PerFunction;

/// Settings of [`HybridHistogram`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HybridHistogramSettings {
    /// Range of the histogram, in bins of one minute.
    pub range_minutes: u32,
    /// Keep-alive of the second and further instances after their last use, seconds.
    pub further_keep_alive_seconds: f64,
    /// Percentile of idle times after which the first instance is loaded again, from 0 to 1.
    pub head: f64,
    /// Percentile of idle times until which the first instance stays, from 0 to 1.
    pub tail: f64,
    /// Share by which both percentiles are widened.
    pub margin: f64,
    /// The histogram is used if the CV of its counts is above this.
    pub least_cv: f64,
    /// Share of out-of-bounds idle times above which the next one is forecast.
    pub most_out_of_bounds: f64,
    /// Share by which a forecast is widened on both sides.
    pub forecast_margin: f64,
}

impl Default for HybridHistogramSettings {
    /// The paper's values: four hours, 5th to 99th percentile, 10 %, CV 2, 15 %.
    fn default() -> Self {
        Self {
            range_minutes: 240,
            further_keep_alive_seconds: 600.0,
            head: 0.05,
            tail: 0.99,
            margin: 0.1,
            least_cv: 2.0,
            most_out_of_bounds: 0.5,
            forecast_margin: 0.15,
        }
    }
}

/// Interval after its last use in which the first instance should be loaded, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stay {
    from: f64,
    until: f64,
}

/// Idle times of one function.
#[derive(Clone, Debug, Default)]
struct IdleTimes {
    track: LevelTrack,
    minutes: Vec<u32>,
    seen: u32,
    out_of_bounds: u32,
    /// Mean of idle times out of bounds, seconds.
    mean_beyond: f64,
    stay: Option<Stay>,
    /// Instances of the last accepted plan.
    accepted: Option<u32>,
}

impl IdleTimes {
    fn learn(&mut self, seconds: f64, settings: &HybridHistogramSettings) {
        let range = settings.range_minutes.max(1) as usize;
        self.minutes.resize(range, 0);
        self.seen += 1;
        match self.minutes.get_mut((seconds / 60.0) as usize) {
            Some(count) => *count += 1,
            None => {
                self.out_of_bounds += 1;
                let share = 1.0 / f64::from(self.out_of_bounds);
                self.mean_beyond += share * (seconds - self.mean_beyond);
            }
        }
        self.stay = None;
    }

    fn stay(&mut self, settings: &HybridHistogramSettings) -> Stay {
        if let Some(stay) = self.stay {
            return stay;
        }
        let stay = self.compute_stay(settings);
        self.stay = Some(stay);
        stay
    }

    fn compute_stay(&self, settings: &HybridHistogramSettings) -> Stay {
        let range = f64::from(settings.range_minutes.max(1)) * 60.0;
        let beyond = f64::from(self.out_of_bounds);
        if self.seen > 0 && beyond > settings.most_out_of_bounds * f64::from(self.seen) {
            let margin = settings.forecast_margin;
            return Stay {
                from: (1.0 - margin) * self.mean_beyond,
                until: (1.0 + margin) * self.mean_beyond,
            };
        }
        if self.cv() <= settings.least_cv {
            return Stay { from: 0.0, until: range };
        }
        let inside = f64::from(self.seen - self.out_of_bounds);
        let bin_at = |share: f64| {
            let mut below = 0.0;
            let reaches = |count: &u32| {
                below += f64::from(*count);
                below >= share * inside
            };
            self.minutes.iter().position(reaches).unwrap_or(self.minutes.len() - 1) as f64
        };
        let (head, tail) = (bin_at(settings.head) * 60.0, (bin_at(settings.tail) + 1.0) * 60.0);
        Stay { from: (1.0 - settings.margin) * head, until: (1.0 + settings.margin) * tail }
    }

    /// Coefficient of variation of the bin counts: high if few bins hold most of the idle times.
    fn cv(&self) -> f64 {
        let counts = self.minutes.iter().map(|count| f64::from(*count));
        coefficient_of_variation(counts).unwrap_or(0.0)
    }

    /// Number of instances to have until the next tick.
    fn instances(
        &mut self,
        view: &FunctionView,
        (now, window): (Timestamp, Duration),
        settings: &HybridHistogramSettings,
    ) -> u32 {
        let Some(first) = self.track.levels.first().copied() else { return 0 };
        let lead = view.cold_start.as_secs_f64() + window.as_secs_f64();
        let further = settings.further_keep_alive_seconds;
        let others = &self.track.levels[1..];
        let kept =
            others.iter().filter(|level| level.is_needed || level.idle(now) < further).count();
        let idle = first.idle(now);
        let stay = self.stay(settings);
        let keeps_first = first.is_needed || (idle + lead >= stay.from && idle < stay.until);
        kept as u32 + u32::from(keeps_first)
    }
}

/// Pre-warming and keep-alive by the histogram of idle times.
#[derive(Clone, Debug, Default)]
pub struct HybridHistogram {
    settings: HybridHistogramSettings,
    functions: PerFunction<IdleTimes>,
}

impl HybridHistogram {
    /// Creates a policy without history.
    pub fn new(settings: HybridHistogramSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn target(&mut self, view: &FunctionView, seen: &Observation) -> Option<Target> {
        let settings = self.settings;
        let function = self.functions.state(view.function);
        let mut released = function.track.levels.first().map(|level| level.released_at);
        let mut idle_times = Vec::new();
        let mut calls_before = function.track.needed();
        // The paper's idle time runs from the end of the last call to the start of the next.
        for step in &view.presence {
            if calls_before == 0 && step.calls > 0 {
                idle_times.extend(released.map(|at| step.at.since(at).as_secs_f64()));
            }
            if step.calls == 0 {
                released = Some(step.at);
            }
            calls_before = step.calls as usize;
        }
        function.track.follow(view, seen.now, |_| {});
        idle_times.into_iter().for_each(|seconds| function.learn(seconds, &settings));
        let count = function.instances(view, (seen.now, seen.window), &settings);
        let have = (view.ready + view.starting).get();
        if function.accepted == Some(count) && have >= count {
            return None;
        }
        let Stay { from, until } = function.stay(&settings);
        Some(Target {
            instances: Setting::Set(f64::from(count)),
            keep_alive: Setting::Set(seen.window),
            why: format!("there from {from:.0} to {until:.0} s after the last call"),
            ..Target::keep(view.function)
        })
    }
}

impl Policy for HybridHistogram {
    fn name(&self) -> &str {
        "hybrid-histogram"
    }

    fn needs(&self) -> Needs {
        Needs { presence: true }
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let mut targets = Vec::new();
        for view in &seen.functions {
            targets.extend(self.target(view, seen));
        }
        Ok(Decision { targets, reason: "idle times of each function, in minutes".to_owned() })
    }

    fn feedback(&mut self, tick: &TickRecord) {
        for settled in tick.observation.settled.iter().filter(|one| one.has_failed()) {
            self.functions.state(settled.function).accepted = None;
        }
        for target in tick.accepted() {
            if let Setting::Set(count) = target.instances {
                self.functions.state(target.function).accepted = Some(count.get());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_every(minutes: &[f64]) -> IdleTimes {
        let mut times = IdleTimes::default();
        let settings = settings();
        minutes.iter().for_each(|minutes| times.learn(60.0 * minutes, &settings));
        times
    }

    fn settings() -> HybridHistogramSettings {
        HybridHistogramSettings { range_minutes: 60, ..HybridHistogramSettings::default() }
    }

    #[test]
    fn the_worked_numbers_of_a_timer() {
        let mut timer = idle_every(&[30.2; 20]);
        assert!((timer.cv() - 59f64.sqrt()).abs() < 1e-9, "{}", timer.cv());
        let Stay { from, until } = timer.stay(&settings());
        assert!((from / 60.0 - 27.0).abs() < 1e-9 && (until / 60.0 - 34.1).abs() < 1e-9);
    }

    #[test]
    fn even_bins_and_no_bins_mean_a_plain_keep_alive() {
        let even: Vec<f64> = (0..60).map(|minute| f64::from(minute) + 0.5).collect();
        let plain = Stay { from: 0.0, until: 3600.0 };
        assert_eq!(idle_every(&even).stay(&settings()), plain);
        assert_eq!(idle_every(&[]).stay(&settings()), plain);
    }

    #[test]
    fn idle_times_out_of_bounds_are_forecast() {
        let Stay { from, until } = idle_every(&[100.0, 100.0, 100.0]).stay(&settings());
        assert!((from / 60.0 - 85.0).abs() < 1e-9 && (until / 60.0 - 115.0).abs() < 1e-9);
    }

    #[test]
    fn short_idle_times_never_unload() {
        assert_eq!(idle_every(&[0.2; 50]).stay(&settings()), Stay { from: 0.0, until: 66.0 });
    }
}
