//! A generator of workloads that resemble Azure's functions of 2019, from `params/azure_like.toml`.
//!
//! Every function draws a trigger, a rate, run times and memory. Timers fire on their period; all others
//! get a Poisson count per minute whose rate follows the hour of the day and a burst factor with some
//! memory. Rates of functions that are not regular timers are scaled together until the whole makes the
//! calls per hour that were asked for, but no function may exceed a share of all calls or a number of
//! busy-seconds per second: otherwise one function would decide the run, as one does in the original.

use std::sync::LazyLock;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Seed, Trigger, Workload};

use crate::binned::{BinCount, Binned, Counts, Function, MAX_FUNCTIONS, Placement};
use crate::demand_model::FunctionFacts;
use crate::error::TraceError;
use crate::minute_counts::poisson;
use crate::parameters::{demand, weighted};
use crate::quantiles::{Quantiles, normal_cdf};

/// What is generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureLikeSettings {
    /// Number of functions.
    pub functions: u32,
    /// Length of the workload.
    pub duration: Duration,
    /// Expected calls per hour of all functions together.
    pub calls_per_hour: f64,
    /// Hour of the day at which the workload begins.
    pub start_hour: f64,
    /// Where inside a minute calls arrive.
    pub placement: Placement,
}

impl Default for AzureLikeSettings {
    fn default() -> Self {
        Self {
            functions: 200,
            duration: Duration::from_mins(60),
            calls_per_hour: parameters().calls_per_hour,
            start_hour: 8.0,
            placement: Placement::Uniform,
        }
    }
}

