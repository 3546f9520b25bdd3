//! A load of its own: real HTTP calls that follow a generated hour, sent when they are due whatever became of those
//! before.
//!
//! The hour gives the times: 25 generated functions call one deployed function each, so that their popularity evens out.
//! From a dense hour as many calls are left out as it takes to reserve a given share of the machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rand::RngExt;
use serde::Serialize;
use windfall_core::{Duration, Seed, Timestamp};
use windfall_load::{Credentials, Due, Generator, LoadError, Placeholders, Schedule, Target};
use windfall_trace::{AzureLikeSettings, Source, TraceError};

use super::samples::Sample;

/// Generated functions behind each deployed one.
const BEHIND_EACH: u32 = 25;
/// Calls an hour before any are left out: 60 a second.
const DENSE: f64 = 216_000.0;
/// The most that is sent a second, however many cores there are.
const MOST_PER_SECOND: f64 = 40.0;
/// Spread of the work of calls: the standard deviation of its logarithm, and its bounds.
const SPREAD: f64 = 0.5;
const LEAST_WORK: f64 = 0.3;
const MOST_WORK: f64 = 3.0;

/// One function to call.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// The body of a call; `{input}` is replaced by its input.
    pub parameters: String,
    /// The sample it is, if it is one: its input varies.
    pub sample: Option<Sample>,
}

impl Called {
    /// A sample function.
    pub fn sample(sample: &Sample) -> Self {
        let parameters = match sample.builtin {
            "autoscale" => r#"{"sleep": {input}, "prime": 1000}"#.to_owned(),
            _ => format!("{{\"{}\": {{input}}}}", sample.input.0),
        };
        Self { name: sample.name.to_owned(), parameters, sample: Some(*sample) }
    }
}

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// So many calls an hour.
    PerHour(f64),
    /// As many as reserve this many cores on average.
    Reserving(f64),
}

impl Amount {
    /// Calls a second.
    fn per_second(self, called: &[Called]) -> f64 {
        match self {
            Self::PerHour(calls) => calls / 3600.0,
            Self::Reserving(cores) => {
                // A function of the user's own: what it takes is unknown, so it is called once a second.
                let each = |one: &Called| one.sample.map_or(1.0, |it| it.reserved_core_seconds());
                let mean = called.iter().map(each).sum::<f64>() / called.len().max(1) as f64;
                // The work of calls is lognormal with median 1 and mean 1.13.
                (cores / (mean * 1.13).max(1e-4)).min(MOST_PER_SECOND)
            }
        }
    }
}

/// What was sent and how it was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Calls sent.
    pub sent: u64,
    /// Of these, without an answer that says success.
    pub failed: u64,
}

/// Why no load is sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Fatal: the hour.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Fatal: the targets.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Fatal: no thread.
    #[error("a thread for the load: {0}")]
    Thread(#[from] std::io::Error),
}

/// A load that is being sent.
pub struct SampleLoad {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Sent>>,
    per_second: f64,
}

impl SampleLoad {
    /// Begins to call `called` on the platform at `address`; hour follows hour until it is stopped.
    pub fn start(
        address: SocketAddr,
        key: &str,
        called: Vec<Called>,
        amount: Amount,
        seed: u64,
    ) -> Result<Self, StartError> {
        let credentials = Credentials::new(&format!("http://{address}"), key)?;
        let target = |one: &Called| Target::action(&one.name, &credentials, &one.parameters);
        let targets = called.iter().map(target).collect::<Result<Vec<_>, _>>()?;
        let per_second = amount.per_second(&called);
        // The first hour is drawn here, so that what is wrong with it is said before anything starts.
        let mut hour = Some(schedule(&called, per_second, Seed::new(seed))?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || {
            let mut total = Sent::default();
            let generator = Generator::default();
            let mut round = 0;
            while let Some(calls) = hour.take().filter(|_| !stopping.load(Ordering::Relaxed)) {
                let Ok(measured) = windfall_load::run(&calls, &targets, &generator, &stopping)
                else {
                    break;
                };
                total.sent += measured.samples.len() as u64;
                let failed = measured.samples.iter().filter(|sample| !sample.is_success());
                total.failed += failed.count() as u64;
                round += 1;
                hour = schedule(&called, per_second, Seed::new(seed).member(round)).ok();
            }
            total
        })?;
        Ok(Self { stop, thread: Some(thread), per_second })
    }

    /// Calls a second on average.
    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Sends nothing more and waits for the answers that are still due.
    pub fn stop(&mut self) -> Sent {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for SampleLoad {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One hour of calls, `per_second` a second on average.
fn schedule(called: &[Called], per_second: f64, seed: Seed) -> Result<Schedule, StartError> {
    let functions = (called.len() as u32).max(1) * BEHIND_EACH;
    let dense = DENSE.max(per_second * 3600.0 * 1.5);
    let settings =
        AzureLikeSettings { functions, calls_per_hour: dense, ..AzureLikeSettings::default() };
    let mut workload = Source::AzureLike(settings).open(seed)?;
    let mut times = Vec::new();
    while let Some(arrival) = workload.next_arrival() {
        times.push((arrival.at.since(Timestamp::ZERO), arrival.function.index() % called.len()));
    }
    let keep = per_second * 3600.0 / (times.len() as f64).max(1.0);
    let mut generator = seed.stream("thinning").generator();
    let calls = times.into_iter().filter_map(|(at, target)| {
        let (draw, work): (f64, f64) = (generator.random(), work_of(&mut generator));
        let input = called[target].sample.map_or(0, |sample| sample.input_for(work));
        let placeholders = Placeholders { input: input as f32, ..Placeholders::default() };
        (draw < keep).then_some(Due { at, target: target as u32, placeholders })
    });
    Ok(Schedule::new(calls.collect(), Duration::from_mins(60))?)
}

/// Lognormal with median 1 within its bounds: the sum of twelve uniform draws is close to normal.
fn work_of(generator: &mut impl RngExt) -> f64 {
    let normal: f64 = (0..12).map(|_| generator.random::<f64>()).sum::<f64>() - 6.0;
    (SPREAD * normal).exp().clamp(LEAST_WORK, MOST_WORK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::samples::SAMPLES;

    fn samples() -> Vec<Called> {
        SAMPLES.iter().map(Called::sample).collect()
    }

    #[test]
    fn an_hour_has_the_calls_it_should_and_every_function_has_some() {
        let called = samples();
        let calls = schedule(&called, 10.0, Seed::new(1)).expect("an hour");
        let count = calls.calls().len();
        assert!((34_000..=38_000).contains(&count), "{count}");
        for target in 0..called.len() as u32 {
            let own = calls.calls().iter().filter(|call| call.target == target).count();
            assert!(own > 60, "{}: {own}", called[target as usize].name);
        }
    }

    #[test]
    fn the_load_is_sized_by_what_calls_reserve() {
        let two_cores = Amount::Reserving(1.2).per_second(&samples());
        assert!((5.0..=40.0).contains(&two_cores), "{two_cores}");
        assert_eq!(Amount::Reserving(1000.0).per_second(&samples()), MOST_PER_SECOND);
        assert_eq!(Amount::PerHour(7200.0).per_second(&samples()), 2.0);
    }

    #[test]
    fn the_body_of_a_sample_names_its_input() {
        let bodies: Vec<String> = samples().into_iter().map(|one| one.parameters).collect();
        assert!(bodies.contains(&r#"{"mails": {input}}"#.to_owned()), "{bodies:?}");
    }
}
