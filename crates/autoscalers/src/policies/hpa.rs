//! The HorizontalPodAutoscaler as a tick policy.
//!
//! ```text
//!  Observation ─► ready instances as Running pods with equal shares of the CPU used,
//!                 starting ones as Pending pods
//!              ─► metrics: cpu, memory; Pods or External metrics `concurrency` and `requests-per-second`
//!              ─► Controller, at most once per sync period ─► instances
//! ```
//!
//! Four ready instances of 1 core that use 3.6 cores together are four pods at 90 %; with a target of 50 %
//! the target is ceil(1.8 · 4) = 8. Stale measurements are passed as missing samples.
//!
//! Like a Deployment, a function has `spec.replicas` from the start, at least `minReplicas`, even before an instance
//! exists; every sync repeats it. Additional instances that the platform starts by itself stay for one sync period when
//! they become idle.

use std::collections::BTreeMap;

use windfall_core::{
    Decision, Duration, FunctionId, FunctionView, Observation, Policy, PolicyError, Setting,
    Target, TickRecord,
};

use crate::hpa::{
    Container, ContainerUsage, Controller, ControllerSettings, Measured, MetricSpec, Phase, Pod,
    Ready, Sample, Seen, Source, Spec, Usage,
};

/// Metrics other than CPU and memory that an observation contains.
const METRICS: [&str; 2] = ["concurrency", "requests-per-second"];

/// Maximum number of pods that are modelled individually.
const MOST_PODS: u32 = 100_000;

/// The HorizontalPodAutoscaler, one per function.
#[derive(Clone, Debug)]
pub struct Hpa {
    settings: ControllerSettings,
    spec: Spec,
    sync_period_ms: i64,
    functions: BTreeMap<FunctionId, Scaled>,
}

#[derive(Clone, Debug)]
struct Scaled {
    controller: Controller,
    /// `spec.replicas`: the last target, or the observed count.
    replicas: i32,
    synced_ms: Option<i64>,
}

impl Hpa {
    /// Creates a policy with the controller's settings; every function has the same spec. Syncs are at least
    /// `sync_period_ms` apart (15 000 by default upstream).
    pub fn new(settings: ControllerSettings, spec: Spec, sync_period_ms: i64) -> Self {
        Self { settings, spec, sync_period_ms, functions: BTreeMap::new() }
    }

    /// Describes the first metric of `spec` that is not in observations, with which every sync would fail, and lists the
    /// available ones.
    pub fn unmeasured(spec: &Spec) -> Option<String> {
        let is_measured = |metric: &&MetricSpec| match &metric.source {
            Source::Resource(_) | Source::ContainerResource(..) => true,
            Source::Pods(name) | Source::External(name) => METRICS.contains(&name.as_str()),
            Source::Object { .. } => false,
        };
        let unknown = spec.metrics.iter().find(|metric| !is_measured(metric))?;
        Some(format!(
            "{} is not measured here; known are cpu and memory, and {} as Pods or External metrics",
            unknown.title(),
            METRICS.join(" and ")
        ))
    }

    /// Name of the container: as in the spec, if that names one.
    fn container(&self) -> String {
        let named = self.spec.metrics.iter().find_map(|metric| match &metric.source {
            Source::ContainerResource(_, name) => Some(name.clone()),
            _ => None,
        });
        named.unwrap_or_else(|| "function".to_owned())
    }

    fn least(&self) -> i32 {
        self.spec.min_replicas.max(0)
    }
}

impl Default for Hpa {
    /// CPU at 80 %, 1 to 100 instances, every 15 s.
    fn default() -> Self {
        let metrics = Spec::default_metrics();
        let spec = Spec { min_replicas: 1, max_replicas: 100, metrics, behavior: None };
        Self::new(ControllerSettings::default(), spec, 15_000)
    }
}

