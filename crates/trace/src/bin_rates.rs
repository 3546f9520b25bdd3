//! Draws calls from rates per bin of several minutes, for tables that record how many calls came but not when.

use rand_distr::{Distribution, Poisson};
use windfall_core::{Duration, Seed};

use crate::binned::{BinCount, Counts, Function};
use crate::gusts::SLOT_NS;
use crate::minute_counts::{CallLimit, Caps, limits_of};
use crate::parameters::Span;

const MINUTE_NS: u64 = 60_000_000_000;

/// How calls are drawn from the rates of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawing {
    /// Whether rates vary and spike from second to second; otherwise every minute has the rate of its bin.
    pub(crate) is_gusty: bool,
    /// Range of average concurrent calls per function, drawn for each, regardless of the table's total.
    pub(crate) calls_at_once: Option<Span>,
    pub(crate) caps: Option<Caps>,
}

/// One function's rates.
pub(crate) struct FunctionRates {
    /// Index in the whole table.
    pub(crate) member: u64,
    /// Expected calls per minute by bin.
    pub(crate) per_minute: Vec<f32>,
}

/// Rates per bin of several minutes: every minute, or every second if rates vary by the second, gets a Poisson count.
pub(crate) struct BinRates {
    functions: Vec<FunctionRates>,
    /// Expected calls per minute of all functions, filtered ones included, by bin.
    totals: Vec<f64>,
    /// Minutes per bin.
    minutes: u32,
    /// First minute, and number of minutes.
    window: (u32, u32),
    drawing: Drawing,
    /// Mean calls per minute of each function inside the window.
    rates: Vec<f64>,
    limits: Vec<CallLimit>,
}

impl BinRates {
    /// Rates of functions per bin of `minutes` minutes, inside a window of minutes.
    pub(crate) fn new(
        functions: Vec<FunctionRates>,
        totals: Vec<f64>,
        minutes: u32,
        window: (u32, u32),
        drawing: Drawing,
    ) -> Self {
        let bin = |minute: u32| (minute / minutes) as usize;
        let mean = |function: &FunctionRates| {
            let inside = (window.0..window.0 + window.1)
                .map(|minute| f64::from(function.per_minute[bin(minute)]));
            inside.sum::<f64>() / f64::from(window.1.max(1))
        };
        let rates = functions.iter().map(mean).collect();
        Self { functions, totals, minutes, window, drawing, rates, limits: Vec::new() }
    }

    /// Counts per minute.
    fn per_minute(&self) -> u32 {
        if self.drawing.is_gusty { (MINUTE_NS / SLOT_NS) as u32 } else { 1 }
    }

    /// Factors on the rates of the functions so that each has its drawn number of concurrent calls.
    fn scales(&self, range: Span, seed: Seed, draws: &[Function]) -> Vec<f64> {
        let scale = |((function, rate), draw): ((&FunctionRates, &f64), &Function)| {
            let mut rng = seed.stream("calls-at-once").member(function.member).generator();
            let busy = rate / 60.0 * draw.model.mean_run_seconds();
            range.draw_log_uniform(&mut rng) / busy.max(f64::MIN_POSITIVE)
        };
        self.functions.iter().zip(&self.rates).zip(draws).map(scale).collect()
    }
}

impl Counts for BinRates {
    fn bin(&self) -> Duration {
        Duration::from_nanos(MINUTE_NS / u64::from(self.per_minute()))
    }

    fn bins(&self) -> u32 {
        self.window.1 * self.per_minute()
    }

    fn fill(&mut self, index: u32, draws: &mut [Function], counts: &mut Vec<BinCount>) -> u64 {
        let per_minute = self.per_minute();
        let bin = ((self.window.0 + index / per_minute) / self.minutes) as usize;
        for (place, (function, draw)) in self.functions.iter().zip(draws).enumerate() {
            let CallLimit { share, most_in_a_minute: most } =
                self.limits.get(place).copied().unwrap_or(CallLimit::NONE);
            let mut rate = (f64::from(function.per_minute[bin]) * share).min(most);
            if self.drawing.is_gusty {
                rate *=
                    f64::from(draw.gusts.next_factor(&mut draw.arrivals)) / f64::from(per_minute);
            }
            let calls = poisson(rate, &mut draw.arrivals);
            if calls > 0 {
                counts.push(BinCount { function: place as u32, calls });
            }
        }
        (self.totals[bin] / f64::from(per_minute)) as u64
    }

    fn restart(&mut self, seed: Seed, draws: &[Function]) {
        self.limits = match self.drawing.calls_at_once {
            Some(range) => {
                let scales = self.scales(range, seed, draws).into_iter();
                scales.map(|share| CallLimit { share, ..CallLimit::NONE }).collect()
            }
            None => limits_of(self.drawing.caps, &self.rates, draws),
        };
    }
}

/// Draws a Poisson count; 0 for a mean that is not positive.
pub(crate) fn poisson(mean: f64, rng: &mut rand_xoshiro::Xoshiro256PlusPlus) -> u64 {
    Poisson::new(mean).map_or(0, |poisson: Poisson<f64>| poisson.sample(rng) as u64)
}
