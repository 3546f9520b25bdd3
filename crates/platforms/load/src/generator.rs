//! Sends every call when it is due, whatever became of those before.
//!
//! One thread does nothing but sleep until the next call is due and hand it to the runtime: tokio's own timer has a
//! resolution of 1 ms, a sleeping thread is woken within about 0.1 ms. Connections are kept and reused; a call that
//! finds none free opens another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{io, thread};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc};
use windfall_core::Duration;

use crate::due::Due;
use crate::error::LoadError;
use crate::measured::{CallResult, Measured, Sample};
use crate::schedule::Schedule;
use crate::target::Target;

/// How load is sent.
#[derive(Clone, Debug)]
pub struct Generator {
    /// A call is given up after this time, counted from its sending.
    pub timeout: Duration,
    /// Calls that may wait for their answers at the same time; one more is not sent but counted as failed.
    pub most_in_flight: usize,
    /// Threads that send and receive, besides the one that waits for due times.
    pub threads: usize,
    /// Answers may be as long as this, in bytes.
    pub largest_answer: usize,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            most_in_flight: 4096,
            threads: 1,
            largest_answer: 16 << 20,
        }
    }
}

/// What every call needs.
struct Shared {
    client: Client<HttpConnector, Full<Bytes>>,
    targets: Vec<Target>,
    settings: Generator,
    began: Instant,
    permits: Arc<Semaphore>,
}

/// Sends all calls of `schedule` and waits for their answers. `stop` ends it early: calls that are not due yet are
/// left out.
pub fn run(
    schedule: &Schedule,
    targets: &[Target],
    settings: &Generator,
    stop: &AtomicBool,
) -> Result<Measured, LoadError> {
    check(schedule, targets, settings)?;
    let runtime = runtime(settings.threads).map_err(LoadError::Start)?;
    let shared = Arc::new(Shared {
        client: client(settings),
        targets: targets.to_vec(),
        settings: settings.clone(),
        began: Instant::now(),
        permits: Arc::new(Semaphore::new(settings.most_in_flight)),
    });
    let (results, mut arriving) = mpsc::unbounded_channel();
    send_all(&runtime, &shared, schedule.calls(), results, stop);
    // Each call is given up after its timeout, so this ends.
    let mut samples = Vec::with_capacity(schedule.calls().len());
    runtime.block_on(async {
        while let Some(sample) = arriving.recv().await {
            samples.push(sample);
        }
    });
    samples.sort_by_key(|sample: &Sample| sample.due);
    let total = samples.iter().map(|sample| sample.ended).max().unwrap_or_default();
    runtime.shutdown_background();
    Ok(Measured { targets: targets.iter().map(|t| t.name().to_owned()).collect(), samples, total })
}

fn check(schedule: &Schedule, targets: &[Target], settings: &Generator) -> Result<(), LoadError> {
    let known = |call: &Due| (call.target as usize) < targets.len();
    if !schedule.calls().iter().all(known) {
        return Err(LoadError::NoTarget);
    }
    for (name, value, allowed, fits) in [
        ("threads", settings.threads, "1 to 64", (1..=64).contains(&settings.threads)),
        (
            "calls in flight",
            settings.most_in_flight,
            "1 to 60000",
            (1..=60_000).contains(&settings.most_in_flight),
        ),
    ] {
        if !fits {
            return Err(LoadError::OutOfRange { name, value: value as f64, allowed });
        }
    }
    Ok(())
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

fn client(settings: &Generator) -> Client<HttpConnector, Full<Bytes>> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(clock_time(settings.timeout)));
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(settings.most_in_flight)
        .pool_timer(TokioTimer::new())
        .set_host(false)
        .build(connector)
}

fn send_all(
    runtime: &Runtime,
    shared: &Arc<Shared>,
    calls: &[Due],
    results: mpsc::UnboundedSender<Sample>,
    stop: &AtomicBool,
) {
    /// A stop is noticed within this time.
    const LONGEST_SLEEP: std::time::Duration = std::time::Duration::from_millis(100);
    for call in calls {
        let due = clock_time(call.at);
        loop {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let Some(left) = due.checked_sub(shared.began.elapsed()).filter(|left| !left.is_zero())
            else {
                break;
            };
            thread::sleep(left.min(LONGEST_SLEEP));
        }
        let (shared, results, call) = (Arc::clone(shared), results.clone(), *call);
        runtime.spawn(async move {
            let sample = shared.call(&call).await;
            // Nobody listens only after the run was given up.
            let _ = results.send(sample);
        });
    }
}

impl Shared {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    async fn call(&self, call: &Due) -> Sample {
        let sent = self.now();
        let target = &self.targets[call.target as usize];
        let request = target.request(&call.placeholders);
        let bytes_out = http_body::Body::size_hint(request.body()).lower();
        let Ok(_permit) = self.permits.try_acquire() else {
            let most = self.settings.most_in_flight;
            let why = format!("not sent: {most} calls were in flight already");
            let result = CallResult::Failed(why);
            return Sample {
                target: call.target,
                due: call.at,
                sent,
                ended: self.now(),
                bytes_in: 0,
                bytes_out: 0,
                result,
            };
        };
        let limit = clock_time(self.settings.timeout);
        let (result, bytes_in) = match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(Ok((status, bytes))) => (CallResult::Status(status), bytes),
            Ok(Err(why)) => (CallResult::Failed(why), 0),
            Err(_) => {
                (CallResult::Failed(format!("no answer within {} s", limit.as_secs_f64())), 0)
            }
        };
        Sample {
            target: call.target,
            due: call.at,
            sent,
            ended: self.now(),
            bytes_in,
            bytes_out,
            result,
        }
    }

    /// Status and length of the answer; the body is read to its end, which belongs to the latency.
    async fn exchange(&self, request: http::Request<Full<Bytes>>) -> Result<(u16, u64), String> {
        let answer = self.client.request(request).await.map_err(|why| with_causes(&why))?;
        let status = answer.status().as_u16();
        let mut body = Limited::new(answer.into_body(), self.settings.largest_answer);
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| format!("the answer broke off: {why}"))?;
            bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Ok((status, bytes))
    }
}

/// The chain of causes in one line: "client error (Connect): tcp connect error: Connection refused (os error 111)".
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Our time as the clock's.
fn clock_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
