//! The VerticalPodAutoscaler with per-call sizing.
//!
//! ```text
//!  CallView ─► the function's last target (at most a minute old) ─► CPU and memory of the call
//!  CallOutcome ─► one pod that ran as long as the call: its mean CPU, its memory peak, its OOM kill
//! ```
//!
//! A call is a pod with one container, so the recommendation is applied to every new one, as by the admission controller;
//! nothing is evicted. Ten calls that used 0.4 cores on average and 100 MiB give the bucket that ends at 0.414 cores,
//! plus 15 %: 0.476 cores, and the minimum recommendation of 250 MiB. A call killed at 300 MiB counts as
//! max(300 + 100, 300 · 1.2) = 400 MiB.

use std::collections::BTreeMap;

use windfall_core::{CallDecision, CallOutcome, CallPolicy, CallView, FunctionId, PolicyError};

use super::vpa::{INTERVAL_SECONDS, MIB, container_of, second};
use crate::vpa::{Recommender, RecommenderSettings, Resources, UpdateMode, VpaSettings};

/// The VerticalPodAutoscaler, one per function, for per-call sizing.
#[derive(Clone, Debug)]
pub struct VpaForCalls {
    recommender: RecommenderSettings,
    settings: VpaSettings,
    container: String,
    functions: BTreeMap<FunctionId, Recommended>,
}

#[derive(Clone, Debug)]
struct Recommended {
    recommender: Recommender,
    target: Option<Resources>,
    recommended_at: Option<i64>,
    samples: u64,
}

impl VpaForCalls {
    /// Creates a policy with the recommender's flags; every function has the same settings.
    pub fn new(recommender: RecommenderSettings, settings: VpaSettings) -> Self {
        let container = container_of(&settings);
        Self { recommender, settings, container, functions: BTreeMap::new() }
    }

    fn function(&mut self, function: FunctionId) -> &mut Recommended {
        self.functions.entry(function).or_insert_with(|| Recommended {
            recommender: Recommender::new(self.recommender.clone(), self.settings.clone()),
            target: None,
            recommended_at: None,
            samples: 0,
        })
    }
}

impl Default for VpaForCalls {
    fn default() -> Self {
        Self::new(RecommenderSettings::default(), VpaSettings::default())
    }
}

impl Recommended {
    /// The target as of the last round of the recommender.
    fn target(&mut self, now: i64) -> Option<Resources> {
        let is_due = self.recommended_at.is_none_or(|last| now - last >= INTERVAL_SECONDS);
        if self.samples > 0 && is_due {
            self.recommended_at = Some(now);
            let merged = self.recommender.merged(now);
            self.target = self.recommender.recommend(&merged).first().map(|it| it.target);
            self.recommender.collect_garbage(now);
        }
        self.target
    }
}

impl CallPolicy for VpaForCalls {
    fn name(&self) -> &str {
        "vpa"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let is_off = self.settings.update.mode == UpdateMode::Off;
        let target = self.function(call.function).target(second(call.now));
        let Some(target) = target.filter(|_| !is_off) else {
            return Ok(CallDecision::exactly(call.reservation, "nothing recommended"));
        };
        let reserved = CallDecision::exactly(call.reservation, "the recommended target");
        let cpu = target.cpu_millicores.map(|amount| amount as f64 / 1000.0);
        let memory = target.memory_bytes.map(|bytes| bytes as f64 / MIB);
        Ok(CallDecision {
            cpu_cores: cpu.unwrap_or(reserved.cpu_cores).min(call.ceiling.cpu.cores()),
            memory_mib: memory.unwrap_or(reserved.memory_mib).min(call.ceiling.memory.mib()),
            ..reserved
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let (began, ended) = (second(outcome.started_at), second(outcome.ended_at));
        let container = self.container.clone();
        let function = self.function(outcome.function);
        let pod = "call";
        let of = (pod, container.as_str());
        // One pod per attempt, all of one revision: new container state, shared aggregate.
        function.recommender.start_pod(pod, "revision", std::slice::from_ref(&container), began);
        let millicores = outcome.cpu_mean_cores * 1000.0;
        if millicores.is_finite() {
            let is_taken = function.recommender.cpu(of, millicores as i64, ended, ended);
            function.samples += u64::from(is_taken);
        }
        if outcome.memory_peak_mib.is_finite() {
            let bytes = (outcome.memory_peak_mib * MIB) as i64;
            function.recommender.memory(of, bytes, ended, ended);
        }
        if outcome.was_killed {
            let requested = (outcome.last_grant.memory.mib() * MIB) as i64;
            function.recommender.oom(of, requested, ended, ended);
        }
        function.recommender.stop_pod(pod);
    }
}
