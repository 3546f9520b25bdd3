//! Turns a desired count into pods: bounds, scale to zero, and whether activators stay in the path.
//!
//! ```text
//!   desired ─► min-scale, max-scale, initial-scale ─► 0? ─ no ─► apply
//!                                                   │
//!            Active    for the stable window? ──────┤ no: one pod stays
//!                      yes: become inactive, activators take over
//!            Inactive  activator answers, and inactive for
//!                      max(grace period, retention)? ─► apply 0
//!            Activating  apply 0 only after the progress deadline + 30 s
//! ```
//!
//! Defaults: a revision that became active at 0 s and idle at 100 s is inactive immediately (100 >= 60) and loses its
//! last pod at 130 s (grace period 30 s).

use super::settings::{ClusterSettings, RevisionSettings};

/// Minimum number of activators in the path, `minActivators` upstream.
const MIN_ACTIVATORS: f64 = 2.0;
/// Time on top of the progress deadline before an activation counts as failed.
const ACTIVATION_BUFFER_MS: u64 = 30_000;
/// Default `progress-deadline` of a revision.
const PROGRESS_DEADLINE_MS: u64 = 600_000;

/// The condition `Active` of the PodAutoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// `Unknown`: pods are starting.
    Activating,
    /// `True`.
    Active,
    /// `False`: no traffic; activators receive new requests.
    Inactive,
}

/// Which component receives requests first, `SKSOperationMode` upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMode {
    /// Activators: they buffer and balance.
    Proxy,
    /// The pods themselves.
    Serve,
}

/// Input of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Current time, milliseconds since the start of the run.
    pub now_ms: u64,
    /// The decider's desired count; `None` if there are no metrics yet.
    pub desired: Option<i32>,
    /// The decider's excess burst capacity.
    pub excess_burst_capacity: i32,
    /// Ready pods.
    pub ready: i32,
    /// Whether a probe through the public service is answered by an activator.
    pub activator_answers: bool,
}

/// Result of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The desired count in the status; `None` if unknown.
    pub want: Option<i32>,
    /// The replica count to write, if any.
    pub apply: Option<i32>,
    /// Which component receives requests first.
    pub mode: PathMode,
    /// Number of activators in the path.
    pub activators: i32,
}

/// The reconciler of one revision.
#[derive(Clone, Debug)]
pub struct Reconciler {
    cluster: ClusterSettings,
    revision: RevisionSettings,
    activity: Activity,
    activity_since_ms: u64,
    is_initialized: bool,
    mode: PathMode,
    mode_since_ms: u64,
}

impl Reconciler {
    /// Creates a new revision at `now_ms`: activating, behind activators.
    pub fn new(cluster: ClusterSettings, revision: RevisionSettings, now_ms: u64) -> Self {
        Self {
            cluster,
            revision,
            activity: Activity::Activating,
            activity_since_ms: now_ms,
            is_initialized: false,
            mode: PathMode::Proxy,
            mode_since_ms: now_ms,
        }
    }

    /// Creates a revision that already has traffic, as after a restart of the autoscaler.
    pub fn running(cluster: ClusterSettings, revision: RevisionSettings, now_ms: u64) -> Self {
        let mut reconciler = Self::new(cluster, revision, now_ms);
        reconciler.activity = Activity::Active;
        reconciler.is_initialized = true;
        reconciler
    }

    /// The condition `Active`.
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// Runs one pass.
    pub fn reconcile(&mut self, seen: Seen) -> Outcome {
        let (want, apply) = self.scale(seen);
        let serve = want.is_some_and(|count| count > 0) && seen.excess_burst_capacity >= 0;
        let mode = if serve { PathMode::Serve } else { PathMode::Proxy };
        if mode != self.mode {
            self.mode = mode;
            self.mode_since_ms = seen.now_ms;
        }
        self.update_activity(want, seen);
        Outcome { want, apply, mode, activators: self.activators(seen.ready) }
    }

