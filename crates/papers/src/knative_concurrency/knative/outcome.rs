//! What a load test measures, as its tools report it.

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

use super::settings::KnativeSettings;

/// The report of one load test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadTestOutcome {
    /// Requests sent.
    pub requests: u32,
    /// Requests answered well and in time.
    pub succeeded: u32,
    /// Refused with 503: a queue was full.
    pub refused: u32,
    /// Lost with a container that ran out of memory.
    pub killed: u32,
    /// Given up by the client.
    pub timed_out: u32,
    /// Successes per second, from the first request to the last answer.
    pub throughput: f64,
    /// Mean time to any answer, milliseconds.
    pub mean_ms: f64,
    /// 95th percentile of it.
    pub p95_ms: f64,
    /// Share of requests that succeeded.
    pub success: f64,
    /// Ready pods, averaged over the test.
    pub mean_pods: f64,
    /// CPU in use per ready pod, as a share of its limit.
    pub cpu_utilisation: f64,
    /// Memory in use per ready pod, as a share of its limit.
    pub memory_utilisation: f64,
    /// Memory that a pod without a request uses, as a share of its limit.
    pub idle_memory_utilisation: f64,
    /// Requests in the container per ready pod.
    pub in_service_per_pod: f64,
    /// From the change of the limit to the last answer.
    pub took: Duration,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Answered,
    Refused,
    Killed,
    TimedOut,
}

/// Sums over a test.
#[derive(Debug, Default)]
pub(super) struct Tally {
    latencies_ns: Vec<u64>,
    outcome: LoadTestOutcome,
    last_end_ns: u64,
    pub(super) used_cores_ns: f64,
    pub(super) used_mib_ns: f64,
    pub(super) in_service_ns: f64,
    pub(super) ready_ns: f64,
}

impl Tally {
    pub(super) fn end(&mut self, end: End, latency_ns: u64, now_ns: u64) {
        self.latencies_ns.push(latency_ns);
        self.last_end_ns = self.last_end_ns.max(now_ns);
        let count = match end {
            End::Answered => &mut self.outcome.succeeded,
            End::Refused => &mut self.outcome.refused,
            End::Killed => &mut self.outcome.killed,
            End::TimedOut => &mut self.outcome.timed_out,
        };
        *count += 1;
    }

    /// The report, with the pods' sizes.
    pub(super) fn report(mut self, settings: &KnativeSettings) -> LoadTestOutcome {
        self.latencies_ns.sort_unstable();
        let count = self.latencies_ns.len();
        let total: u64 = self.latencies_ns.iter().sum();
        let p95 = self.latencies_ns.get((count * 95).div_ceil(100).saturating_sub(1));
        let ready = self.ready_ns.max(1.0);
        let seconds = self.last_end_ns.max(1) as f64 * 1e-9;
        LoadTestOutcome {
            requests: count as u32,
            throughput: f64::from(self.outcome.succeeded) / seconds,
            mean_ms: total as f64 / count.max(1) as f64 * 1e-6,
            p95_ms: p95.map_or(0.0, |nanos| *nanos as f64 * 1e-6),
            success: f64::from(self.outcome.succeeded) / count.max(1) as f64,
            mean_pods: self.ready_ns / self.last_end_ns.max(1) as f64,
            cpu_utilisation: self.used_cores_ns / (ready * settings.pod_cores),
            memory_utilisation: self.used_mib_ns / (ready * settings.pod_memory_mib),
            idle_memory_utilisation: settings.pod_base_mib / settings.pod_memory_mib,
            in_service_per_pod: self.in_service_ns / ready,
            took: settings.roll_out + settings.cold_start + Duration::from_nanos(self.last_end_ns),
            ..self.outcome
        }
    }
}
