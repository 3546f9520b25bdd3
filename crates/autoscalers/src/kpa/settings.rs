//! Settings of the whole cluster (ConfigMap `config-autoscaler`) and of one revision (annotations), and how they are
//! combined into the settings of a decider.
//!
//! ```text
//!  containerConcurrency 0 ─► container-concurrency-target-default ─┐
//!  containerConcurrency n ─► n ────────────────────────────────────┼─► total ─ · utilisation ─► target
//!  annotation target ──────► min(target, n) if n > 0 ──────────────┘
//! ```
//!
//! Without a limit and without annotations: total 100, utilisation 70 %, target 70. With a hard limit of
//! 10 and `target: 30`: total min(30, 10) = 10, target 7.

use super::metrics_window::Aggregation;
use super::scale::DeciderSettings;

/// Minimum target of any metric, `TargetMin` upstream.
pub const TARGET_MIN: f64 = 0.01;
/// Shortest stable window, `WindowMin` upstream.
pub const WINDOW_MIN_SECONDS: u32 = 6;
/// Longest stable window, `WindowMax` upstream.
pub const WINDOW_MAX_SECONDS: u32 = 3600;

/// The metric to scale on; annotation `autoscaling.knative.dev/metric`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// `concurrency`: requests in flight.
    #[default]
    Concurrency,
    /// `rps`: requests per second.
    Rps,
}

/// The ConfigMap `config-autoscaler`; each field is the key of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSettings {
    /// `pod-autoscaler-class`.
    pub pod_autoscaler_class: String,
    /// `enable-scale-to-zero`.
    pub enable_scale_to_zero: bool,
    /// `allow-zero-initial-scale`.
    pub allow_zero_initial_scale: bool,
    /// `max-scale-up-rate`, above 1.
    pub max_scale_up_rate: f64,
    /// `max-scale-down-rate`, above 1.
    pub max_scale_down_rate: f64,
    /// `container-concurrency-target-percentage`, as a share of 1. Values above 1 are written as percent.
    pub container_concurrency_target_fraction: f64,
    /// `container-concurrency-target-default`.
    pub container_concurrency_target_default: f64,
    /// `requests-per-second-target-default`.
    pub requests_per_second_target_default: f64,
    /// `target-burst-capacity`: -1 for unlimited.
    pub target_burst_capacity: f64,
    /// `panic-window-percentage`, 1 to 100.
    pub panic_window_percentage: f64,
    /// `panic-threshold-percentage`.
    pub panic_threshold_percentage: f64,
    /// `activator-capacity`, at least 1.
    pub activator_capacity: f64,
    /// `stable-window`, 6 s to 1 h.
    pub stable_window_seconds: u32,
    /// `scale-down-delay`, whole seconds.
    pub scale_down_delay_seconds: u32,
    /// `scale-to-zero-grace-period`, above 0.
    pub scale_to_zero_grace_period_ms: u64,
    /// `scale-to-zero-pod-retention-period`.
    pub scale_to_zero_pod_retention_period_ms: u64,
    /// `initial-scale`.
    pub initial_scale: i32,
    /// `min-scale`.
    pub min_scale: i32,
    /// `max-scale`: 0 for no bound.
    pub max_scale: i32,
    /// `max-scale-limit`: 0 for none.
    pub max_scale_limit: i32,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            pod_autoscaler_class: "kpa.autoscaling.knative.dev".to_owned(),
            enable_scale_to_zero: true,
            allow_zero_initial_scale: false,
            max_scale_up_rate: 1000.0,
            max_scale_down_rate: 2.0,
            container_concurrency_target_fraction: 0.7,
            container_concurrency_target_default: 100.0,
            requests_per_second_target_default: 200.0,
            target_burst_capacity: 211.0,
            panic_window_percentage: 10.0,
            panic_threshold_percentage: 200.0,
            activator_capacity: 100.0,
            stable_window_seconds: 60,
            scale_down_delay_seconds: 0,
            scale_to_zero_grace_period_ms: 30_000,
            scale_to_zero_pod_retention_period_ms: 0,
            initial_scale: 1,
            min_scale: 0,
            max_scale: 0,
            max_scale_limit: 0,
        }
    }
}

/// The annotations and the spec of one revision; `None` means the cluster's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RevisionSettings {
    /// `spec.containerConcurrency`; 0 for no limit.
    pub container_concurrency: u32,
    /// `metric`.
    pub metric: Metric,
    /// `metric-aggregation-algorithm`.
    pub aggregation: Aggregation,
    /// `target`.
    pub target: Option<f64>,
    /// `target-utilization-percentage`.
    pub target_utilization_percentage: Option<f64>,
    /// `min-scale`.
    pub min_scale: Option<i32>,
    /// `max-scale`.
    pub max_scale: Option<i32>,
    /// `initial-scale`.
    pub initial_scale: Option<i32>,
    /// `activation-scale`.
    pub activation_scale: Option<i32>,
    /// `window`.
    pub window_seconds: Option<u32>,
    /// `panic-window-percentage`.
    pub panic_window_percentage: Option<f64>,
    /// `panic-threshold-percentage`.
    pub panic_threshold_percentage: Option<f64>,
    /// `target-burst-capacity`.
    pub target_burst_capacity: Option<f64>,
    /// `scale-down-delay`.
    pub scale_down_delay_seconds: Option<u32>,
    /// `scale-to-zero-pod-retention-period`.
    pub pod_retention_ms: Option<u64>,
    /// `spec.reachability` is `Unreachable`.
    pub is_unreachable: bool,
}

/// How much of the metric one pod is meant for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodTarget {
    /// What it should have.
    pub target: f64,
    /// What it can take at most.
    pub total: f64,
}

