//! Knative's pod autoscaler (KPA), as in Knative Serving v1.23 (module v0.50.0).
//!
//! ```text
//!   1 s                           2 s                                  on every decision
//!   sampling ─► MetricsWindow ─► Decider ──────────────────────────► Reconciler ─► replicas
//!   n of N pods  stable, panic    counts, rates, panic, delay, burst   bounds, zero, activators
//! ```
//!
//! One pod, 300 requests in flight, defaults: the decider wants ceil(300 / 70) = 5 pods and enters panic mode; for
//! the next 60 s it never wants fewer. The parts are pure functions of their inputs and of the current second;
//! [`Autoscaler`] combines windows and decider for one revision.

mod delay_window;
mod metrics_window;
mod reconcile;
mod sampling;
mod scale;
#[cfg(test)]
mod scripted_stories;
mod settings;

pub use delay_window::DelayWindow;
pub use metrics_window::{Aggregation, MetricsWindow};
pub use reconcile::{Activity, Outcome, PathMode, Reconciler, Seen};
pub use sampling::{Stat, extrapolate, pods_to_scrape, sample_size};
pub use scale::{Averages, Decider, DeciderSettings, Scale, TICK_SECONDS};
pub use settings::{
    ClusterSettings, Metric, RevisionSettings, TARGET_MIN, WINDOW_MAX_SECONDS, WINDOW_MIN_SECONDS,
};

/// Settings of a revision's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSettings {
    /// Length of the stable window.
    pub stable_seconds: u32,
    /// Length of the panic window.
    pub panic_seconds: u32,
    /// How buckets are aggregated.
    pub aggregation: Aggregation,
    /// Whether pods are scraped; if not, missing data means no load.
    pub is_scraped: bool,
}

/// Windows and decider of one revision.
#[derive(Clone, Debug)]
pub struct Autoscaler {
    stable: MetricsWindow,
    panic: MetricsWindow,
    is_scraped: bool,
    decider: Decider,
}

impl Autoscaler {
    /// Creates an autoscaler at second `now` with `ready` pods.
    pub fn new(windows: WindowSettings, settings: DeciderSettings, now: u64, ready: u32) -> Self {
        Self {
            stable: MetricsWindow::new(windows.stable_seconds, windows.aggregation),
            panic: MetricsWindow::new(windows.panic_seconds, windows.aggregation),
            is_scraped: windows.is_scraped,
            decider: Decider::new(settings, now, ready),
        }
    }

    /// Records the revision's total of the metric in `second`.
    pub fn record(&mut self, second: u64, value: f64) {
        self.stable.record(second, value);
        self.panic.record(second, value);
    }

    /// Averages of the windows at second `now`; `None` after a window without samples.
    pub fn averages(&self, now: u64) -> Option<Averages> {
        if self.is_scraped && self.stable.is_empty(now) {
            return None;
        }
        Some(Averages { stable: self.stable.average(now), panic: self.panic.average(now) })
    }

    /// Decides at second `now` with `ready` pods; `None` without data.
    pub fn scale(&mut self, now: u64, ready: u32) -> Option<Scale> {
        let seen = self.averages(now);
        self.decider.scale(now, ready, seen)
    }

    /// Applies changed settings at second `now`, as after an edit of the annotations.
    pub fn update(&mut self, windows: WindowSettings, settings: DeciderSettings, now: u64) {
        self.stable.resize(windows.stable_seconds, now);
        self.panic.resize(windows.panic_seconds, now);
        self.is_scraped = windows.is_scraped;
        self.decider.update(settings);
    }

    /// Its decider.
    pub fn decider(&self) -> &Decider {
        &self.decider
    }
}

impl ClusterSettings {
    /// Settings of a revision's windows.
    pub fn windows(&self, revision: &RevisionSettings) -> WindowSettings {
        WindowSettings {
            stable_seconds: self.stable_window_seconds(revision),
            panic_seconds: self.panic_window_seconds(revision),
            aggregation: revision.aggregation,
            is_scraped: self.is_scraped(revision),
        }
    }
}
