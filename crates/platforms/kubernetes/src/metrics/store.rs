//! What was measured: the last reading of every container, and the difference to the one before where it is a counter.

mod histogram;

use std::collections::BTreeMap;

use windfall_core::{Duration, Timestamp};

pub use histogram::Histogram;

use super::Wanted;
use crate::cluster::Key;

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// CPU time of a container since it started, seconds.
    CpuSeconds {
        /// The pod.
        pod: Key,
        /// The container.
        container: String,
        /// Its CPU time.
        seconds: f64,
        /// When the kubelet sampled it, by the node's clock; its pages repeat a sample for ten seconds and longer.
        sampled: Option<Timestamp>,
    },
    /// CPU of a container now, cores.
    CpuCores(Key, String, f64),
    /// Memory in use by a container, bytes.
    MemoryBytes(Key, String, f64),
    /// Periods of the CPU quota and those that were throttled, since the container started.
    Throttling {
        /// The pod.
        pod: Key,
        /// The container.
        container: String,
        /// Periods with work.
        periods: f64,
        /// Periods that ran out of quota.
        throttled: f64,
    },
    /// Share of throttled periods over the last minute.
    ThrottledShare(Key, String, f64),
    /// Durations of requests of a pod since it started.
    Requests(Key, Histogram),
    /// Requests in flight of a Revision, averaged.
    Concurrency(Key, f64),
    /// Requests of a Revision that wait for a pod.
    Queued(Key, f64),
    /// Latency of a policy's workload at its goal's percentile, seconds.
    Latency(Key, f64),
    /// Requests per second of a policy's workload.
    Rate(Key, f64),
}

/// A value and when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct At<T> {
    at: Timestamp,
    value: T,
}

#[derive(Clone, Debug, Default)]
struct ContainerSeries {
    /// CPU time, at the time of its sample.
    seconds: Option<At<f64>>,
    cores: Option<At<f64>>,
    memory: Option<At<f64>>,
    throttling: Option<(f64, f64)>,
    throttled: Option<At<f64>>,
}

#[derive(Clone, Debug, Default)]
struct PodRequests {
    last: Option<At<Histogram>>,
    /// What came since the reading before.
    since: Option<(Duration, At<Histogram>)>,
}

/// The last readings.
#[derive(Debug, Default)]
pub struct MetricsStore {
    containers: BTreeMap<(Key, String), ContainerSeries>,
    requests: BTreeMap<Key, PodRequests>,
    concurrency: BTreeMap<Key, At<f64>>,
    queued: BTreeMap<Key, At<f64>>,
    latency: BTreeMap<Key, At<f64>>,
    rate: BTreeMap<Key, At<f64>>,
}

/// What is known about a workload now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// When it was measured.
    pub taken_at: Timestamp,
    /// The window that counts refer to.
    pub window: Duration,
    /// Pods with a measurement of CPU and memory.
    pub measured_pods: u32,
    /// CPU of all pods, cores; those without a measurement use as much as the others.
    pub cpu_cores: f64,
    /// The highest CPU of one pod, cores.
    pub cpu_peak_cores: f64,
    /// The highest memory of one pod, MiB.
    pub memory_peak_mib: f64,
    /// Share of throttled periods, the highest of all pods.
    pub throttled_share: Option<f64>,
    /// Requests that ended, all pods together.
    pub completions: Option<f64>,
    /// Their mean duration.
    pub mean_run: Option<Duration>,
    /// Their duration at the goal's percentile.
    pub latency: Option<Duration>,
    /// Requests per second.
    pub per_second: Option<f64>,
    /// Requests in flight.
    pub concurrency: Option<f64>,
    /// Requests that wait for a pod.
    pub queued: f64,
}

impl MetricsStore {
    /// Takes in what was read at `at`.
    pub fn put(&mut self, at: Timestamp, readings: Vec<Reading>) {
        for reading in readings {
            self.put_one(at, reading);
        }
    }

    fn put_one(&mut self, at: Timestamp, reading: Reading) {
        match reading {
            Reading::CpuSeconds { pod, container, seconds, sampled } if is_amount(seconds) => {
                let sample = At { at: sampled.unwrap_or(at), value: seconds };
                self.container(pod, container).put_seconds(at, sample);
            }
            Reading::CpuCores(pod, container, value) if is_amount(value) => {
                self.container(pod, container).cores = Some(At { at, value });
            }
            Reading::MemoryBytes(pod, container, value) if is_amount(value) => {
                self.container(pod, container).memory = Some(At { at, value });
            }
            Reading::Throttling { pod, container, periods, throttled }
                if is_amount(periods) && is_amount(throttled) =>
            {
                self.container(pod, container).put_throttling(at, (periods, throttled));
            }
            Reading::ThrottledShare(pod, container, value) if is_amount(value) => {
                self.container(pod, container).throttled = Some(At { at, value });
            }
            Reading::Requests(pod, histogram) => {
                self.requests.entry(pod).or_default().put(At { at, value: histogram });
            }
            Reading::Concurrency(key, value) if is_amount(value) => {
                self.concurrency.insert(key, At { at, value });
            }
            Reading::Queued(key, value) if is_amount(value) => {
                self.queued.insert(key, At { at, value });
            }
            Reading::Latency(key, value) if is_amount(value) => {
                self.latency.insert(key, At { at, value });
            }
            Reading::Rate(key, value) if is_amount(value) => {
                self.rate.insert(key, At { at, value });
            }
            // What is negative or no number was not measured.
            _ => {}
        }
    }