impl Policy for Hpa {
    fn name(&self) -> &str {
        "hpa"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let now_ms = (seen.now.as_nanos() / 1_000_000) as i64;
        let (mut decision, mut rescaled) = (Decision::default(), 0);
        let (container, least) = (self.container(), self.least());
        let keep_alive = Duration::from_millis(self.sync_period_ms.max(0) as u64);
        for view in &seen.functions {
            let scaled = self.functions.entry(view.function).or_insert_with(|| Scaled {
                controller: Controller::new(self.settings.clone(), self.spec.clone()),
                replicas: standing(view).max(least),
                synced_ms: None,
            });
            if scaled.synced_ms.is_some_and(|last| now_ms - last < self.sync_period_ms) {
                continue;
            }
            scaled.synced_ms = Some(now_ms);
            let pods = as_pods(view, seen, scaled.replicas, &container);
            let synced = scaled.controller.sync(&pods);
            rescaled += usize::from(synced.is_rescaled);
            scaled.replicas = synced.desired.max(0);
            decision.targets.push(Target {
                instances: Setting::Set(f64::from(scaled.replicas)),
                keep_alive: Setting::Set(keep_alive),
                ..Target::keep(view.function)
            });
        }
        decision.reason = format!("hpa: {rescaled} of {} rescaled", decision.targets.len());
        Ok(decision)
    }

    /// `spec.replicas` is what the platform accepted, or the existing count if the target was held back, refused or failed.
    fn feedback(&mut self, tick: &TickRecord) {
        let least = self.least();
        for target in &tick.decision.targets {
            let view = tick.observation.function(target.function);
            let (Some(scaled), Some(view)) = (self.functions.get_mut(&target.function), view)
            else {
                continue;
            };
            scaled.replicas = standing(view).max(least);
        }
        for settled in tick.observation.settled.iter().filter(|one| one.has_failed()) {
            let view = tick.observation.function(settled.function);
            if let (Some(scaled), Some(view)) = (self.functions.get_mut(&settled.function), view) {
                scaled.replicas = standing(view).max(least);
            }
        }
        for planned in tick.accepted() {
            let scaled = self.functions.get_mut(&planned.function);
            if let (Some(scaled), Some(count)) = (scaled, planned.instances.value()) {
                scaled.replicas = whole(count.get());
            }
        }
    }
}

fn standing(view: &FunctionView) -> i32 {
    whole(view.ready.get().saturating_add(view.starting.get()))
}

fn whole(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Thousandths; 0 for NaN.
fn milli(value: f64) -> i64 {
    if value.is_finite() { (value * 1000.0).round() as i64 } else { 0 }
}

/// A function's instances as pods, as the controller would see them.
fn as_pods(view: &FunctionView, seen: &Observation, replicas: i32, container: &str) -> Seen {
    let now_ms = (seen.now.as_nanos() / 1_000_000) as i64;
    let ready = view.ready.get();
    let share = |total: f64| total / f64::from(ready.max(1));
    let rps = f64::from(view.arrivals) / seen.window.as_secs_f64().max(1e-9);
    let is_fresh = seen.age() <= seen.window;
    let at_ms = (seen.taken_at.as_nanos() / 1_000_000) as i64;
    let window_ms = (seen.window.as_nanos() / 1_000_000) as i64;
    let sample = |value: f64| Sample { value_m: milli(value), at_ms, window_ms };
    let custom = [(METRICS[0], view.mean_concurrency), (METRICS[1], rps)];
    let measured = Measured {
        usage: Some(Usage {
            at_ms,
            window_ms,
            containers: vec![ContainerUsage {
                name: container.to_owned(),
                cpu_m: Some(milli(share(view.cpu_used_cores))),
                memory_m: Some(milli(view.memory_peak_mib * 1_048_576.0)),
            }],
        }),
        custom: custom.map(|(name, total)| (name.to_owned(), sample(share(total)))).into(),
    };
    // The platform does not report since when an instance is ready; assume long enough for its samples to count.
    let long_ago = i64::MIN / 4;
    let pod = |number: u32| Pod {
        name: format!("instance-{number}"),
        phase: if number < ready { Phase::Running } else { Phase::Pending },
        ready: (number < ready).then_some((Ready::True, long_ago)),
        started_at_ms: (number < ready).then_some(long_ago),
        containers: vec![Container {
            name: container.to_owned(),
            cpu_request_m: Some(i64::from(view.allocation.cpu.get())),
            memory_request_m: Some(i64::from(view.allocation.memory.get()) * 1_048_576_000),
        }],
        measured: if number < ready && is_fresh { measured.clone() } else { Measured::default() },
        ..Pod::default()
    };
    let outside =
        custom.map(|(name, total)| (name.to_owned(), is_fresh.then(|| vec![milli(total)])));
    Seen {
        now_ms,
        replicas,
        status_replicas: standing(view),
        pods: (0..ready.saturating_add(view.starting.get()).min(MOST_PODS)).map(pod).collect(),
        external: outside.into(),
        ..Seen::default()
    }
}
