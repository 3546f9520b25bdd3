//! Generates workloads that resemble Azure's functions of 2019, with the parameters in `params/azure_like.toml`.
//!
//! For every function, a trigger, a rate, run times and memory are drawn. Timers fire on their period. All other
//! functions get a Poisson count per minute whose rate follows the hour of the day and an autocorrelated burst
//! factor. The rates of functions that are not regular timers are scaled by a common factor to reach the requested
//! calls per hour. No function may exceed a share of all calls or a number of busy-seconds per second, nor 1.5 times
//! that in a burst: otherwise one function would dominate the run, as one does in the original. Timers fire less
//! often if they would make too many of the calls.

use std::sync::LazyLock;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Seed, Trigger, Workload};

use crate::bin_rates::poisson;
use crate::binned::{BinCount, Binned, Counts, Function, MAX_FUNCTIONS, Placement};
use crate::demand_model::FunctionFacts;
use crate::error::TraceError;
use crate::options::is_false;
use crate::parameters::{demand, weighted};
use crate::quantiles::{Quantiles, normal_cdf};

/// Settings of the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureLikeSettings {
    /// Number of functions.
    pub functions: u32,
    /// Length of the workload.
    pub duration: Duration,
    /// Expected calls per hour of all functions together, over a whole day.
    pub calls_per_hour: f64,
    /// Hour of the day at which the workload starts.
    pub start_hour: f64,
    /// Where inside a minute calls arrive.
    pub placement: Placement,
    /// Without functions whose calls are taken to sleep: all of them take the same long time. The others
    /// then make all the calls.
    #[serde(skip_serializing_if = "is_false")]
    pub without_sleepers: bool,
}

impl Default for AzureLikeSettings {
    fn default() -> Self {
        Self {
            functions: 200,
            duration: Duration::from_mins(60),
            calls_per_hour: parameters().calls_per_hour,
            start_hour: 8.0,
            placement: Placement::Uniform,
            without_sleepers: false,
        }
    }
}

impl AzureLikeSettings {
    pub(crate) fn describe(&self) -> String {
        let sleepers = if self.without_sleepers { ", without functions that sleep" } else { "" };
        format!(
            "azure-like: {} functions, {}, {:.0} calls an hour{sleepers}",
            self.functions, self.duration, self.calls_per_hour
        )
    }

