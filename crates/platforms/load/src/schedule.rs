//! When calls are due: drawn from a distribution or taken from a trace, always the same for the same seed.

use rand::Rng;
use rand_distr::{Distribution, Exp1};
use windfall_core::{Duration, Seed, Timestamp, Workload};

use crate::due::{Due, Placeholders};
use crate::error::LoadError;

/// Calls in the order in which they are due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    calls: Vec<Due>,
    length: Duration,
}

/// How calls are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Equal gaps.
    Constant,
    /// Independent calls: exponential gaps.
    #[default]
    Poisson,
    /// Bursts of 1 s on average at five times the mean rate; 10 % of the time, half of the calls.
    Bursty,
}

/// Results of more calls than this would fill the memory: 1 GB at 100 bytes a call.
const MOST_CALLS: usize = 10_000_000;
const LONGEST: Duration = Duration::from_secs(86_400);

/// Rate inside a burst over the mean rate.
const BURST_FACTOR: f64 = 5.0;
/// Share of the time that bursts take.
const BURST_SHARE: f64 = 0.1;
/// Mean length of a burst, seconds.
const BURST_SECONDS: f64 = 1.0;

impl Schedule {
    /// `rate` calls per second on average for `length`, at `targets` targets in turn.
    pub fn generate(
        shape: Shape,
        rate: f64,
        length: Duration,
        targets: usize,
        seed: Seed,
    ) -> Result<Self, LoadError> {
        check(rate, length, targets)?;
        if rate * length.as_secs_f64() > MOST_CALLS as f64 {
            return Err(LoadError::TooManyCalls { most: MOST_CALLS });
        }
        let mut generator = seed.stream("load").generator();
        let times = match shape {
            Shape::Constant => constant(rate, length),
            Shape::Poisson => poisson(rate, length, &mut generator),
            Shape::Bursty => bursty(rate, length, &mut generator),
        };
        let calls = times.into_iter().enumerate().map(|(number, at)| Due {
            at,
            target: (number % targets) as u32,
            placeholders: Placeholders { number: number as u64, ..Placeholders::default() },
        });
        Self::new(calls.collect(), length)
    }

    /// Calls that are given; they are sorted by the time they are due.
    pub fn new(mut calls: Vec<Due>, length: Duration) -> Result<Self, LoadError> {
        if calls.is_empty() {
            return Err(LoadError::NoCalls);
        }
        if calls.len() > MOST_CALLS {
            return Err(LoadError::TooManyCalls { most: MOST_CALLS });
        }
        calls.sort_by_key(|call| call.at);
        Ok(Self { calls, length })
    }

    /// The arrivals of a trace, `speed` times as fast, for at most `length` of the schedule's own time.
    ///
    /// A function calls the target with its own name; functions without one share the targets in turn.
    pub fn from_trace(
        workload: &mut dyn Workload,
        targets: &[&str],
        speed: f64,
        length: Option<Duration>,
    ) -> Result<Self, LoadError> {
        if !(1e-3..=1e6).contains(&speed) {
            let allowed = "0.001 to 1000000";
            return Err(LoadError::OutOfRange { name: "speed", value: speed, allowed });
        }
        if targets.is_empty() {
            return Err(LoadError::NoTarget);
        }
        let functions = workload.functions();
        let reservations: Vec<_> = functions.iter().map(|function| function.reservation).collect();
        let target_of: Vec<u32> = functions
            .iter()
            .enumerate()
            .map(|(id, function)| {
                let named = targets.iter().position(|target| *target == function.name);
                named.unwrap_or(id % targets.len()) as u32
            })
            .collect();
        let whole = workload.horizon().since(Timestamp::ZERO).scaled(1.0 / speed);
        let length = length.map_or(whole, |length| length.min(whole)).min(LONGEST);
        let mut calls = Vec::new();
        while let Some(arrival) = workload.next_arrival() {
            let at = arrival.at.since(Timestamp::ZERO).scaled(1.0 / speed);
            if at > length {
                break;
            }
            if calls.len() == MOST_CALLS {
                return Err(LoadError::TooManyCalls { most: MOST_CALLS });
            }
            let function = arrival.function.index();
            let run = arrival.demand.run_time(reservations[function].cpu);
            let placeholders = Placeholders {
                number: calls.len() as u64,
                run_ms: run.as_nanos() / 1_000_000,
                memory_mib: arrival.demand.memory_peak.get(),
                input: arrival.demand.input.unwrap_or(0.0),
            };
            calls.push(Due { at, target: target_of[function], placeholders });
        }
        Self::new(calls, length)
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[Due] {
        &self.calls
    }

    /// How long the schedule lasts.
    pub fn length(&self) -> Duration {
        self.length
    }
}

fn check(rate: f64, length: Duration, targets: usize) -> Result<(), LoadError> {
    if !(0.001..=1e6).contains(&rate) {
        let allowed = "0.001 to 1000000 calls per second";
        return Err(LoadError::OutOfRange { name: "rate", value: rate, allowed });
    }
    if length == Duration::ZERO || length > LONGEST {
        let value = length.as_secs_f64();
        let allowed = "more than 0 up to 86400 seconds";
        return Err(LoadError::OutOfRange { name: "duration", value, allowed });
    }
    if targets == 0 { Err(LoadError::NoTarget) } else { Ok(()) }
}

/// 4 calls a second: at 0, 0.25, 0.5 and 0.75 s.
fn constant(rate: f64, length: Duration) -> Vec<Duration> {
    let count = (rate * length.as_secs_f64()).round() as usize;
    (0..count.max(1)).map(|number| Duration::from_secs_f64(number as f64 / rate)).collect()
}

fn poisson(rate: f64, length: Duration, generator: &mut impl Rng) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut at = 0.0;
    loop {
        let gap: f64 = Exp1.sample(generator);
        at += gap / rate;
        if at >= length.as_secs_f64() || times.len() > MOST_CALLS {
            return times;
        }
        times.push(Duration::from_secs_f64(at));
    }
}

