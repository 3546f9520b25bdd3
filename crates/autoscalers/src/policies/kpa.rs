//! Knative's autoscaler as a tick policy.
//!
//! ```text
//!  Observation ─► mean concurrency (or arrivals per second) for every second since the last one
//!              ─► Autoscaler ─► Reconciler ─► instances
//! ```
//!
//! A tick every 5 s with a mean of 12 calls in the system is recorded as 12 in each of the five seconds.
//! Stale measurements are not recorded twice: a gap in telemetry is a gap in the windows. Queued calls count as in
//! flight, as at Knative's activators, and the activator always answers.
//!
//! If the platform starts instances for calls by itself, those above the count stay for one decision interval (2 s) when
//! they become idle: Knative sets the count, the platform starts instances.

use std::collections::BTreeMap;

use windfall_core::{
    Decision, Duration, FunctionId, FunctionView, Observation, Policy, PolicyError, Setting, Target,
};

use crate::kpa::{
    Autoscaler, ClusterSettings, Metric, Reconciler, RevisionSettings, Seen, TICK_SECONDS,
    WINDOW_MAX_SECONDS,
};

/// Knative's autoscaler, one per function.
#[derive(Clone, Debug, Default)]
pub struct Kpa {
    cluster: ClusterSettings,
    revision: RevisionSettings,
    functions: BTreeMap<FunctionId, Revision>,
}

#[derive(Clone, Debug)]
struct Revision {
    autoscaler: Autoscaler,
    reconciler: Reconciler,
    /// Second up to which measurements are recorded.
    recorded: u64,
}

impl Kpa {
    /// Creates a policy with the cluster's settings; every function has the annotations of `revision`, and its own
    /// concurrency limit as `containerConcurrency`.
    pub fn new(cluster: ClusterSettings, revision: RevisionSettings) -> Self {
        Self { cluster, revision, functions: BTreeMap::new() }
    }

    fn begin(&self, view: &FunctionView, now: u64) -> Revision {
        let settings =
            RevisionSettings { container_concurrency: view.concurrency, ..self.revision.clone() };
        let windows = self.cluster.windows(&settings);
        let decider = self.cluster.decider(&settings);
        let ready = view.ready.get();
        let make = if ready > 0 { Reconciler::running } else { Reconciler::new };
        Revision {
            autoscaler: Autoscaler::new(windows, decider, now, ready),
            reconciler: make(self.cluster.clone(), settings, now * 1000),
            recorded: now.saturating_sub(1),
        }
    }

    fn load(&self, view: &FunctionView, seen: &Observation) -> f64 {
        match self.revision.metric {
            Metric::Concurrency => view.mean_concurrency,
            Metric::Rps => f64::from(view.arrivals) / seen.window.as_secs_f64().max(1e-9),
        }
    }
}

impl Policy for Kpa {
    fn name(&self) -> &str {
        "kpa"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let second = |at: windfall_core::Timestamp| at.as_nanos() / 1_000_000_000;
        let (now, taken) = (second(seen.now), second(seen.taken_at));
        let mut decision = Decision::default();
        for view in &seen.functions {
            let load = self.load(view, seen);
            if !self.functions.contains_key(&view.function) {
                let revision = self.begin(view, now);
                self.functions.insert(view.function, revision);
            }
            let Some(revision) = self.functions.get_mut(&view.function) else { continue };
            let oldest = taken.saturating_sub(u64::from(WINDOW_MAX_SECONDS));
            for second in (revision.recorded + 1).max(oldest)..=taken {
                if load.is_finite() {
                    revision.autoscaler.record(second, load);
                }
            }
            revision.recorded = revision.recorded.max(taken);
            if let Some(count) = revision.decide(now, view.ready.get()) {
                decision.targets.push(Target {
                    instances: Setting::Set(f64::from(count)),
                    keep_alive: Setting::Set(Duration::from_secs(u64::from(TICK_SECONDS))),
                    ..Target::keep(view.function)
                });
            }
        }
        decision.reason = format!("kpa: {} functions with a target", decision.targets.len());
        Ok(decision)
    }
}

impl Revision {
    fn decide(&mut self, now: u64, ready: u32) -> Option<i32> {
        let scale = self.autoscaler.scale(now, ready);
        let outcome = self.reconciler.reconcile(Seen {
            now_ms: now * 1000,
            desired: scale.map(|scale| scale.desired),
            excess_burst_capacity: scale.map_or(0, |scale| scale.excess_burst_capacity),
            ready: ready.min(i32::MAX as u32) as i32,
            activator_answers: true,
        });
        outcome.apply.filter(|count| *count >= 0)
    }
}