    fn check(&self) -> Result<(), TraceError> {
        let bad = |setting, value: String, allowed| {
            Err(TraceError::BadSetting { setting, value: value.into(), allowed })
        };
        if self.functions == 0 || u64::from(self.functions) > MAX_FUNCTIONS / 64 {
            return bad("functions", self.functions.to_string(), "1 to 1048576");
        }
        if self.duration < Duration::from_secs(60) || self.duration > Duration::from_mins(525_600) {
            return bad("duration", self.duration.to_string(), "a minute to a year");
        }
        if !(self.calls_per_hour > 0.0 && self.calls_per_hour <= 1e13) {
            return bad(
                "calls_per_hour",
                self.calls_per_hour.to_string(),
                "more than 0, at most 1e13",
            );
        }
        if !(0.0..24.0).contains(&self.start_hour) {
            return bad("start_hour", self.start_hour.to_string(), "0 to less than 24");
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    probabilities: Vec<f64>,
    calls_per_hour: f64,
    max_share: f64,
    max_busy: f64,
    burst_room: f64,
    max_timer_share: f64,
    rate_duration_correlation: f64,
    duration_spread: Vec<f64>,
    duration_tail: Vec<f64>,
    median_tail_correlation: f64,
    memory_median_mib: f64,
    memory_sigma: f64,
    memory_spread: f64,
    timer_periods: Vec<u32>,
    timer_weights: Vec<f64>,
    timer_aligned_share: f64,
    timer_repeat_share: f64,
    timer_repeats: Vec<u32>,
    burst_memory: f64,
    hourly: Vec<f64>,
    trigger: Vec<TriggerParameters>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggerParameters {
    kind: Trigger,
    weight: f64,
    log10_rate: Vec<f64>,
    ln_median_ms: Vec<f64>,
    burst: Vec<f64>,
}

fn parameters() -> &'static Parameters {
    static PARAMETERS: LazyLock<Parameters> = LazyLock::new(|| {
        toml::from_str(include_str!("../params/azure_like.toml"))
            .expect("the file is part of the program and a test reads it")
    });
    &PARAMETERS
}

impl Parameters {
    /// Value of a quantile list at the normal score `z`, interpolated linearly.
    fn at(&self, values: &[f64], z: f64) -> f64 {
        let probability = normal_cdf(z);
        let above = self.probabilities.partition_point(|&p| p < probability);
        let above = above.clamp(1, values.len() - 1);
        let (p0, p1) = (self.probabilities[above - 1], self.probabilities[above]);
        let share = (probability - p0) / (p1 - p0);
        values[above - 1] + share * (values[above] - values[above - 1])
    }
}

/// Arrival pattern of one function.
#[derive(Clone, Debug)]
enum Pattern {
    /// Every `period` minutes, `repeats` at a time, first in minute `phase`.
    Periodic { period: u32, phase: u32, repeats: u32 },
    /// At a rate per minute, with bursts: `burst` is the spread of the burst factor, `level` its current score,
    /// and `most` the highest rate in a burst.
    Random { per_minute: f64, most: f64, burst: f64, level: f64 },
}

/// A function as the generator draws it.
struct DrawnFunction {
    facts: FunctionFacts,
    pattern: Pattern,
    /// Calls per hour before scaling.
    per_hour: f64,
}

/// Every function of the workload, in order.
fn draw_functions(
    settings: &AzureLikeSettings,
    seed: Seed,
) -> impl Iterator<Item = DrawnFunction> + use<> {
    let without_sleepers = settings.without_sleepers;
    (0..u64::from(settings.functions))
        .map(move |member| draw_function(member, seed))
        .filter(move |drawn| !(without_sleepers && drawn.facts.sleeps()))
}

/// Draws what the generator knows of function `member`.
fn draw_function(member: u64, seed: Seed) -> DrawnFunction {
    let numbers = parameters();
    let mut rng = seed.stream("functions").stream("azure-like").member(member).generator();
    let trigger = weighted(&numbers.trigger, |trigger| trigger.weight, &mut rng);
    let z_rate = normal(&mut rng);
    let z_run = correlated(numbers.rate_duration_correlation, z_rate, &mut rng);
    let duration_ms = draw_run_times(numbers, trigger, z_run, &mut rng);
    let memory = numbers.memory_median_mib * (numbers.memory_sigma * normal(&mut rng)).exp();
    let memory_limits = &demand().memory;
    let facts = FunctionFacts {
        member,
        name: format!("function-{member}"),
        application: format!("application-{member}"),
        trigger: trigger.kind,
        duration_ms: Some(duration_ms),
        memory_mib: Some(Quantiles::lognormal(
            memory,
            numbers.memory_spread,
            memory_limits.low_mib,
            memory_limits.high_mib,
        )),
        reservation: None,
    };
    let per_hour = 10f64.powf(numbers.at(&trigger.log10_rate, z_rate));
    let burst = numbers.at(&trigger.burst, normal(&mut rng));
    let per_minute = per_hour / 60.0;
    let random = Pattern::Random { per_minute, most: per_minute, burst, level: 0.0 };
    let pattern = match trigger.kind {
        Trigger::Timer => draw_timer(numbers, &mut rng).unwrap_or(random),
        _ => random,
    };
    DrawnFunction { facts, pattern, per_hour }
}

fn normal(rng: &mut impl Rng) -> f64 {
    rng.sample(StandardNormal)
}

/// A normal score that is correlated with the score `z`.
fn correlated(correlation: f64, z: f64, rng: &mut impl Rng) -> f64 {
    correlation * z + (1.0 - correlation * correlation).sqrt() * normal(rng)
}

/// Run times of a function whose median has the score `z_run` among functions of its trigger.
fn draw_run_times(
    numbers: &Parameters,
    trigger: &TriggerParameters,
    z_run: f64,
    rng: &mut impl Rng,
) -> Quantiles {
    let median = numbers.at(&trigger.ln_median_ms, z_run).exp();
    let spread = numbers.at(&numbers.duration_spread, normal(rng));
    let z_tail = correlated(numbers.median_tail_correlation, z_run, rng);
    let tail = numbers.at(&numbers.duration_tail, z_tail).exp();
    // Quartiles lie 0.674 standard deviations from the median.
    let quartile = (0.674 * spread).exp();
    let points = [
        (0.0, median / quartile.powf(2.5)),
        (0.01, median / quartile.powf(2.0)),
        (0.25, median / quartile),
        (0.5, median),
        (0.75, median * quartile),
        (0.99, median * quartile * tail),
        (1.0, median * quartile * tail * 1.5),
    ];
    let limits = &demand().duration;
    Quantiles::new(points, limits.low_ms, limits.high_ms)
}

/// Draws a regular timer, or `None` for a timer without a period.
fn draw_timer(numbers: &Parameters, rng: &mut impl Rng) -> Option<Pattern> {
    let places: Vec<usize> = (0..numbers.timer_periods.len()).collect();
    let place = *weighted(&places, |&place| numbers.timer_weights[place], rng);
    let period = numbers.timer_periods[place];
    let aligned = rng.random::<f64>() < numbers.timer_aligned_share;
    let offset = rng.random::<f64>();
    let repeats = if rng.random::<f64>() < numbers.timer_repeat_share {
        *weighted(&numbers.timer_repeats, |_| 1.0, rng)
    } else {
        1
    };
    let phase = if aligned { 0 } else { (offset * f64::from(period)) as u32 };
    (period > 0).then_some(Pattern::Periodic { period, phase, repeats })
}

/// A generated function: its pattern, and its calls per hour before scaling.
struct Drawn {
    pattern: Pattern,
    per_hour: f64,
}

/// Counts per minute of generated functions.
struct Generated {
    drawn: Vec<Drawn>,
    settings: AzureLikeSettings,
}

impl Generated {
    /// Scales the random functions so that all functions together make the requested calls.
    fn scale(&mut self, mean_runs: impl Iterator<Item = f64>) {
        let numbers = parameters();
        let wanted = self.settings.calls_per_hour;
        let growth = wanted / numbers.calls_per_hour;
        let share = numbers.max_share.max(1.2 / self.drawn.len() as f64);
        let caps: Vec<f64> = mean_runs
            .map(|run| (3600.0 * numbers.max_busy * growth / run).min(share * wanted))
            .collect();
        let fixed = self.slow_timers(&caps, numbers.max_timer_share * wanted);
        let expected = |(drawn, cap): (&Drawn, &f64), scale: f64| match drawn.pattern {
            Pattern::Random { burst, .. } => {
                let rate = (drawn.per_hour * scale).min(*cap);
                capped_mean(rate, burst, *cap * numbers.burst_room)
            }
            Pattern::Periodic { .. } => 0.0,
        };
        let total = |scale: f64| -> f64 {
            self.drawn.iter().zip(&caps).map(|function| expected(function, scale)).sum()
        };
        // The total rises with the scale, so bisection finds it; if the caps prevent it, all rates end at the caps.
        let (mut low, mut high) = (-20.0f64, 40.0f64);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if fixed + total(middle.exp()) < wanted { low = middle } else { high = middle }
        }
        for (drawn, cap) in self.drawn.iter_mut().zip(&caps) {
            if let Pattern::Random { per_minute, most, .. } = &mut drawn.pattern {
                *per_minute = (drawn.per_hour * low.exp()).min(*cap) / 60.0;
                *most = *cap * numbers.burst_room / 60.0;
            }
        }
    }

    /// Lengthens the periods of timers until none is above its cap and all together make at most `most` calls per
    /// hour. Returns the calls per hour that they make.
    fn slow_timers(&mut self, caps: &[f64], most: f64) -> f64 {
        let mut total = 0.0;
        let mut timers: Vec<(&mut u32, f64)> = Vec::new();
        for (drawn, cap) in self.drawn.iter_mut().zip(caps) {
            if let Pattern::Periodic { period, repeats, .. } = &mut drawn.pattern {
                let rate = 60.0 * f64::from(*repeats) / f64::from(*period);
                let rarer = (rate / cap).ceil().max(1.0);
                total += rate / rarer;
                timers.push((period, rarer));
            }
        }
        let all = (total / most).ceil().max(1.0);
        for (period, rarer) in timers {
            *period = (f64::from(*period) * (rarer * all).min(1e6)) as u32;
        }
        total / all
    }
}

/// Mean of min(rate F, most) for a lognormal burst factor F of mean 1 and spread `burst`.
fn capped_mean(rate: f64, burst: f64, most: f64) -> f64 {
    if burst <= 0.0 || rate <= 0.0 {
        return rate.min(most);
    }
    // The score of F at which the limit is reached.
    let reached = ((most / rate).ln() + 0.5 * burst * burst) / burst;
    rate * normal_cdf(reached - burst) + most * normal_cdf(-reached)
}

impl Counts for Generated {
    fn bin(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn bins(&self) -> u32 {
        (self.settings.duration.as_nanos() / 60_000_000_000) as u32
    }

    fn fill(&mut self, index: u32, draws: &mut [Function], counts: &mut Vec<BinCount>) -> u64 {
        let numbers = parameters();
        let hour = self.settings.start_hour + f64::from(index) / 60.0;
        let load = numbers.hourly[hour as usize % numbers.hourly.len()];
        let clock = (self.settings.start_hour * 60.0) as u32 + index;
        let mut total = 0;
        // The first minute has no previous level.
        let memory = if index == 0 { 0.0 } else { numbers.burst_memory };
        for (function, (drawn, draw)) in self.drawn.iter_mut().zip(draws).enumerate() {
            let calls = match &mut drawn.pattern {
                Pattern::Periodic { period, phase, repeats } => {
                    if clock % *period == *phase {
                        u64::from(*repeats)
                    } else {
                        0
                    }
                }
                Pattern::Random { per_minute, most, burst, level } => {
                    let rng = &mut draw.arrivals;
                    let fresh: f64 = rng.sample(StandardNormal);
                    *level = memory * *level + (1.0 - memory * memory).sqrt() * fresh;
                    // Shifted down by half the variance, so that the mean factor is 1.
                    let factor = (*burst * *level - 0.5 * *burst * *burst).exp();
                    poisson((*per_minute * load * factor).min(*most), rng)
                }
            };
            if calls > 0 {
                total += calls;
                counts.push(BinCount { function: function as u32, calls });
            }
        }
        total
    }

    fn restart(&mut self, seed: Seed, draws: &[Function]) {
        self.drawn = draw_functions(&self.settings, seed)
            .map(|DrawnFunction { pattern, per_hour, .. }| Drawn { pattern, per_hour })
            .collect();
        self.scale(draws.iter().map(|function| function.model.mean_run_seconds()));
    }
}

/// A generated workload; a different seed generates different functions.
struct AzureLike {
    settings: AzureLikeSettings,
    inner: Binned<Generated>,
}

/// Opens the generator.
pub(crate) fn open_azure_like(
    settings: &AzureLikeSettings,
    seed: Seed,
) -> Result<impl Workload + use<>, TraceError> {
    settings.check()?;
    Ok(AzureLike { settings: settings.clone(), inner: generate(settings, seed) })
}

/// Calls per minute of each generated function that is not a regular timer.
///
/// Useful if only the shape of the load is needed, with functions from elsewhere.
pub fn azure_like_minutes(
    settings: &AzureLikeSettings,
    seed: Seed,
) -> Result<Vec<Vec<u64>>, TraceError> {
    settings.check()?;
    let is_random = |drawn: &DrawnFunction| matches!(drawn.pattern, Pattern::Random { .. });
    let rows = generate(settings, seed).counts_per_bin();
    let functions = draw_functions(settings, seed).zip(rows);
    Ok(functions.filter(|(drawn, _)| is_random(drawn)).map(|(_, row)| row).collect())
}

fn generate(settings: &AzureLikeSettings, seed: Seed) -> Binned<Generated> {
    let facts = draw_functions(settings, seed).map(|drawn| drawn.facts);
    let counts = Generated { drawn: Vec::new(), settings: settings.clone() };
    Binned::new(facts.collect(), counts, settings.placement, seed)
}

impl Workload for AzureLike {
    fn functions(&self) -> &[windfall_core::FunctionProfile] {
        self.inner.functions()
    }