    fn container(&mut self, pod: Key, container: String) -> &mut ContainerSeries {
        self.containers.entry((pod, container)).or_default()
    }

    /// Forgets what was last measured before `before`: pods that are gone.
    pub fn forget(&mut self, before: Timestamp) {
        self.containers.retain(|_, series| series.newest() >= Some(before));
        self.requests.retain(|_, one| one.last.as_ref().is_some_and(|last| last.at >= before));
        for table in [&mut self.concurrency, &mut self.queued, &mut self.latency, &mut self.rate] {
            table.retain(|_, one| one.at >= before);
        }
    }

    /// What is known about a workload from readings since `since`; nothing if no pod of it was measured.
    pub fn signals(&self, wanted: &Wanted, since: Timestamp) -> Option<Signals> {
        let mut signals = self.usage(wanted, since)?;
        self.add_requests(wanted, since, &mut signals);
        let fresh = |table: &BTreeMap<Key, At<f64>>, key: &Key| {
            table.get(key).filter(|one| one.at >= since).map(|one| one.value)
        };
        if let Some(seconds) = fresh(&self.latency, &wanted.policy) {
            signals.latency = Some(Duration::from_secs_f64(seconds));
        }
        signals.per_second = fresh(&self.rate, &wanted.policy).or(signals.per_second);
        if let Some(revision) = &wanted.revision {
            let revision = Key::new(&wanted.policy.namespace, revision);
            signals.concurrency = fresh(&self.concurrency, &revision);
            signals.queued = fresh(&self.queued, &revision).unwrap_or(0.0);
        }
        Some(signals)
    }

    fn usage(&self, wanted: &Wanted, since: Timestamp) -> Option<Signals> {
        let mut signals = Signals::default();
        let mut oldest = Timestamp::MAX;
        let mut cores = 0.0;
        for pod in &wanted.pods {
            let Some(series) = self.containers.get(&(pod.key.clone(), wanted.container.clone()))
            else {
                continue;
            };
            let (Some(cpu), Some(memory)) = (series.cores, series.memory) else { continue };
            if cpu.at < since || memory.at < since {
                continue;
            }
            signals.measured_pods += 1;
            cores += cpu.value;
            signals.cpu_peak_cores = signals.cpu_peak_cores.max(cpu.value);
            signals.memory_peak_mib = signals.memory_peak_mib.max(memory.value / 1_048_576.0);
            oldest = oldest.min(cpu.at).min(memory.at);
            if let Some(throttled) = series.throttled.filter(|one| one.at >= since) {
                let share = signals.throttled_share.unwrap_or(0.0);
                signals.throttled_share = Some(share.max(throttled.value));
            }
        }
        if signals.measured_pods == 0 {
            return None;
        }
        signals.taken_at = oldest;
        signals.cpu_cores = cores * wanted.pods.len() as f64 / f64::from(signals.measured_pods);
        Some(signals)
    }

    /// Requests of the pods that were sampled, taken for all.
    fn add_requests(&self, wanted: &Wanted, since: Timestamp, signals: &mut Signals) {
        let mut all = Histogram::default();
        let mut window = Duration::ZERO;
        let mut sampled = 0_u32;
        for pod in &wanted.pods {
            let Some((over, last)) = self.requests.get(&pod.key).and_then(|one| one.since.as_ref())
            else {
                continue;
            };
            if last.at >= since {
                all.add(&last.value);
                window = window.max(*over);
                sampled += 1;
            }
        }
        if sampled == 0 || window.is_zero() {
            return;
        }
        let completions = all.count * wanted.pods.len() as f64 / f64::from(sampled);
        let percentile = wanted.goals.latency.as_ref().map_or(95, |goal| goal.percentile);
        signals.window = window;
        signals.completions = Some(completions);
        signals.per_second = Some(completions / window.as_secs_f64());
        signals.mean_run = all.mean().map(Duration::from_secs_f64);
        signals.latency = all.quantile(f64::from(percentile) * 0.01).map(Duration::from_secs_f64);
    }
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

impl ContainerSeries {
    fn newest(&self) -> Option<Timestamp> {
        let times = [self.cores, self.memory, self.throttled];
        times.into_iter().flatten().map(|one| one.at).max()
    }

    /// A counter that went down has started anew: its container was restarted. Two samples are divided by the time
    /// between them, which the node's clock knows; how fresh the result is, our own clock says.
    fn put_seconds(&mut self, at: Timestamp, now: At<f64>) {
        if self.seconds.is_some_and(|last| last.at == now.at) {
            return;
        }
        let last = self.seconds.replace(now);
        let Some(last) = last.filter(|last| last.at < now.at) else { return };
        let used = if now.value >= last.value { now.value - last.value } else { now.value };
        let cores = used / now.at.since(last.at).as_secs_f64();
        self.cores = Some(At { at, value: cores });
    }

    fn put_throttling(&mut self, at: Timestamp, now: (f64, f64)) {
        let last = self.throttling.replace(now);
        let Some(last) = last.filter(|last| last.0 <= now.0 && last.1 <= now.1) else { return };
        let (periods, throttled) = (now.0 - last.0, now.1 - last.1);
        let value = if periods > 0.0 { throttled / periods } else { 0.0 };
        self.throttled = Some(At { at, value });
    }
}

impl PodRequests {
    fn put(&mut self, now: At<Histogram>) {
        let since = self.last.as_ref().filter(|last| last.at < now.at).map(|last| {
            let new = now.value.since(&last.value);
            (now.at.since(last.at), At { at: now.at, value: new })
        });
        self.since = since.or_else(|| self.since.take());
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests;