impl ClusterSettings {
    /// What one pod should have, and what it can take at most.
    pub fn pod_target(&self, revision: &RevisionSettings) -> PodTarget {
        let limit = f64::from(revision.container_concurrency);
        let (mut total, default_utilization) = match revision.metric {
            // Upstream keeps a second utilisation for this metric that no key can change.
            Metric::Rps => (self.requests_per_second_target_default, 0.7),
            Metric::Concurrency if limit == 0.0 => (
                self.container_concurrency_target_default,
                self.container_concurrency_target_fraction,
            ),
            Metric::Concurrency => (limit, self.container_concurrency_target_fraction),
        };
        if let Some(target) = revision.target {
            let is_capped = revision.metric == Metric::Concurrency && limit != 0.0;
            total = if is_capped { target.min(limit) } else { target };
        }
        let written = revision.target_utilization_percentage.map(|percent| percent / 100.0);
        let utilization = written.unwrap_or(default_utilization);
        PodTarget { target: (total * utilization).max(TARGET_MIN), total }
    }

    /// The stable window of a revision.
    pub fn stable_window_seconds(&self, revision: &RevisionSettings) -> u32 {
        revision.window_seconds.unwrap_or(self.stable_window_seconds)
    }

    /// The panic window of a revision: its share of the stable one, to the nearest second, at least one.
    pub fn panic_window_seconds(&self, revision: &RevisionSettings) -> u32 {
        let share = revision.panic_window_percentage.unwrap_or(self.panic_window_percentage);
        let nanos = (f64::from(self.stable_window_seconds(revision)) * 1e9 * share / 100.0).trunc();
        ((nanos / 1e9).round() as u32).max(1)
    }

    /// Burst capacity of a revision.
    pub fn target_burst_capacity(&self, revision: &RevisionSettings) -> f64 {
        revision.target_burst_capacity.unwrap_or(self.target_burst_capacity)
    }

    /// Whether its pods are scraped. With an unlimited burst capacity the activators see every request.
    pub fn is_scraped(&self, revision: &RevisionSettings) -> bool {
        self.target_burst_capacity(revision) != -1.0
    }

    /// Minimum and maximum number of pods; a maximum of 0 means no bound. An unreachable revision has no minimum.
    pub fn scale_bounds(&self, revision: &RevisionSettings) -> (i32, i32) {
        let min = match revision.is_unreachable {
            true => 0,
            false => revision.min_scale.unwrap_or(self.min_scale),
        };
        (min, revision.max_scale.unwrap_or(self.max_scale))
    }

    /// Initial number of pods of a new revision.
    pub fn initial_scale(&self, revision: &RevisionSettings) -> i32 {
        match revision.initial_scale {
            Some(0) if !self.allow_zero_initial_scale => self.initial_scale,
            Some(scale) => scale,
            None => self.initial_scale,
        }
    }

    /// Settings of a revision's decider.
    pub fn decider(&self, revision: &RevisionSettings) -> DeciderSettings {
        let PodTarget { target: target_value, total: total_value } = self.pod_target(revision);
        let threshold =
            revision.panic_threshold_percentage.unwrap_or(self.panic_threshold_percentage);
        let delay = revision.scale_down_delay_seconds.unwrap_or(self.scale_down_delay_seconds);
        DeciderSettings {
            max_scale_up_rate: self.max_scale_up_rate,
            max_scale_down_rate: self.max_scale_down_rate,
            target_value,
            total_value,
            target_burst_capacity: self.target_burst_capacity(revision),
            panic_threshold: threshold / 100.0,
            stable_window_seconds: self.stable_window_seconds(revision),
            scale_down_delay_seconds: delay,
            activation_scale: revision.activation_scale.unwrap_or(0),
            reachable: !revision.is_unreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_close(found: PodTarget, target: f64, total: f64) -> bool {
        (found.target - target).abs() < 1e-9 && (found.total - total).abs() < 1e-9
    }

    #[test]
    fn the_worked_targets() {
        let cluster = ClusterSettings::default();
        let unlimited = RevisionSettings::default();
        assert!(is_close(cluster.pod_target(&unlimited), 70.0, 100.0));
        let limited = RevisionSettings {
            container_concurrency: 10,
            target: Some(30.0),
            ..RevisionSettings::default()
        };
        assert!(is_close(cluster.pod_target(&limited), 7.0, 10.0));
        let rps = RevisionSettings { metric: Metric::Rps, ..limited };
        assert!(is_close(cluster.pod_target(&rps), 21.0, 30.0));
        let tiny = RevisionSettings {
            target: Some(0.01),
            target_utilization_percentage: Some(1.0),
            ..RevisionSettings::default()
        };
        assert_eq!(cluster.pod_target(&tiny).target, TARGET_MIN);
    }

    #[test]
    fn the_panic_window_is_whole_seconds_and_at_least_one() {
        let cluster = ClusterSettings::default();
        let window = |seconds, percent| {
            cluster.panic_window_seconds(&RevisionSettings {
                window_seconds: Some(seconds),
                panic_window_percentage: Some(percent),
                ..RevisionSettings::default()
            })
        };
        assert_eq!(window(60, 10.0), 6);
        assert_eq!(window(6, 1.0), 1);
        assert_eq!(window(45, 10.0), 5);
        assert_eq!(window(44, 10.0), 4);
    }

    #[test]
    fn an_unreachable_revision_has_no_minimum() {
        let cluster = ClusterSettings { min_scale: 2, ..ClusterSettings::default() };
        let mut revision = RevisionSettings { max_scale: Some(9), ..RevisionSettings::default() };
        assert_eq!(cluster.scale_bounds(&revision), (2, 9));
        revision.is_unreachable = true;
        assert_eq!(cluster.scale_bounds(&revision), (0, 9));
    }
}
