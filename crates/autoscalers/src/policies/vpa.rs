//! The VerticalPodAutoscaler as a tick policy.
//!
//! ```text
//!  Observation ─► CPU per ready instance, memory peak ─► Recommender, one container per function
//!              ─► target ─► updater's rule: outside the bounds, or old enough and different enough
//!              ─► CPU and memory of each instance
//! ```
//!
//! Two ready instances that use 0.22 cores over a minute are one sample of 110 millicores; once a minute there is a
//! sample and a recommendation, as upstream. Minutes without calls are left out: if idle instances are removed, idle
//! time is not measured either. An observation does not report memory kills, so there is no bump-up; the peak of a call
//! that was killed at its limit is the limit, and only the margin raises it.

use std::collections::BTreeMap;

use windfall_core::{
    Decision, FunctionId, FunctionView, Observation, Policy, PolicyError, Setting, Target,
    Timestamp,
};

use crate::vpa::{
    ContainerRecommendation, Recommender, RecommenderSettings, Resources, UpdateMode, Updater,
    UpdaterContainer, UpdaterPod, UpdaterSettings, VpaSettings,
};

pub(super) const MIB: f64 = 1_048_576.0;
/// Seconds between two recommendations, `--recommender-interval` upstream.
pub(super) const INTERVAL_SECONDS: i64 = 60;

/// The VerticalPodAutoscaler, one per function.
#[derive(Clone, Debug)]
pub struct Vpa {
    recommender: RecommenderSettings,
    updater: UpdaterSettings,
    settings: VpaSettings,
    container: String,
    functions: BTreeMap<FunctionId, Sizing>,
}

#[derive(Clone, Debug)]
struct Sizing {
    recommender: Recommender,
    /// When the size last changed, or was first seen.
    changed_at: i64,
    /// When the last recommendation was made.
    recommended_at: i64,
    minute: Minute,
}

/// Measurements since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    millicore_seconds: f64,
    seconds: f64,
    memory_peak_mib: f64,
}

/// Name of a function's container: as in the manifest, if that names exactly one.
pub(super) fn container_of(settings: &VpaSettings) -> String {
    let mut named = settings.policies.iter().map(|policy| &policy.container);
    let first = named.by_ref().find(|name| *name != "*");
    let is_only = named.all(|name| name == "*");
    first.filter(|_| is_only).map_or_else(|| "function".to_owned(), Clone::clone)
}

impl Vpa {
    /// Creates a policy with the flags of recommender and updater; every function has the same settings, and one container
    /// with the name from the settings (`function` if they name none or several).
    pub fn new(
        recommender: RecommenderSettings,
        updater: UpdaterSettings,
        settings: VpaSettings,
    ) -> Self {
        let container = container_of(&settings);
        Self { recommender, updater, settings, container, functions: BTreeMap::new() }
    }

    fn target(&mut self, view: &FunctionView, seen: &Observation) -> Option<Target> {
        let (now, at) = (second(seen.now), second(seen.taken_at));
        let container = &self.container;
        let sized = self.functions.entry(view.function).or_insert_with(|| {
            let mut recommender = Recommender::new(self.recommender.clone(), self.settings.clone());
            recommender.start_pod("instance", "revision", std::slice::from_ref(container), now);
            let minute = Minute::default();
            Sizing { recommender, changed_at: now, recommended_at: now, minute }
        });
        sized.minute.measure(view, seen);
        if now - sized.recommended_at < INTERVAL_SECONDS {
            return None;
        }
        sized.recommended_at = now;
        sized.sample(container, at, now);
        let merged = sized.recommender.merged(now);
        let recommended = sized.recommender.recommend(&merged);
        sized.recommender.collect_garbage(now);
        let target = recommended.first()?.target;
        let is_wanted = match self.settings.update.mode {
            UpdateMode::Off => false,
            // Only new instances get the target.
            UpdateMode::Initial => true,
            UpdateMode::Recreate | UpdateMode::InPlaceOrRecreate | UpdateMode::InPlace => {
                let updater = Updater {
                    settings: self.updater,
                    vpa: &self.settings,
                    recommendation: &recommended,
                    configured_replicas: view.ready.get(),
                };
                is_accepted(&updater, view, container, (sized.changed_at, now))
            }
        };
        // Without samples the recommendation is just the minimum.
        if !is_wanted || merged.values().all(|state| state.samples == 0) {
            return None;
        }
        sized.changed_at = now;
        Some(target_of(view.function, target))
    }
}

impl Minute {
    fn measure(&mut self, view: &FunctionView, seen: &Observation) {
        let ready = view.ready.get();
        let is_busy = view.in_flight > 0 || view.completions > 0;
        // Stale measurements have already been counted.
        if ready == 0 || !is_busy || seen.age() > seen.window {
            return;
        }
        let millicores = view.cpu_used_cores / f64::from(ready) * 1000.0;
        let seconds = seen.window.as_secs_f64();
        if millicores.is_finite() {
            self.millicore_seconds += millicores * seconds;
            self.seconds += seconds;
        }
        self.memory_peak_mib = self.memory_peak_mib.max(view.memory_peak_mib);
    }
}

impl Sizing {
    fn sample(&mut self, container: &str, at: i64, now: i64) {
        let minute = std::mem::take(&mut self.minute);
        if minute.seconds > 0.0 {
            let millicores = (minute.millicore_seconds / minute.seconds) as i64;
            self.recommender.cpu(("instance", container), millicores, at, now);
        }
        if minute.memory_peak_mib > 0.0 && minute.memory_peak_mib.is_finite() {
            let bytes = (minute.memory_peak_mib * MIB) as i64;
            self.recommender.memory(("instance", container), bytes, at, now);
        }
    }
}

pub(super) fn second(at: Timestamp) -> i64 {
    (at.as_nanos() / 1_000_000_000) as i64
}

fn is_accepted(
    updater: &Updater<'_>,
    view: &FunctionView,
    container: &str,
    (changed_at, now): (i64, i64),
) -> bool {
    let allocation = view.allocation;
    let request = Resources::both(
        i64::from(allocation.cpu.get()),
        i64::from(allocation.memory.get()) * MIB as i64,
    );
    let container = UpdaterContainer {
        name: container.to_owned(),
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

impl Default for Vpa {
    fn default() -> Self {
        let (recommender, updater) = (RecommenderSettings::default(), UpdaterSettings::default());
        Self::new(recommender, updater, VpaSettings::default())
    }
}

impl Policy for Vpa {
    fn name(&self) -> &str {
        "vpa"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let targets: Vec<Target> =
            seen.functions.iter().filter_map(|view| self.target(view, seen)).collect();
        let reason = format!("vpa: {} functions resized", targets.len());
        Ok(Decision { targets, reason })
    }
}

impl Vpa {
    /// Current recommendation for `function`; `None` if it was never seen.
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