/// A Poisson process whose rate changes between two levels at exponential times.
///
/// With a mean of 100 a second: 500 during bursts, 55.6 between them.
fn bursty(rate: f64, length: Duration, generator: &mut impl Rng) -> Vec<Duration> {
    let end = length.as_secs_f64();
    let quiet_rate = rate * (1.0 - BURST_FACTOR * BURST_SHARE) / (1.0 - BURST_SHARE);
    let quiet_seconds = BURST_SECONDS * (1.0 - BURST_SHARE) / BURST_SHARE;
    let mut exponential = || -> f64 { Exp1.sample(generator) };
    let mut times = Vec::new();
    let (mut at, mut is_burst) = (0.0, false);
    let mut change = exponential() * quiet_seconds;
    while at < end && times.len() <= MOST_CALLS {
        let next = at + exponential() / if is_burst { rate * BURST_FACTOR } else { quiet_rate };
        // Nothing is lost by drawing anew at a change: exponential gaps have no memory.
        if next >= change {
            at = change;
            is_burst = !is_burst;
            change += exponential() * if is_burst { BURST_SECONDS } else { quiet_seconds };
            continue;
        }
        at = next;
        if at < end {
            times.push(Duration::from_secs_f64(at));
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_trace::{AzureLikeSettings, Source};

    fn generate(shape: Shape, rate: f64, seconds: u64, seed: u64) -> Vec<f64> {
        let length = Duration::from_secs(seconds);
        let schedule = Schedule::generate(shape, rate, length, 3, Seed::new(seed)).unwrap();
        schedule.calls().iter().map(|call| call.at.as_secs_f64()).collect()
    }

    /// Variance of the counts per second over their mean: 1 for independent calls.
    fn dispersion(times: &[f64], seconds: usize) -> f64 {
        let mut counts = vec![0.0; seconds];
        times.iter().for_each(|at| counts[*at as usize] += 1.0);
        let mean = times.len() as f64 / seconds as f64;
        counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>()
            / seconds as f64
            / mean
    }

    #[test]
    fn constant_calls_have_equal_gaps() {
        assert_eq!(generate(Shape::Constant, 4.0, 1, 1), [0.0, 0.25, 0.5, 0.75]);
        assert_eq!(generate(Shape::Constant, 0.5, 1, 1), [0.0]);
    }

    #[test]
    fn poisson_calls_have_the_rate_and_the_variance_of_their_name() {
        let times = generate(Shape::Poisson, 100.0, 1000, 1);
        // 100,000 calls: three standard deviations are 950.
        assert!((99_050..=100_950).contains(&times.len()), "{}", times.len());
        let dispersion = dispersion(&times, 1000);
        assert!((0.85..=1.15).contains(&dispersion), "{dispersion}");
    }

    #[test]
    fn bursty_calls_keep_the_mean_and_come_in_bursts() {
        let times = generate(Shape::Bursty, 100.0, 5000, 1);
        let rate = times.len() as f64 / 5000.0;
        assert!((90.0..=110.0).contains(&rate), "{rate}");
        assert!(dispersion(&times, 5000) > 20.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_calls_and_another_one_others() {
        for shape in [Shape::Poisson, Shape::Bursty] {
            assert_eq!(generate(shape, 50.0, 10, 7), generate(shape, 50.0, 10, 7));
            assert_ne!(generate(shape, 50.0, 10, 7), generate(shape, 50.0, 10, 8));
        }
    }

    #[test]
    fn targets_take_turns() {
        let schedule =
            Schedule::generate(Shape::Constant, 5.0, Duration::from_secs(1), 2, Seed::new(1))
                .unwrap();
        let targets: Vec<u32> = schedule.calls().iter().map(|call| call.target).collect();
        assert_eq!(targets, [0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_trace_is_replayed_faster_and_by_name() {
        let settings = AzureLikeSettings {
            functions: 5,
            calls_per_hour: 600.0,
            duration: Duration::from_mins(10),
            ..AzureLikeSettings::default()
        };
        let mut workload = Source::AzureLike(settings).open(Seed::new(1)).unwrap();
        let name = workload.functions()[3].name.clone();
        let targets = ["other", name.as_str()];
        let schedule = Schedule::from_trace(workload.as_mut(), &targets, 60.0, None).unwrap();
        assert!(schedule.length() <= Duration::from_secs(10), "{:?}", schedule.length());
        workload.restart(Seed::new(1));
        let first = workload.next_arrival().unwrap();
        let call = schedule.calls()[0];
        assert_eq!(call.at, first.at.since(Timestamp::ZERO).scaled(1.0 / 60.0));
        let expected = if first.function.index() == 3 { 1 } else { first.function.0 % 2 };
        assert_eq!(call.target, expected);
        assert_eq!(call.placeholders.memory_mib, first.demand.memory_peak.get());
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let wrong = |rate, seconds, targets| {
            let length = Duration::from_secs(seconds);
            Schedule::generate(Shape::Poisson, rate, length, targets, Seed::new(1))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(wrong(0.0, 1, 1), "rate is 0, allowed is 0.001 to 1000000 calls per second");
        assert!(wrong(f64::NAN, 1, 1).starts_with("rate is NaN"));
        assert_eq!(wrong(1.0, 0, 1), "duration is 0, allowed is more than 0 up to 86400 seconds");
        assert_eq!(wrong(1.0, 1, 0), "there is no target");
        assert!(wrong(1e6, 86_400, 1).starts_with("the schedule has more than 10000000 calls"));
    }
}
