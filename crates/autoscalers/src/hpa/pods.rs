//! Pods as the controller sees them, and their groups for one metric.
//!
//! ```text
//!  deleted or Failed ───────────────────────────────► ignored   sample dropped
//!  Pending ─────────────────────────────────────────► unready   sample dropped; 0 when scaling up
//!  no sample ───────────────────────────────────────► missing   assumed, against the direction
//!  cpu only: no Ready condition or no start time ───► unready
//!            within the initialization period:
//!              not ready, or sample before ready + window ─► unready
//!            later: not ready and never was ────────► unready
//!  all others ──────────────────────────────────────► ready
//! ```
//!
//! A pod started at 0 s and ready at 40 s, window 30 s, initialization period 300 s: its sample at 69 s covers
//! time before it was ready, so the pod counts as unready; with its sample at 70 s it is ready.

use std::collections::BTreeMap;

use super::spec::{ControllerSettings, Resource, Source};

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have been started.
    Pending,
    /// At least one container is running.
    #[default]
    Running,
    /// All containers terminated successfully.
    Succeeded,
    /// All containers terminated, at least one with a failure.
    Failed,
}

/// `status` of the condition Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`: the node does not report. It does not count as `False`.
    Unknown,
}

/// A container of a pod's spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// CPU request in millicores.
    pub cpu_request_m: Option<i64>,
    /// Memory request in thousandths of a byte.
    pub memory_request_m: Option<i64>,
}

impl Container {
    fn request(&self, resource: Resource) -> Option<i64> {
        match resource {
            Resource::Cpu => self.cpu_request_m,
            Resource::Memory => self.memory_request_m,
        }
    }
}

/// Usage of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    /// Its name.
    pub name: String,
    /// Millicores.
    pub cpu_m: Option<i64>,
    /// Thousandths of a byte.
    pub memory_m: Option<i64>,
}

impl ContainerUsage {
    fn of(&self, resource: Resource) -> Option<i64> {
        match resource {
            Resource::Cpu => self.cpu_m,
            Resource::Memory => self.memory_m,
        }
    }
}

/// An entry of the resource metrics API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When the window ended.
    pub at_ms: i64,
    /// Its length.
    pub window_ms: i64,
    /// The containers that were measured.
    pub containers: Vec<ContainerUsage>,
}

/// Measurements of one pod, whether or not the pod is still listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The entry of the resource metrics API.
    pub usage: Option<Usage>,
    /// Entries of the custom metrics API, by name of the metric.
    pub custom: BTreeMap<String, Sample>,
}

/// One pod of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its name, unique among pods and orphans.
    pub name: String,
    /// Its phase.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub is_deleted: bool,
    /// The condition Ready and when it last changed.
    pub ready: Option<(Ready, i64)>,
    /// When it was started.
    pub started_at_ms: Option<i64>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its measurements.
    pub measured: Measured,
}

/// A metric of one pod, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The value.
    pub value_m: i64,
    /// When its window ended.
    pub at_ms: i64,
    /// The window's length.
    pub window_ms: i64,
}

/// Number of pods in each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Counted with their samples.
    pub ready: usize,
    /// Too young to count.
    pub unready: usize,
    /// Without a sample.
    pub missing: usize,
    /// Being deleted or failed.
    pub ignored: usize,
}

/// Samples of a pod metric by pod, and the grouped pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouped<'a> {
    pub(super) samples: BTreeMap<&'a str, Sample>,
    pub(super) unready: Vec<&'a str>,
    pub(super) missing: Vec<&'a str>,
    pub(super) counts: GroupCounts,
}

