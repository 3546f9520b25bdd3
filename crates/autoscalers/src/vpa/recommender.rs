//! The recommender: pods and samples in, recommendations, checkpoints and garbage out.
//!
//! ```text
//!  pod start ─► container states ──samples──► aggregate per (revision, container)
//!                                                   │ merged per container, with loaded checkpoints
//!  tick ────────────────────────────────────────────┴─► recommend ─► save? ─► collect garbage
//! ```
//!
//! Pods `a-1` and `a-2` of one revision with a container `app` add to the same aggregate; after a rollout `b-1` adds to a
//! second one, and both are merged at the tick, until the first has had no CPU sample for 8 · 24 h.

use std::collections::BTreeMap;

use super::aggregate::{Aggregate, ContainerRecommendation, ContainerState};
use super::checkpoint::Checkpoint;
use super::estimate;
use super::settings::{RecommenderSettings, VpaSettings};

/// The recommender of one VerticalPodAutoscaler. Times are Unix seconds; `now` never goes back.
#[derive(Clone, Debug)]
pub struct Recommender {
    settings: RecommenderSettings,
    vpa: VpaSettings,
    pods: BTreeMap<String, PodState>,
    aggregates: BTreeMap<AggregateKey, Aggregate>,
    loaded: BTreeMap<String, Aggregate>,
    collected_at: Option<i64>,
}

/// Container name, then revision: aggregates of one name are adjacent.
type AggregateKey = (String, String);

#[derive(Clone, Debug)]
struct PodState {
    revision: String,
    containers: BTreeMap<String, ContainerState>,
}

impl Recommender {
    /// Creates a recommender without history.
    pub fn new(settings: RecommenderSettings, vpa: VpaSettings) -> Self {
        Self {
            settings,
            vpa,
            pods: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            loaded: BTreeMap::new(),
            collected_at: None,
        }
    }

    /// Creates a recommender from checkpoints.
    pub fn restored(
        settings: RecommenderSettings,
        vpa: VpaSettings,
        saved: &BTreeMap<String, Checkpoint>,
        now: i64,
    ) -> Self {
        let mut recommender = Self::new(settings, vpa);
        for (container, checkpoint) in saved {
            let mut state = Aggregate::new(&recommender.settings, None, now);
            state.load(checkpoint);
            recommender.loaded.insert(container.clone(), state);
        }
        recommender
    }

    /// Adds a running pod.
    pub fn start_pod(&mut self, pod: &str, revision: &str, containers: &[String], now: i64) {
        let states = containers.iter().map(|name| (name.clone(), ContainerState::default()));
        let state = PodState { revision: revision.to_owned(), containers: states.collect() };
        self.pods.insert(pod.to_owned(), state);
        for container in containers {
            self.with_aggregate((pod, container), now);
        }
    }

    /// Removes a pod; its samples are kept.
    pub fn stop_pod(&mut self, pod: &str) {
        self.pods.remove(pod);
    }

    /// Names and revisions of the running pods with their containers, in order of names.
    pub fn running(&self) -> Vec<(String, String, Vec<String>)> {
        let names = |state: &PodState| state.containers.keys().cloned().collect();
        let pods = self.pods.iter();
        pods.map(|(pod, state)| (pod.clone(), state.revision.clone(), names(state))).collect()
    }

    /// States of the running containers, by pod and name.
    pub fn container_states(&self) -> impl Iterator<Item = (&str, &str, &ContainerState)> {
        self.pods.iter().flat_map(|(pod, state)| {
            let containers = state.containers.iter();
            containers.map(move |(name, container)| (pod.as_str(), name.as_str(), container))
        })
    }

    /// Adds a CPU sample of a container (pod, name) taken at `at`. Returns whether it was accepted.
    pub fn cpu(&mut self, of: (&str, &str), millicores: i64, at: i64, now: i64) -> bool {
        let accepted = self.state(of).is_some_and(|state| state.accepts_cpu(millicores, at));
        if accepted && let Some((state, aggregate)) = self.with_aggregate(of, now) {
            state.add_cpu(aggregate, millicores, at);
        }
        accepted
    }

