//! The VerticalPodAutoscaler as a tick policy.
//!
//! ```text
//!  Observation ─► CPU per ready instance, memory peak ─► Recommender, one container per function
//!              ─► target ─► updater's rule: outside the bounds, or old enough and different enough
//!              ─► CPU and memory of each instance
//! ```
//!
//! Two ready instances that use 0.22 cores are two samples' worth of 110 millicores, recorded once per tick.
//! An observation does not tell of memory kills, so there is no bump from here; the peak of a call that was
//! killed at its limit is the limit, and only the margin leads out of it.

use std::collections::BTreeMap;

use windfall_core::{
    Decision, FunctionId, FunctionView, Observation, Policy, PolicyError, Setting, Target,
};

use crate::vpa::{
    ContainerRecommendation, Recommender, RecommenderSettings, Resources, UpdateMode, Updater,
    UpdaterContainer, UpdaterPod, UpdaterSettings, VpaSettings,
};

const CONTAINER: &str = "function";
const MIB: f64 = 1_048_576.0;

/// The VerticalPodAutoscaler, one per function.
#[derive(Clone, Debug, Default)]
pub struct Vpa {
    recommender: RecommenderSettings,
    updater: UpdaterSettings,
    settings: VpaSettings,
    functions: BTreeMap<FunctionId, Sizing>,
}

#[derive(Clone, Debug)]
struct Sizing {
    recommender: Recommender,
    /// When the size last changed, or was first seen.
    changed_at: i64,
}

impl Vpa {
    /// A policy under the flags of recommender and updater; every function has the same settings, with
    /// the container's name `function`.
    pub fn new(
        recommender: RecommenderSettings,
        updater: UpdaterSettings,
        settings: VpaSettings,
    ) -> Self {
        Self { recommender, updater, settings, functions: BTreeMap::new() }
    }

    fn wish(&mut self, view: &FunctionView, at: i64, now: i64) -> Option<Target> {
        let sized = self.functions.entry(view.function).or_insert_with(|| {
            let mut recommender = Recommender::new(self.recommender.clone(), self.settings.clone());
            recommender.start_pod("instance", "revision", &[CONTAINER.to_owned()], now);
            Sizing { recommender, changed_at: now }
        });
        sized.sample(view, at, now);
        let merged = sized.recommender.merged(now);
        let recommended = sized.recommender.recommend(&merged);
        sized.recommender.collect_garbage(now);
        let target = recommended.first()?.target;
        let is_wanted = match self.settings.update.mode {
            UpdateMode::Off => false,
            // New instances get it at once; nobody else does.
            UpdateMode::Initial => true,
            UpdateMode::Recreate | UpdateMode::InPlaceOrRecreate | UpdateMode::InPlace => {
                let updater = Updater {
                    settings: self.updater,
                    vpa: &self.settings,
                    recommendation: &recommended,
                    configured_replicas: view.ready.get(),
                };
                is_accepted(&updater, view, sized.changed_at, now)
            }
        };
        // Without a single sample the recommendation is only the minimum.
        if !is_wanted || merged.values().all(|state| state.samples == 0) {
            return None;
        }
        sized.changed_at = now;
        Some(target_of(view.function, target))
    }
}

impl Sizing {
    fn sample(&mut self, view: &FunctionView, at: i64, now: i64) {
        let ready = view.ready.get();
        if ready == 0 || view.in_flight == 0 && view.completions == 0 {
            return;
        }
        let millicores = view.cpu_used_cores / f64::from(ready) * 1000.0;
        if millicores.is_finite() {
            self.recommender.cpu(("instance", CONTAINER), millicores as i64, at, now);
        }
        if view.memory_peak_mib.is_finite() {
            let bytes = (view.memory_peak_mib * MIB) as i64;
            self.recommender.memory(("instance", CONTAINER), bytes, at, now);
        }
    }
}

fn is_accepted(updater: &Updater<'_>, view: &FunctionView, changed_at: i64, now: i64) -> bool {
    let allocation = view.allocation;
    let request = Resources::both(
        i64::from(allocation.cpu.get()),
        i64::from(allocation.memory.get()) * MIB as i64,
    );
    let container = UpdaterContainer {
        name: CONTAINER.to_owned(),
        request,
        limit: request,
        ..UpdaterContainer::default()
    };
    let pod = UpdaterPod {
        name: "instance".to_owned(),
        started_at: Some(changed_at),
        containers: vec![container],
        ..UpdaterPod::default()
    };
    let pass = updater.pass(&[pod], now);
    pass.verdicts.iter().all(|verdict| verdict.is_accepted && verdict.is_admitted)
}

fn target_of(function: FunctionId, target: Resources) -> Target {
    let set = |amount: Option<f64>| amount.map_or(Setting::Keep, Setting::Set);
    Target {
        cpu_cores: set(target.cpu_millicores.map(|amount| amount as f64 / 1000.0)),
        memory_mib: set(target.memory_bytes.map(|bytes| bytes as f64 / MIB)),
        ..Target::keep(function)
    }
}

impl Policy for Vpa {
    fn name(&self) -> &str {
        "vpa"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let second = |at: windfall_core::Timestamp| (at.as_nanos() / 1_000_000_000) as i64;
        let (now, at) = (second(seen.now), second(seen.taken_at));
        let targets: Vec<Target> =
            seen.functions.iter().filter_map(|view| self.wish(view, at, now)).collect();
        let reason = format!("vpa: {} functions resized", targets.len());
        Ok(Decision { targets, reason })
    }
}

impl Vpa {
    /// What is recommended for `function` now; nothing if it was never seen.
    pub fn recommendation(
        &mut self,
        function: FunctionId,
        now: i64,
    ) -> Option<ContainerRecommendation> {
        let sized = self.functions.get_mut(&function)?;
        let merged = sized.recommender.merged(now);
        sized.recommender.recommend(&merged).into_iter().next()
    }
}