impl AzureLikeSettings {
    pub(crate) fn describe(&self) -> String {
        format!(
            "azure-like: {} functions, {}, {:.0} calls an hour",
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
    rate_duration_correlation: f64,
    duration_spread: Vec<f64>,
    duration_tail: Vec<f64>,
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
    /// The value of a quantile list at the normal score `z`, linear in between.
    fn at(&self, values: &[f64], z: f64) -> f64 {
        let probability = normal_cdf(z);
        let above = self.probabilities.partition_point(|&p| p < probability);
        let above = above.clamp(1, values.len() - 1);
        let (p0, p1) = (self.probabilities[above - 1], self.probabilities[above]);
        let share = (probability - p0) / (p1 - p0);
        values[above - 1] + share * (values[above] - values[above - 1])
    }
}

/// How the calls of one function come.
#[derive(Clone, Debug)]
enum Pattern {
    /// Every `period` minutes, `repeats` at a time, first in minute `phase`.
    Periodic { period: u32, phase: u32, repeats: u32 },
    /// At a rate per minute, with bursts: the burst factor's spread and its present logarithm.
    Random { per_minute: f64, burst: f64, level: f64 },
}

/// Draws what the generator knows of function `member`, and its calls per hour before scaling.
fn draw_function(member: u64, seed: Seed) -> (FunctionFacts, Pattern, f64) {
    let numbers = parameters();
    let mut rng = seed.stream("functions").stream("azure-like").member(member).generator();
    let normal = |rng: &mut rand_xoshiro::Xoshiro256PlusPlus| rng.sample::<f64, _>(StandardNormal);
    let trigger = weighted(&numbers.trigger, |trigger| trigger.weight, &mut rng);
    let (z_rate, z_own) = (normal(&mut rng), normal(&mut rng));
    let correlation = numbers.rate_duration_correlation;
    let z_run = correlation * z_rate + (1.0 - correlation * correlation).sqrt() * z_own;

    let median = numbers.at(&trigger.ln_median_ms, z_run).exp();
    let spread = numbers.at(&numbers.duration_spread, normal(&mut rng));
    let tail = numbers.at(&numbers.duration_tail, normal(&mut rng)).exp();
    let limits = &demand().duration;
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
    let memory = numbers.memory_median_mib * (numbers.memory_sigma * normal(&mut rng)).exp();
    let memory_limits = &demand().memory;
    let facts = FunctionFacts {
        member,
        name: format!("function-{member}"),
        application: format!("application-{member}"),
        trigger: trigger.kind,
        duration_ms: Some(Quantiles::new(points, limits.low_ms, limits.high_ms)),
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
    let random = Pattern::Random { per_minute: per_hour / 60.0, burst, level: 0.0 };
    let pattern = match trigger.kind {
        Trigger::Timer => draw_timer(numbers, &mut rng).unwrap_or(random),
        _ => random,
    };
    (facts, pattern, per_hour)
}

/// A regular timer, or nothing for one that has no period.
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

/// Counts per minute of generated functions.
struct Generated {
    drawn: Vec<(Pattern, f64)>,
    settings: AzureLikeSettings,
}

impl Generated {
    /// Scales the random functions so that everything together makes the calls asked for.
    fn scale(&mut self, mean_runs: impl Iterator<Item = f64>) {
        let numbers = parameters();
        let wanted = self.settings.calls_per_hour;
        let growth = wanted / numbers.calls_per_hour;
        let share = numbers.max_share.max(1.2 / self.drawn.len() as f64);
        let caps: Vec<f64> = mean_runs
            .map(|run| (3600.0 * numbers.max_busy * growth / run).min(share * wanted))
            .collect();
        let mut fixed = 0.0;
        for ((pattern, _), cap) in self.drawn.iter_mut().zip(&caps) {
            if let Pattern::Periodic { period, repeats, .. } = pattern {
                let rate = 60.0 * f64::from(*repeats) / f64::from(*period);
                // A timer that is too busy fires more rarely.
                let rarer = (rate / cap).ceil().clamp(1.0, 1e6);
                *period = (f64::from(*period) * rarer) as u32;
                fixed += rate / rarer;
            }
        }
        let total = |scale: f64| -> f64 {
            let random = self.drawn.iter().zip(&caps).map(|((pattern, rate), cap)| match pattern {
                Pattern::Random { .. } => (rate * scale).min(*cap),
                Pattern::Periodic { .. } => 0.0,
            });
            random.sum()
        };
        // The total rises with the scale, so halving finds it; a total out of reach ends at the caps.
        let (mut low, mut high) = (-20.0f64, 40.0f64);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if fixed + total(middle.exp()) < wanted { low = middle } else { high = middle }
        }
        for ((pattern, rate), cap) in self.drawn.iter_mut().zip(&caps) {
            if let Pattern::Random { per_minute, .. } = pattern {
                *per_minute = (*rate * low.exp()).min(*cap) / 60.0;
            }
        }
    }
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
        for (function, ((pattern, _), draw)) in self.drawn.iter_mut().zip(draws).enumerate() {
            let calls = match pattern {
                Pattern::Periodic { period, phase, repeats } => {
                    if clock % *period == *phase {
                        u64::from(*repeats)
                    } else {
                        0
                    }
                }
                Pattern::Random { per_minute, burst, level } => {
                    let rng = &mut draw.arrivals;
                    let memory = numbers.burst_memory;
                    let fresh: f64 = rng.sample(StandardNormal);
                    *level = memory * *level + (1.0 - memory * memory).sqrt() * fresh;
                    // Shifted down by half the variance, so that the mean factor is 1.
                    let factor = (*burst * *level - 0.5 * *burst * *burst).exp();
                    poisson(*per_minute * load * factor, rng)
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
        self.drawn = (0..u64::from(self.settings.functions))
            .map(|member| {
                let (_, pattern, rate) = draw_function(member, seed);
                (pattern, rate)
            })
            .collect();
        self.scale(draws.iter().map(|function| function.model.mean_run_seconds()));
    }
}

/// A generated workload; another seed generates other functions.
struct AzureLike {
    settings: AzureLikeSettings,
    inner: Binned<Generated>,
}

/// Opens the generator.
pub(crate) fn open_azure_like(
    settings: &AzureLikeSettings,
    seed: Seed,
) -> Result<impl Workload + Send + use<>, TraceError> {
    settings.check()?;
    Ok(AzureLike { settings: settings.clone(), inner: generate(settings, seed) })
}

fn generate(settings: &AzureLikeSettings, seed: Seed) -> Binned<Generated> {
    let facts = (0..u64::from(settings.functions)).map(|member| draw_function(member, seed).0);
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

    fn restart(&mut self, seed: Seed) {
        self.inner = generate(&self.settings, seed);
    }
}
