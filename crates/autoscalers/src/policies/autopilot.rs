//! Google's Autopilot as a tick policy.
//!
//! ```text
//!  Observation ─► CPU per ready instance, memory peak ─► collected for one window (5 min)
//!              ─► window recommender or ensemble ─► CPU and memory of each instance
//! ```
//!
//! With ticks of 10 s a window holds 30 samples; a wish is made when it is full, and only then. A function
//! that used 0.4 cores in all of them is given the limit that covers 0.4, and 15 % on top.

use std::collections::BTreeMap;

use windfall_core::{
    Decision, FunctionId, FunctionView, Observation, Policy, PolicyError, Setting, Target,
};

use crate::autopilot::{Ensemble, EnsembleSettings, Ladder, WindowRecommender, WindowSettings};

/// Which of the two recommenders speaks.
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

#[derive(Clone, Debug)]
struct Job {
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
    /// A policy that decides once per `window_seconds` (300 in the paper).
    pub fn new(kind: AutopilotKind, window_seconds: i64) -> Self {
        Self { kind, window_seconds, functions: BTreeMap::new() }
    }

    fn begin(kind: &AutopilotKind, now: i64) -> Job {
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
        Job { cpu, memory, cpu_samples, memory_samples, window_began: now }
    }
}

impl Default for Autopilot {
    fn default() -> Self {
        let kind = AutopilotKind::Window(WindowSettings::serving_cpu(), WindowSettings::memory());
        Self::new(kind, 300)
    }
}

impl Job {
    fn sample(&mut self, view: &FunctionView) {
        let ready = view.ready.get();
        if ready > 0 && (view.in_flight > 0 || view.completions > 0) {
            self.cpu_samples.push(view.cpu_used_cores / f64::from(ready));
            self.memory_samples.push(view.memory_peak_mib);
        }
    }

    fn close_window(&mut self, function: FunctionId, now: i64) -> Target {
        self.window_began = now;
        let set = |limit: Option<f64>| limit.map_or(Setting::Keep, Setting::Set);
        let target = Target {
            cpu_cores: set(self.cpu.observe(now, &self.cpu_samples)),
            memory_mib: set(self.memory.observe(now, &self.memory_samples)),
            ..Target::keep(function)
        };
        self.cpu_samples.clear();
        self.memory_samples.clear();
        target
    }
}

impl Policy for Autopilot {
    fn name(&self) -> &str {
        match self.kind {
            AutopilotKind::Window(..) => "autopilot-window",
            AutopilotKind::Ensemble(..) => "autopilot-ensemble",
        }
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let now = (seen.now.as_nanos() / 1_000_000_000) as i64;
        let mut targets = Vec::new();
        for view in &seen.functions {
            let kind = &self.kind;
            let job =
                (self.functions.entry(view.function)).or_insert_with(|| Self::begin(kind, now));
            // Old numbers have been seen before.
            if seen.age() <= seen.window {
                job.sample(view);
            }
            if now - job.window_began < self.window_seconds {
                continue;
            }
            let target = job.close_window(view.function, now);
            if target != Target::keep(view.function) {
                targets.push(target);
            }
        }
        let reason = format!("{}: {} functions resized", self.name(), targets.len());
        Ok(Decision { targets, reason })
    }
}
