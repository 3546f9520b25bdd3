//! The baseline: every limit, several load tests each.

use serde::Serialize;
use windfall_core::statistics::{self, Interval};

use super::knative::LoadTestOutcome;
use super::workloads::Workload;

/// Throughputs this close are the same; latency then decides. The paper found the two to go together.
const SAME: f64 = 0.01;

/// One limit of one workload, averaged over its load tests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepPoint {
    /// The workload's name.
    pub workload: String,
    /// Requests per pod at once.
    pub limit: u32,
    /// Successes per second.
    pub throughput: f64,
    /// Lowest and highest of the tests.
    pub throughput_range: Interval,
    /// Mean time to an answer.
    pub mean_ms: f64,
    /// 95th percentile of it.
    pub p95_ms: f64,
    /// Share of requests that succeeded.
    pub success: f64,
    /// Ready pods.
    pub pods: f64,
}

impl SweepPoint {
    /// The point that `tests` of one limit make.
    pub fn new(workload: &Workload, limit: u32, tests: &[LoadTestOutcome]) -> Self {
        let mean =
            |of: fn(&LoadTestOutcome) -> f64| statistics::mean(tests.iter().map(of)).unwrap_or(0.0);
        let throughputs = tests.iter().map(|test| test.throughput);
        Self {
            workload: workload.name.to_owned(),
            limit,
            throughput: mean(|test| test.throughput),
            throughput_range: Interval::covering(throughputs),
            mean_ms: mean(|test| test.mean_ms),
            p95_ms: mean(|test| test.p95_ms),
            success: mean(|test| test.success),
            pods: mean(|test| test.mean_pods),
        }
    }
}

/// The best limit of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// The workload's name.
    pub workload: String,
    /// Its best limit.
    pub limit: u32,
    /// Successes per second there.
    pub throughput: f64,
    /// Mean time to an answer there.
    pub mean_ms: f64,
    /// Successes per second at Knative's default of 100.
    pub default_throughput: f64,
    /// Mean time to an answer at the default.
    pub default_mean_ms: f64,
    /// Share of requests that succeed at the default.
    pub default_success: f64,
}

/// The sweep of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSweep {
    /// Which workload.
    pub workload: Workload,
    /// Its limits, rising.
    pub points: Vec<SweepPoint>,
    /// Knative's default.
    pub default: SweepPoint,
}

impl WorkloadSweep {
    /// The best limit: most throughput, and among those within 1 % of it the lowest mean latency.
    pub fn best(&self) -> &SweepPoint {
        let most = self.most();
        let close = self.points.iter().filter(|point| point.throughput >= most * (1.0 - SAME));
        close.min_by(|one, other| one.mean_ms.total_cmp(&other.mean_ms)).unwrap_or(&self.default)
    }

    fn most(&self) -> f64 {
        self.points.iter().map(|point| point.throughput).fold(0.0, f64::max)
    }

    /// Whether `limit` has at least 95 % of the best throughput.
    pub fn is_within_5_percent(&self, limit: u32) -> bool {
        self.point(limit).is_some_and(|point| point.throughput >= 0.95 * self.most())
    }

    /// Whether more than 1 % of the requests fail at `limit`.
    pub fn is_unsafe(&self, limit: u32) -> bool {
        self.point(limit).is_none_or(|point| point.success < 0.99)
    }

    fn point(&self, limit: u32) -> Option<&SweepPoint> {
        self.points.iter().find(|point| point.limit == limit)
    }

    /// The best limit beside the default.
    pub fn summary(&self) -> Best {
        let best = self.best();
        Best {
            workload: best.workload.clone(),
            limit: best.limit,
            throughput: best.throughput,
            mean_ms: best.mean_ms,
            default_throughput: self.default.throughput,
            default_mean_ms: self.default.mean_ms,
            default_success: self.default.success,
        }
    }
}
