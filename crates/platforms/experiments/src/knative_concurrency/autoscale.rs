//! Knative's autoscaler as a tick policy of the embedded platform, which also keeps what it sees.

use std::sync::{Arc, Mutex, PoisonError};

use windfall_core::{Decision, FunctionId, Observation, Policy, PolicyError, Setting, Target};
use windfall_papers::knative_concurrency::KnativeAutoscaler;
use windfall_papers::knative_concurrency::knative::Autoscale;

use super::PODS;

/// Seconds between two decisions of Knative.
const DECIDES_EVERY: u64 = 2;

/// Sums over the seconds of a load test.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    seconds: f64,
    pods: f64,
    cpu: f64,
    memory_mib: f64,
    in_flight: f64,
}

impl Seen {
    /// Ready instances on average.
    pub(super) fn pods(&self) -> f64 {
        self.pods / self.seconds.max(1e-9)
    }

    /// Cores in use per ready instance.
    pub(super) fn cpu_per_pod(&self) -> f64 {
        self.cpu / self.pods.max(1e-9)
    }

    /// The most memory of any instance, on average over the seconds, MiB.
    pub(super) fn memory_per_pod(&self) -> f64 {
        self.memory_mib / self.seconds.max(1e-9)
    }

    /// Calls in an instance.
    pub(super) fn in_flight_per_pod(&self) -> f64 {
        self.in_flight / self.pods.max(1e-9)
    }
}

/// What the policy saw, shared with the load test.
pub(super) type Shared = Arc<Mutex<Seen>>;

pub(super) fn read(shared: &Shared) -> Seen {
    *shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Knative's autoscaler for the one function of a load test.
pub(super) struct KnativeTicks {
    limit: u32,
    autoscaler: KnativeAutoscaler,
    seen: Shared,
    /// Seconds since the first call arrived.
    second: u64,
    has_load: bool,
}

impl KnativeTicks {
    pub(super) fn new(limit: u32, seen: Shared) -> Self {
        let autoscaler = KnativeAutoscaler::new(limit);
        Self { limit, autoscaler, seen, second: 0, has_load: false }
    }
}

impl Policy for KnativeTicks {
    fn name(&self) -> &str {
        "knative"
    }

    /// Called once a second.
    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let Some(view) = seen.functions.first() else { return Ok(Decision::default()) };
        let mut target = Target {
            concurrency: Setting::Set(f64::from(self.limit)),
            ..Target::keep(FunctionId(0))
        };
        self.has_load |= view.arrivals > 0;
        if self.has_load {
            self.second += 1;
            self.autoscaler.record(self.second, view.mean_concurrency);
            let mut sums = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let ready = f64::from(view.ready.get());
            sums.seconds += 1.0;
            sums.pods += ready;
            sums.cpu += view.cpu_used_cores;
            sums.memory_mib += view.memory_peak_mib;
            sums.in_flight += f64::from(view.in_flight);
        }
        if self.second.is_multiple_of(DECIDES_EVERY) || self.second == 1 {
            let scaling = self.autoscaler.decide(self.second, view.ready.get());
            if let Some(replicas) = scaling.replicas {
                target.instances = Setting::Set(f64::from(replicas.clamp(1, PODS)));
            }
        }
        Ok(Decision { targets: vec![target], reason: "Knative's autoscaler".to_owned() })
    }
}