    fn horizon(&self) -> windfall_core::Timestamp {
        self.inner.horizon()
    }

    fn next_arrival(&mut self) -> Option<windfall_core::Arrival> {
        self.inner.next_arrival()
    }

    fn next_arrivals(&mut self, most: usize, into: &mut Vec<windfall_core::Arrival>) {
        self.inner.next_arrivals(most, into);
    }

    fn restart(&mut self, seed: Seed) {
        self.inner = generate(&self.settings, seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capped_mean_agrees_with_limits_and_numerical_integration() {
        assert_eq!(capped_mean(3.0, 0.0, 5.0), 3.0);
        assert_eq!(capped_mean(7.0, 0.0, 5.0), 5.0);
        // Without a limit the factor's mean of 1 remains, and a limit far below is always reached.
        assert!((capped_mean(3.0, 1.0, 1e9) - 3.0).abs() < 1e-5);
        assert!((capped_mean(3.0, 1.0, 1e-6) - 1e-6).abs() < 1e-12);
        // Numerically: the mean of min(exp(z - 1/2), 1) over the normal distribution.
        let (mut sum, mut weights) = (0.0, 0.0);
        for i in -800..=800 {
            let z = f64::from(i) / 100.0;
            let weight = (-0.5 * z * z).exp();
            sum += weight * (z - 0.5).exp().min(1.0);
            weights += weight;
        }
        assert!((capped_mean(1.0, 1.0, 1.0) - sum / weights).abs() < 1e-4);
    }
}
