//! One sync of the controller, in order.
//!
//! ```text
//!  1 remember the first count ─ 2 bounds gate ─ 3 metrics ─ 4 combine ─ 5 stabilise ─ 6 limit ─ 7 write
//!                                 │ outside: write the bound, skip the rest
//!                                 │ 0: disabled, unless this controller scaled to zero
//! ```
//!
//! Current 4, proposals 6 and 3: the largest wins, 6. If the metric behind the 6 were unreadable, the 3 would be a
//! scale-down with an unknown metric, and the sync would fail instead.

use std::collections::BTreeMap;

use super::pods::{Measured, Pod};
use super::proposals::{Evaluation, MetricOutcome};
use super::rates::{Events, plain_up_limit};
use super::spec::{Behavior, ControllerSettings, Spec};
use super::stabilisation::Recommendations;

/// Input of a sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Current time, in milliseconds from an arbitrary origin.
    pub now_ms: i64,
    /// `spec.replicas` of the target.
    pub replicas: i32,
    /// `status.replicas` of the target.
    pub status_replicas: i32,
    /// The pods matched by the target's selector.
    pub pods: Vec<Pod>,
    /// Measurements of pods that are no longer listed.
    pub orphans: Vec<(String, Measured)>,
    /// Object metrics in thousandths; `None` if the API failed.
    pub object: BTreeMap<String, Option<i64>>,
    /// Series of external metrics in thousandths; `None` if the API failed.
    pub external: BTreeMap<String, Option<Vec<i64>>>,
}

/// Result of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// `spec.replicas` afterwards.
    pub desired: i32,
    /// Whether a new count was written.
    pub is_rescaled: bool,
    /// Whether no count could be computed.
    pub is_failed: bool,
    /// The event's reason, if it was written.
    pub reason: Option<String>,
    /// Reason of the condition AbleToScale.
    pub able_to_scale: &'static str,
    /// Reason of the condition ScalingActive, if set.
    pub scaling_active: Option<&'static str>,
    /// Effect of the limits, if they were applied.
    pub normalised: Option<Normalised>,
    /// Outcome of each metric, if they were read.
    pub metrics: Option<Vec<MetricOutcome>>,
}

/// The desired count after each of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalised {
    /// The largest valid proposal.
    pub metrics_desired: i32,
    /// After stabilisation.
    pub stabilized: i32,
    /// The rate limit in force; `None` with behavior if the count would not change.
    pub rate_limit: Option<i32>,
    /// After rate limit and bounds.
    pub limited: i32,
    /// Reason of the condition ScalingLimited.
    pub scaling_limited: &'static str,
    able_to_scale: &'static str,
}

/// The controller's state for one HorizontalPodAutoscaler.
#[derive(Clone, Debug)]
pub struct Controller {
    settings: ControllerSettings,
    spec: Spec,
    recommendations: Recommendations,
    events: Events,
    is_scaled_to_zero: bool,
}

/// The largest proposal of all metrics, with the title of its metric.
struct LargestProposal {
    replicas: i32,
    title: String,
}

impl Controller {
    /// Creates a controller without history. Without metrics, it uses CPU at 80 %.
    pub fn new(settings: ControllerSettings, mut spec: Spec) -> Self {
        if spec.metrics.is_empty() {
            spec.metrics = Spec::default_metrics();
        }
        Self {
            settings,
            spec,
            recommendations: Recommendations::default(),
            events: Events::default(),
            is_scaled_to_zero: false,
        }
    }

    /// Its spec, after defaulting.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Runs one sync.
    pub fn sync(&mut self, seen: &Seen) -> Synced {
        let current = seen.replicas;
        self.recommendations.begin(seen.now_ms, current);
        let kept =
            Synced { desired: current, able_to_scale: "SucceededGetScale", ..Synced::default() };
        if current == 0 && !self.may_leave_zero() {
            return Synced { scaling_active: Some("ScalingDisabled"), ..kept };
        }
        if current != 0 && current > self.spec.max_replicas {
            let reason = "Current number of replicas above Spec.MaxReplicas";
            return self.write(seen, self.spec.max_replicas, reason.to_owned(), kept);
        }
        if current != 0 && current < self.spec.min_replicas {
            let reason = "Current number of replicas below Spec.MinReplicas";
            return self.write(seen, self.spec.min_replicas, reason.to_owned(), kept);
        }
        let evaluation = Evaluation::new(seen, &self.settings, &self.spec);
        let outcomes: Vec<MetricOutcome> =
            self.spec.metrics.iter().map(|metric| evaluation.propose(metric)).collect();
        let combined = self.combine(&outcomes, current);
        let evaluated = Synced { metrics: Some(outcomes), ..kept };
        match combined {
            Err(failure) => Synced { is_failed: true, scaling_active: Some(failure), ..evaluated },
            Ok(largest) => self.apply(seen, &largest, evaluated),
        }
    }

    /// At zero, a count is only computed if this controller scaled there and some metric can be read without pods.
    fn may_leave_zero(&self) -> bool {
        self.settings.scale_to_zero_enabled
            && self.is_scaled_to_zero
            && (self.spec.min_replicas != 0 || self.has_object_or_external())
    }

    fn has_object_or_external(&self) -> bool {
        self.spec.metrics.iter().any(|metric| metric.source.is_object_or_external())
    }