    /// The desired count, and the count to write, if it may be written now.
    fn scale(&self, seen: Seen) -> (Option<i32>, Option<i32>) {
        if seen.desired.is_none() && self.activity != Activity::Activating {
            return (None, None);
        }
        let (mut min, max) = self.cluster.scale_bounds(&self.revision);
        let initial = self.cluster.initial_scale(&self.revision);
        if initial > 1 && !self.is_initialized && !self.revision.is_unreachable {
            min = min.max(initial);
        }
        // Without metrics the desired count is -1 upstream, which only a bound can turn into a count.
        match apply_bounds(min, max, seen.desired.unwrap_or(-1)) {
            0 => self.scale_to_zero(seen),
            count if count < 0 => (None, None),
            count => (Some(count), Some(count)),
        }
    }

    fn scale_to_zero(&self, seen: Seen) -> (Option<i32>, Option<i32>) {
        if !self.cluster.enable_scale_to_zero {
            return (Some(1), Some(1));
        }
        let spent = seen.now_ms.saturating_sub(self.activity_since_ms);
        match self.activity {
            Activity::Activating if spent > PROGRESS_DEADLINE_MS + ACTIVATION_BUFFER_MS => {
                (Some(0), Some(0))
            }
            Activity::Activating => (None, None),
            Activity::Active => {
                let window = self.cluster.stable_window_seconds(&self.revision);
                if spent >= u64::from(window) * 1000 { (Some(0), None) } else { (Some(1), Some(1)) }
            }
            Activity::Inactive => {
                let is_proxied = !self.cluster.is_scraped(&self.revision) || seen.activator_answers;
                let may = is_proxied && self.has_waited(seen.now_ms, spent);
                (Some(0), may.then_some(0))
            }
        }
    }

    /// Whether the last pod may be removed after `inactive` milliseconds.
    fn has_waited(&self, now_ms: u64, inactive: u64) -> bool {
        let grace = self.cluster.scale_to_zero_grace_period_ms;
        let retention = match self.revision.is_unreachable {
            true => 0,
            false => (self.revision.pod_retention_ms)
                .unwrap_or(self.cluster.scale_to_zero_pod_retention_period_ms),
        };
        // The shortcut: activators may have been in the path since before the revision became inactive.
        let proxied = match self.mode {
            PathMode::Proxy => now_ms.saturating_sub(self.mode_since_ms),
            PathMode::Serve => 0,
        };
        inactive >= grace.max(retention) || (inactive >= retention && proxied >= grace)
    }

    fn update_activity(&mut self, want: Option<i32>, seen: Seen) {
        let (min, _) = self.cluster.scale_bounds(&self.revision);
        let threshold = match self.is_initialized {
            true => min.max(1),
            false => min.max(self.cluster.initial_scale(&self.revision)),
        };
        self.is_initialized |= seen.ready >= threshold;
        let is_awake = want.is_some_and(|count| count > 0) || self.activity != Activity::Inactive;
        let next = match want {
            Some(0) => Activity::Inactive,
            _ if threshold == 0 || !is_awake => Activity::Inactive,
            _ if seen.ready < threshold => Activity::Activating,
            _ => Activity::Active,
        };
        if next != self.activity {
            self.activity = next;
            self.activity_since_ms = seen.now_ms;
        }
    }

    fn activators(&self, ready: i32) -> i32 {
        let burst = self.cluster.target_burst_capacity(&self.revision);
        if burst == 0.0 {
            return MIN_ACTIVATORS as i32;
        }
        let total = self.cluster.pod_target(&self.revision).total;
        let to_cover = f64::from(ready) * total + burst.max(0.0);
        (to_cover / self.cluster.activator_capacity).ceil().max(MIN_ACTIVATORS) as i32
    }
}