    /// Adds a memory sample of a container (pod, name) taken at `at`. Returns whether it was accepted.
    pub fn memory(&mut self, of: (&str, &str), bytes: i64, at: i64, now: i64) -> bool {
        let accepted = self.state(of).is_some_and(|state| state.accepts_memory(bytes, at));
        if accepted && let Some((state, aggregate)) = self.with_aggregate(of, now) {
            state.add_memory(aggregate, bytes, at);
        }
        accepted
    }

    /// Adds an out-of-memory kill at `at` of a container that requests `requested` bytes. Returns whether it was accepted.
    pub fn oom(&mut self, of: (&str, &str), requested: i64, at: i64, now: i64) -> bool {
        match self.with_aggregate(of, now) {
            Some((state, aggregate)) => state.add_oom(aggregate, requested, at),
            None => false,
        }
    }

    fn state(&self, (pod, container): (&str, &str)) -> Option<&ContainerState> {
        self.pods.get(pod)?.containers.get(container)
    }

    /// A running container and its aggregate, which is created again if it was collected.
    fn with_aggregate(
        &mut self,
        (pod, container): (&str, &str),
        now: i64,
    ) -> Option<(&mut ContainerState, &mut Aggregate)> {
        let pod = self.pods.get_mut(pod)?;
        let state = pod.containers.get_mut(container)?;
        let policy = self.vpa.policy(container);
        let key = (container.to_owned(), pod.revision.clone());
        let aggregate = (self.aggregates.entry(key))
            .or_insert_with(|| Aggregate::new(&self.settings, policy, now));
        Some((state, aggregate))
    }

    /// Merged state per container name: all its aggregates, then the loaded checkpoint. Merging may move the parts to a
    /// newer reference, so it needs `&mut self`.
    pub fn merged(&mut self, now: i64) -> BTreeMap<String, Aggregate> {
        let mut merged: BTreeMap<String, Aggregate> = BTreeMap::new();
        let aggregates =
            self.aggregates.iter_mut().map(|((container, _), state)| (container, state));
        for (container, state) in aggregates.chain(self.loaded.iter_mut()) {
            merged
                .entry(container.clone())
                .or_insert_with(|| Aggregate::new(&self.settings, None, now))
                .merge(state);
        }
        merged
    }

    /// Recommendations from a merged state, sorted by container.
    pub fn recommend(&self, merged: &BTreeMap<String, Aggregate>) -> Vec<ContainerRecommendation> {
        let is_on =
            |container: &str| !self.vpa.policy(container).is_some_and(|policy| policy.is_off);
        let wanted: Vec<(&str, &Aggregate)> = (merged.iter())
            .map(|(container, state)| (container.as_str(), state))
            .filter(|(container, _)| is_on(container))
            .collect();
        estimate::recommend(&self.settings, &self.vpa, &wanted)
    }

    /// Checkpoints at `now`: all containers, without the peaks of windows that are still open.
    pub fn save(&mut self, now: i64) -> BTreeMap<String, Checkpoint> {
        let mut merged = self.merged(now);
        for pod in self.pods.values() {
            for (container, state) in &pod.containers {
                let is_known =
                    self.aggregates.contains_key(&(container.clone(), pod.revision.clone()));
                let open = state.window_end.filter(|end| is_known && now < *end);
                if let (Some(end), Some(target)) = (open, merged.get_mut(container)) {
                    target.memory.subtract(state.peak() as f64, 1.0, end);
                }
            }
        }
        merged.into_iter().map(|(container, state)| (container, state.save())).collect()
    }

    /// Drops aggregates that no longer receive samples, at most once per interval.
    pub fn collect_garbage(&mut self, now: i64) {
        let interval = self.settings.gc_interval_seconds;
        if self.collected_at.is_some_and(|last| now - last < interval) {
            return;
        }
        self.collected_at = Some(now);
        let pods = &self.pods;
        let is_fed = |(container, revision): &AggregateKey| {
            pods.values()
                .any(|pod| pod.revision == *revision && pod.containers.contains_key(container))
        };
        self.aggregates
            .retain(|key, state| !state.is_expired(now) && (state.samples > 0 || is_fed(key)));
    }

    /// Settings of the VerticalPodAutoscaler.
    pub fn vpa(&self) -> &VpaSettings {
        &self.vpa
    }
}
