//! Google's Autopilot as a tick policy.
//!
//! ```text
//!  Observation ─► CPU per ready instance, memory peak ─► collected for one window (5 min)
//!              ─► window recommender or ensemble ─► CPU and memory of each instance
//! ```
//!
//! With ticks of 10 s a window holds 30 samples; a target is set only when the window is full. A function that used
//! 0.4 cores in all of them gets the limit that covers 0.4, plus 15 %.

use std::collections::BTreeMap;

use windfall_core::{Decision, FunctionId, Observation, Policy, PolicyError, Setting, Target};

use crate::autopilot::{Ensemble, EnsembleSettings, Ladder, WindowRecommender, WindowSettings};

/// Which of the two recommenders is used.
#[derive(Clone, Debug, PartialEq)]
pub enum AutopilotKind {
    /// The window recommender, with its settings for CPU and memory.
    Window(WindowSettings, WindowSettings),
    /// The ensemble, with its settings for CPU and memory.
    Ensemble(EnsembleSettings, EnsembleSettings),
}

/// Autopilot, one per function.
#[derive(Clone, Debug)]
pub struct Autopilot {
    kind: AutopilotKind,
    window_seconds: i64,
    functions: BTreeMap<FunctionId, Job>,
}

/// State of one function.
#[derive(Clone, Debug)]
pub(super) struct Job {
    cpu: Limiter,
    memory: Limiter,
    cpu_samples: Vec<f64>,
    memory_samples: Vec<f64>,
    window_began: i64,
}

#[derive(Clone, Debug)]
enum Limiter {
    Window(WindowRecommender),
    Ensemble(Ensemble),
}

impl Limiter {
    fn observe(&mut self, at: i64, samples: &[f64]) -> Option<f64> {
        match self {
            Self::Window(recommender) => recommender.observe(at, samples),
            Self::Ensemble(ensemble) => ensemble.observe(samples),
        }
    }
}

impl Autopilot {
    /// Creates a policy that decides once per `window_seconds` (300 in the paper).
    pub fn new(kind: AutopilotKind, window_seconds: i64) -> Self {
        Self { kind, window_seconds, functions: BTreeMap::new() }
    }
}

impl Default for AutopilotKind {
    /// The window recommender of a serving job.
    fn default() -> Self {
        Self::Window(WindowSettings::serving_cpu(), WindowSettings::memory())
    }
}

impl Default for Autopilot {
    fn default() -> Self {
        Self::new(AutopilotKind::default(), 300)
    }
}

impl Job {
    /// Creates a job whose first window begins at second `now`.
    pub(super) fn new(kind: &AutopilotKind, now: i64) -> Self {
        let (cpu, memory) = match kind.clone() {
            AutopilotKind::Window(cpu, memory) => (
                Limiter::Window(WindowRecommender::new(cpu, Ladder::cpu())),
                Limiter::Window(WindowRecommender::new(memory, Ladder::memory())),
            ),
            AutopilotKind::Ensemble(cpu, memory) => (
                Limiter::Ensemble(Ensemble::new(cpu, Ladder::cpu())),
                Limiter::Ensemble(Ensemble::new(memory, Ladder::memory())),
            ),
        };
        let (cpu_samples, memory_samples) = (Vec::new(), Vec::new());
        Self { cpu, memory, cpu_samples, memory_samples, window_began: now }
    }

    /// Adds one measurement, in cores and MiB.
    pub(super) fn sample(&mut self, cpu_cores: f64, memory_mib: f64) {
        self.cpu_samples.push(cpu_cores);
        self.memory_samples.push(memory_mib);
    }

    /// Whether the window has ended.
    pub(super) fn is_due(&self, now: i64, window_seconds: i64) -> bool {
        now - self.window_began >= window_seconds
    }

    /// Returns the new limits of CPU and memory; `None` until there was a sample.
    pub(super) fn close_window(&mut self, now: i64) -> (Option<f64>, Option<f64>) {
        self.window_began = now;
        let limits = (
            self.cpu.observe(now, &self.cpu_samples),
            self.memory.observe(now, &self.memory_samples),
        );
        self.cpu_samples.clear();
        self.memory_samples.clear();
        limits
    }
}

impl Policy for Autopilot {
    fn name(&self) -> &str {
        "autopilot"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let now = (seen.now.as_nanos() / 1_000_000_000) as i64;
        let mut targets = Vec::new();
        for view in &seen.functions {
            let kind = &self.kind;
            let job = self.functions.entry(view.function).or_insert_with(|| Job::new(kind, now));
            let ready = view.ready.get();
            let is_busy = view.in_flight > 0 || view.completions > 0;
            // Stale measurements have already been counted.
            if ready > 0 && is_busy && seen.age() <= seen.window {
                job.sample(view.cpu_used_cores / f64::from(ready), view.memory_peak_mib);
            }
            if !job.is_due(now, self.window_seconds) {
                continue;
            }
            let set = |limit: Option<f64>| limit.map_or(Setting::Keep, Setting::Set);
            let (cpu, memory) = job.close_window(now);
            let (cpu_cores, memory_mib) = (set(cpu), set(memory));
            let target = Target { cpu_cores, memory_mib, ..Target::keep(view.function) };
            if target != Target::keep(view.function) {
                targets.push(target);
            }
        }
        let reason = format!("autopilot: {} functions resized", targets.len());
        Ok(Decision { targets, reason })
    }
}
