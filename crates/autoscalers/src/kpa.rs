//! Knative's pod autoscaler (KPA), as in Knative Serving v1.23 (module v0.50.0).
//!
//! ```text
//!   1 s                           2 s                                  on every wish
//!   sampling ─► MetricsWindow ─► Decider ──────────────────────────► Reconciler ─► replicas
//!   n of N pods  stable, panic    counts, rates, panic, delay, burst   bounds, zero, activators
//! ```
//!
//! One pod, 300 requests in flight, defaults: the decider wants ceil(300 / 70) = 5 and panics; for the
//! next 60 s it never wants fewer. The parts are pure functions of what they are told and of the second
//! they are asked in; [`Autoscaler`] joins windows and decider for one revision.

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
pub use sampling::{Stat, pods_to_ask, sample_size, scaled_up};
pub use scale::{Averages, Decider, DeciderSettings, Scale, TICK_SECONDS};
pub use settings::{
    ClusterSettings, Metric, RevisionSettings, TARGET_MIN, WINDOW_MAX_SECONDS, WINDOW_MIN_SECONDS,
};

/// How the windows of a revision are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSettings {
    /// Length of the stable window.
    pub stable_seconds: u32,
    /// Length of the panic window.
    pub panic_seconds: u32,
    /// How buckets become one number.
    pub aggregation: Aggregation,
    /// Whether pods are scraped; if not, no data means no load.
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
    /// An autoscaler made at second `now` with `ready` pods there.
    pub fn new(windows: WindowSettings, settings: DeciderSettings, now: u64, ready: u32) -> Self {
        Self {
            stable: MetricsWindow::new(windows.stable_seconds, windows.aggregation),
            panic: MetricsWindow::new(windows.panic_seconds, windows.aggregation),
            is_scraped: windows.is_scraped,
            decider: Decider::new(settings, now, ready),
        }
    }

    /// Takes in the revision's total of the metric in `second`.
    pub fn record(&mut self, second: u64, value: f64) {
        self.stable.record(second, value);
        self.panic.record(second, value);
    }

    /// What the windows say at second `now`; nothing after a silent window.
    pub fn averages(&self, now: u64) -> Option<Averages> {
        if self.is_scraped && self.stable.is_empty(now) {
            return None;
        }
        Some(Averages { stable: self.stable.average(now), panic: self.panic.average(now) })
    }

    /// The wish at second `now` with `ready` pods; nothing without data.
    pub fn scale(&mut self, now: u64, ready: u32) -> Option<Scale> {
        let seen = self.averages(now);
        self.decider.scale(now, ready, seen)
    }

    /// Takes over changed settings at second `now`, as after an edit of the annotations.
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
    /// How the windows of a revision are made.
    pub fn windows(&self, revision: &RevisionSettings) -> WindowSettings {
        WindowSettings {
            stable_seconds: self.stable_window_seconds(revision),
            panic_seconds: self.panic_window_seconds(revision),
            aggregation: revision.aggregation,
            is_scraped: self.is_scraped(revision),
        }
    }
}