    /// Returns the largest valid proposal. Fails if no proposal is valid, or if the count would drop while a metric is
    /// unreadable.
    fn combine(
        &self,
        outcomes: &[MetricOutcome],
        current: i32,
    ) -> Result<LargestProposal, &'static str> {
        let mut largest = LargestProposal { replicas: 0, title: String::new() };
        let mut failures = Vec::new();
        for (metric, outcome) in self.spec.metrics.iter().zip(outcomes) {
            let Some(proposal) = outcome.proposal else {
                failures.push(metric.source.failure());
                continue;
            };
            if largest.replicas == 0 || proposal > largest.replicas {
                largest = LargestProposal { replicas: proposal, title: metric.title() };
            }
        }
        match failures.first() {
            Some(first) if failures.len() == outcomes.len() || largest.replicas < current => {
                Err(*first)
            }
            _ => Ok(largest),
        }
    }

    fn apply(&mut self, seen: &Seen, largest: &LargestProposal, evaluated: Synced) -> Synced {
        let (current, min) = (seen.replicas, self.spec.min_replicas);
        let desired = largest.replicas.max(0);
        let mut reason = String::new();
        if desired > current {
            reason = format!("{} above target", largest.title);
        } else if desired < current {
            "All metrics below target".clone_into(&mut reason);
        }
        let normalised = self.normalise(seen.now_ms, current, desired);
        let mut result = normalised.limited;
        if current == 0 && min != 0 && self.is_scaled_to_zero && result < min {
            result = min;
            if reason.is_empty() {
                "Current number of replicas below Spec.MinReplicas".clone_into(&mut reason);
            }
        }
        let synced = Synced {
            scaling_active: Some("ValidMetricFound"),
            able_to_scale: normalised.able_to_scale,
            normalised: Some(normalised),
            ..evaluated
        };
        if result == current { synced } else { self.write(seen, result, reason, synced) }
    }

    /// Writes the count and records the change.
    fn write(&mut self, seen: &Seen, desired: i32, reason: String, synced: Synced) -> Synced {
        let before = seen.replicas;
        if let Some(behavior) = &self.spec.behavior {
            self.events.store(seen.now_ms, before, desired, behavior);
        }
        self.is_scaled_to_zero = self.settings.scale_to_zero_enabled
            && before > 0
            && desired == 0
            && self.spec.min_replicas == 0
            && self.has_object_or_external();
        Synced {
            desired,
            is_rescaled: true,
            reason: Some(reason),
            able_to_scale: "SucceededRescale",
            ..synced
        }
    }

    fn normalise(&mut self, now_ms: i64, current: i32, desired: i32) -> Normalised {
        match self.spec.behavior.clone() {
            Some(behavior) => self.with_behavior(now_ms, current, desired, &behavior),
            None => self.without_behavior(now_ms, current, desired),
        }
    }

    fn without_behavior(&mut self, now_ms: i64, current: i32, desired: i32) -> Normalised {
        let Spec { min_replicas: min, max_replicas: max, .. } = self.spec;
        let stabilized = self.recommendations.without_behavior(now_ms, desired, &self.settings);
        let limit = plain_up_limit(current);
        let (limited, scaling_limited) = if stabilized < min {
            (min, "TooFewReplicas")
        } else if stabilized > max.min(limit) {
            (max.min(limit), if max > limit { "ScaleUpLimit" } else { "TooManyReplicas" })
        } else {
            (stabilized, "DesiredWithinRange")
        };
        let is_held = stabilized != desired;
        Normalised {
            metrics_desired: desired,
            stabilized,
            rate_limit: Some(limit),
            limited,
            scaling_limited,
            able_to_scale: if is_held { "ScaleDownStabilized" } else { "ReadyForNewScale" },
        }
    }

    fn with_behavior(
        &mut self,
        now_ms: i64,
        current: i32,
        desired: i32,
        behavior: &Behavior,
    ) -> Normalised {
        let Spec { min_replicas: min, max_replicas: max, .. } = self.spec;
        let stabilized =
            self.recommendations.with_behavior(now_ms, current, desired, behavior, &self.settings);
        let able_to_scale = match stabilized == desired {
            true => "ReadyForNewScale",
            false if desired >= current => "ScaleUpStabilized",
            false => "ScaleDownStabilized",
        };
        let mut normalised = Normalised {
            metrics_desired: desired,
            stabilized,
            rate_limit: None,
            limited: stabilized,
            scaling_limited: "DesiredWithinRange",
            able_to_scale,
        };
        if stabilized > current {
            let raw = self.events.up_limit(now_ms, current, &behavior.scale_up);
            let limit = raw.max(current);
            normalised.rate_limit = Some(raw);
            if stabilized > max.min(limit) {
                normalised.limited = max.min(limit);
                normalised.scaling_limited =
                    if max > limit { "ScaleUpLimit" } else { "TooManyReplicas" };
            }
        } else if stabilized < current {
            let raw = self.events.down_limit(now_ms, current, &behavior.scale_down);
            let limit = raw.min(current);
            normalised.rate_limit = Some(raw);
            if stabilized < min.max(limit) {
                normalised.limited = min.max(limit);
                normalised.scaling_limited =
                    if min < limit { "ScaleDownLimit" } else { "TooFewReplicas" };
            }
        }
        normalised
    }
}