/// The sample of a metric in the measurements of a pod. The outer `None` means that there is no entry at all.
fn sample(measured: &Measured, source: &Source) -> Option<Option<Sample>> {
    let (resource, container) = match source {
        Source::Resource(resource) => (*resource, None),
        Source::ContainerResource(resource, name) => (*resource, Some(name)),
        Source::Pods(name) => return measured.custom.get(name).copied().map(Some),
        Source::Object { .. } | Source::External(_) => return None,
    };
    let usage = measured.usage.as_ref()?;
    let value = match container {
        Some(wanted) => {
            usage.containers.iter().find(|it| it.name == *wanted).and_then(|it| it.of(resource))
        }
        None if usage.containers.is_empty() => None,
        None => (usage.containers.iter())
            .try_fold(0_i64, |sum, it| Some(sum.wrapping_add(it.of(resource)?))),
    };
    let Usage { at_ms, window_ms, .. } = *usage;
    Some(value.map(|value_m| Sample { value_m, at_ms, window_ms }))
}

/// Reads a pod metric and groups the pods; `None` if the API has no entry at all.
pub(super) fn group<'a>(
    pods: &'a [Pod],
    orphans: &'a [(String, Measured)],
    source: &Source,
    settings: &ControllerSettings,
    now_ms: i64,
) -> Option<Grouped<'a>> {
    let listed = pods.iter().map(|pod| (pod.name.as_str(), &pod.measured));
    let gone = orphans.iter().map(|(name, measured)| (name.as_str(), measured));
    let entries: Vec<(&str, Option<Sample>)> = listed
        .chain(gone)
        .filter_map(|(name, measured)| Some((name, sample(measured, source)?)))
        .collect();
    if entries.is_empty() {
        return None;
    }
    let samples = entries.into_iter().filter_map(|(name, found)| Some((name, found?))).collect();
    let mut grouped = Grouped { samples, ..Grouped::default() };
    for pod in pods {
        grouped.place(pod, source, settings, now_ms);
    }
    Some(grouped)
}

impl<'a> Grouped<'a> {
    fn place(&mut self, pod: &'a Pod, source: &Source, settings: &ControllerSettings, now_ms: i64) {
        let name = pod.name.as_str();
        if pod.is_deleted || pod.phase == Phase::Failed {
            self.counts.ignored += 1;
            self.samples.remove(name);
            return;
        }
        let found = self.samples.get(name).copied();
        let is_cpu = matches!(
            source,
            Source::Resource(Resource::Cpu) | Source::ContainerResource(Resource::Cpu, _)
        );
        let is_unready = match found {
            _ if pod.phase == Phase::Pending => true,
            None => {
                self.counts.missing += 1;
                self.missing.push(name);
                return;
            }
            Some(sample) => is_cpu && is_too_young(pod, sample, settings, now_ms),
        };
        if is_unready {
            self.counts.unready += 1;
            self.unready.push(name);
            self.samples.remove(name);
        } else {
            self.counts.ready += 1;
        }
    }
}

/// Whether a pod's CPU usage may still be dominated by its start.
fn is_too_young(pod: &Pod, sample: Sample, settings: &ControllerSettings, now_ms: i64) -> bool {
    let (Some((ready, changed_at)), Some(started_at)) = (pod.ready, pod.started_at_ms) else {
        return true;
    };
    if started_at.saturating_add(settings.cpu_initialization_period_ms) > now_ms {
        return ready == Ready::False || sample.at_ms < changed_at.saturating_add(sample.window_ms);
    }
    // The pod was never ready if its condition has not changed since shortly after the start.
    let delay = settings.initial_readiness_delay_ms;
    ready == Ready::False && started_at.saturating_add(delay) > changed_at
}

/// Requests of every listed pod, including ignored ones; `None` if one is not set.
pub(super) fn requests<'a>(pods: &'a [Pod], source: &Source) -> Option<BTreeMap<&'a str, i64>> {
    let (resource, container) = match source {
        Source::Resource(resource) => (*resource, None),
        Source::ContainerResource(resource, name) => (*resource, Some(name)),
        Source::Pods(_) | Source::Object { .. } | Source::External(_) => return None,
    };
    pods.iter()
        .map(|pod| {
            let request = match container {
                Some(wanted) => {
                    pod.containers.iter().find(|it| it.name == *wanted)?.request(resource)?
                }
                None => (pod.containers.iter())
                    .try_fold(0_i64, |sum, it| Some(sum.wrapping_add(it.request(resource)?)))?,
            };
            Some((pod.name.as_str(), request))
        })
        .collect()
}
