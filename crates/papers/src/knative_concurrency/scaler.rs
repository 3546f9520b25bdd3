//! Knative's own autoscaler over the simulated revision: the exact one, by seconds.

use windfall_autoscalers::kpa::{
    Autoscaler, ClusterSettings, PathMode, Reconciler, RevisionSettings, Seen,
};

use super::knative::{Autoscale, Scaling};

/// The autoscaler of a fresh revision with defaults but for its limit.
#[derive(Clone, Debug)]
pub struct KnativeAutoscaler {
    autoscaler: Autoscaler,
    reconciler: Reconciler,
}

impl KnativeAutoscaler {
    /// One for a revision with `containerConcurrency` at `limit`, made at second 0 with no pods.
    pub fn new(limit: u32) -> Self {
        let cluster = ClusterSettings::default();
        let revision =
            RevisionSettings { container_concurrency: limit, ..RevisionSettings::default() };
        let windows = cluster.windows(&revision);
        let decider = cluster.decider(&revision);
        Self {
            autoscaler: Autoscaler::new(windows, decider, 0, 0),
            reconciler: Reconciler::new(cluster, revision, 0),
        }
    }
}

impl Autoscale for KnativeAutoscaler {
    fn record(&mut self, second: u64, requests: f64) {
        self.autoscaler.record(second, requests);
    }

    fn decide(&mut self, second: u64, ready: u32) -> Scaling {
        let scale = self.autoscaler.scale(second, ready);
        let outcome = self.reconciler.reconcile(Seen {
            now_ms: second * 1000,
            desired: scale.map(|scale| scale.desired),
            excess_burst_capacity: scale.map_or(0, |scale| scale.excess_burst_capacity),
            ready: i32::try_from(ready).unwrap_or(i32::MAX),
            activator_answers: true,
        });
        Scaling {
            replicas: outcome.apply.and_then(|count| u32::try_from(count).ok()),
            is_proxied: outcome.mode == PathMode::Proxy,
        }
    }
}