/// Clamps `count` to `min` and `max`; a `max` of 0 means no bound.
fn apply_bounds(min: i32, max: i32, count: i32) -> i32 {
    if count < min {
        min
    } else if max != 0 && count > max {
        max
    } else {
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(seconds: u64, desired: i32, ready: i32) -> Seen {
        Seen {
            now_ms: seconds * 1000,
            desired: Some(desired),
            excess_burst_capacity: 10,
            ready,
            activator_answers: true,
        }
    }

    fn idle_after_100_s(cluster: ClusterSettings, revision: RevisionSettings) -> Reconciler {
        let mut reconciler = Reconciler::new(cluster, revision, 0);
        assert_eq!(reconciler.reconcile(seen(0, 1, 1)).apply, Some(1));
        assert_eq!(reconciler.activity(), Activity::Active);
        let outcome = reconciler.reconcile(seen(100, 0, 1));
        assert_eq!((outcome.want, outcome.apply), (Some(0), None));
        assert_eq!((reconciler.activity(), outcome.mode), (Activity::Inactive, PathMode::Proxy));
        reconciler
    }

    #[test]
    fn the_last_pod_is_removed_after_the_grace_period() {
        let (cluster, revision) = (ClusterSettings::default(), RevisionSettings::default());
        let mut reconciler = idle_after_100_s(cluster, revision);
        assert_eq!(reconciler.reconcile(seen(129, 0, 1)).apply, None);
        let silent = Seen { activator_answers: false, ..seen(131, 0, 1) };
        assert_eq!(reconciler.reconcile(silent).apply, None);
        assert_eq!(reconciler.reconcile(seen(132, 0, 1)).apply, Some(0));
    }

    #[test]
    fn one_pod_stays_until_the_revision_was_active_for_the_stable_window() {
        let mut reconciler =
            Reconciler::new(ClusterSettings::default(), RevisionSettings::default(), 0);
        reconciler.reconcile(seen(10, 3, 3));
        assert_eq!(reconciler.reconcile(seen(69, 0, 3)).apply, Some(1));
        assert_eq!(reconciler.reconcile(seen(70, 0, 1)).want, Some(0));
    }

    #[test]
    fn retention_keeps_the_last_pod_longer() {
        let revision =
            RevisionSettings { pod_retention_ms: Some(90_000), ..RevisionSettings::default() };
        let mut reconciler = idle_after_100_s(ClusterSettings::default(), revision);
        assert_eq!(reconciler.reconcile(seen(189, 0, 1)).apply, None);
        assert_eq!(reconciler.reconcile(seen(190, 0, 1)).apply, Some(0));
    }

    #[test]
    fn without_scale_to_zero_one_pod_stays() {
        let cluster = ClusterSettings { enable_scale_to_zero: false, ..ClusterSettings::default() };
        let mut reconciler = Reconciler::running(cluster, RevisionSettings::default(), 0);
        assert_eq!(reconciler.reconcile(seen(1000, 0, 1)).apply, Some(1));
    }

    #[test]
    fn bounds_apply_and_the_initial_scale_only_until_it_was_reached() {
        let cluster =
            ClusterSettings { initial_scale: 4, max_scale: 6, ..ClusterSettings::default() };
        let mut reconciler = Reconciler::new(cluster, RevisionSettings::default(), 0);
        assert_eq!(reconciler.reconcile(seen(2, 1, 1)).apply, Some(4));
        assert_eq!(reconciler.reconcile(seen(4, 9, 4)).apply, Some(6));
        assert_eq!(reconciler.reconcile(seen(6, 1, 6)).apply, Some(1));
    }

    #[test]
    fn without_metrics_nothing_changes() {
        let mut reconciler =
            Reconciler::running(ClusterSettings::default(), RevisionSettings::default(), 0);
        let blind = Seen { desired: None, ..seen(2, 0, 5) };
        let outcome = reconciler.reconcile(blind);
        assert_eq!((outcome.want, outcome.apply), (None, None));
        assert_eq!(reconciler.activity(), Activity::Active);
    }

    #[test]
    fn activators_cover_the_capacity_of_pods_and_the_burst() {
        let mut reconciler =
            Reconciler::running(ClusterSettings::default(), RevisionSettings::default(), 0);
        assert_eq!(reconciler.reconcile(seen(2, 1, 1)).activators, 4);
        let revision =
            RevisionSettings { target_burst_capacity: Some(0.0), ..RevisionSettings::default() };
        let mut reconciler = Reconciler::running(ClusterSettings::default(), revision, 0);
        assert_eq!(reconciler.reconcile(seen(2, 1, 50)).activators, 2);
    }
}
