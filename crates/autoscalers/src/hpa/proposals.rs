//! Computes the proposed number of replicas of one metric.
//!
//! ```text
//!  ratio = usage / target ─► nothing missing, no unready pod that matters?
//!           │ yes: within tolerance ─► keep          else ceil(ratio · ready pods)
//!           │ no:  fill in (missing: 100 % of the request going down, 0 going up; unready: 0 going up)
//!           └────► new ratio within tolerance, or on the other side of 1 ─► keep
//!                  else ceil(new ratio · all samples), unless that changes the count in the other direction
//! ```
//!
//! Three pods at 90 % of a target of 50 %: ratio 1.8, ceil(1.8 · 3) = 6. One of the three without a
//! sample: the two give 1.8 still; with 0 filled in for the third the ratio is 60 / 50 = 1.2 and the
//! proposal ceil(1.2 · 3) = 4.

use std::collections::BTreeMap;

use super::controller::Seen;
use super::pods::{GroupCounts, Grouped, Phase, Ready, Sample, group, requests};
use super::spec::{ControllerSettings, MetricSpec, MetricTarget, Source, Spec};
use crate::go_numbers::{int32, int64};

/// Outcome of one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricOutcome {
    /// The proposal; `None` if the metric could not be read.
    pub proposal: Option<i32>,
    /// Reported utilisation, percent of the request.
    pub utilization_percent: Option<i32>,
    /// Reported average, in thousandths.
    pub average_m: Option<i64>,
    /// Reported value, in thousandths.
    pub value_m: Option<i64>,
    /// The grouped pods, for pod metrics with at least one entry in the API.
    pub pod_groups: Option<GroupCounts>,
}

/// Allowed distance of a ratio from 1, per direction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    fn include(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// Inputs for the evaluation of metrics in one sync.
pub(super) struct Evaluation<'a> {
    seen: &'a Seen,
    settings: &'a ControllerSettings,
    tolerances: Tolerances,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(seen: &'a Seen, settings: &'a ControllerSettings, spec: &Spec) -> Self {
        let behavior = spec.behavior.as_ref();
        let own = |tolerance: Option<f64>| tolerance.unwrap_or(settings.tolerance);
        let tolerances = Tolerances {
            down: own(behavior.and_then(|both| both.scale_down.tolerance)),
            up: own(behavior.and_then(|both| both.scale_up.tolerance)),
        };
        Self { seen, settings, tolerances }
    }

    /// Evaluates one metric.
    pub(super) fn propose(&self, metric: &MetricSpec) -> MetricOutcome {
        match (&metric.source, metric.target) {
            (Source::Object { metric: name, .. }, target) => {
                let usage = self.seen.object.get(name).copied().flatten();
                self.outside(usage, target, false)
            }
            (Source::External(name), target) => {
                let series = self.seen.external.get(name).cloned().flatten().unwrap_or_default();
                self.outside(total(&series, target), target, true)
            }
            (source, target) => self.of_pods(source, target),
        }
    }

    fn of_pods(&self, source: &Source, target: MetricTarget) -> MetricOutcome {
        let Seen { pods, orphans, now_ms, .. } = self.seen;
        let Some(grouped) = group(pods, orphans, source, self.settings, *now_ms) else {
            return MetricOutcome::default();
        };
        let counted =
            MetricOutcome { pod_groups: Some(grouped.counts), ..MetricOutcome::default() };
        if pods.is_empty() || grouped.samples.is_empty() {
            return counted;
        }
        let measure = match target {
            MetricTarget::Utilization(percent) => match requests(pods, source) {
                Some(requests) => Measure::Utilization { percent, requests },
                None => return counted,
            },
            MetricTarget::Average(value) | MetricTarget::Value(value) => Measure::Average(value),
        };
        let Some(first) = measure.read(&grouped.samples) else { return counted };
        let proposal = self.fill_in(grouped, &measure, first.ratio);
        MetricOutcome {
            proposal,
            utilization_percent: first.percent.filter(|_| proposal.is_some()),
            average_m: proposal.map(|_| first.average_m),
            ..counted
        }
    }

    fn fill_in(&self, grouped: Grouped<'_>, measure: &Measure<'_>, ratio: f64) -> Option<i32> {
        let Grouped { mut samples, unready, missing, counts } = grouped;
        let current = self.seen.replicas;
        let unready_matter = !unready.is_empty() && ratio > 1.0;
        if !unready_matter && missing.is_empty() {
            let proposal = int32((ratio * counts.ready as f64).ceil());
            return Some(if self.tolerances.include(ratio) { current } else { proposal });
        }
        let assumed = |value_m| Sample { value_m, ..Sample::default() };
        for pod in missing {
            if ratio < 1.0 {
                samples.insert(pod, assumed(measure.busy(pod)));
            } else if ratio > 1.0 {
                samples.insert(pod, assumed(0));
            }
        }
        if unready_matter {
            samples.extend(unready.into_iter().map(|pod| (pod, assumed(0))));
        }
        let again = measure.read(&samples)?.ratio;
        let has_flipped = (ratio < 1.0 && again > 1.0) || (ratio > 1.0 && again < 1.0);
        if self.tolerances.include(again) || has_flipped {
            return Some(current);
        }
        let proposal = int32((again * samples.len() as f64).ceil());
        let is_against = (again < 1.0 && proposal > current) || (again > 1.0 && proposal < current);
        Some(if is_against { current } else { proposal })
    }

    /// Object and External metrics: one number from outside the pods.
    fn outside(
        &self,
        usage: Option<i64>,
        target: MetricTarget,
        is_external: bool,
    ) -> MetricOutcome {
        let Some(usage) = usage else { return MetricOutcome::default() };
        match target {
            MetricTarget::Value(target) => {
                let proposal = self.by_value(usage as f64 / target as f64);
                let value_m = proposal.map(|_| usage);
                MetricOutcome { proposal, value_m, ..MetricOutcome::default() }
            }
            MetricTarget::Average(target) => {
                let proposal = self.by_average(usage, target, is_external);
                let status = self.seen.status_replicas;
                let is_endless = is_external && usage as f64 >= i64::MAX as f64;
                let average = match is_endless {
                    true => i64::MAX,
                    false => int64((usage as f64 / f64::from(status)).ceil()),
                };
                let average_m = (status != 0).then_some(average);
                MetricOutcome { proposal: Some(proposal), average_m, ..MetricOutcome::default() }
            }
            MetricTarget::Utilization(_) => MetricOutcome::default(),
        }
    }

    fn by_value(&self, ratio: f64) -> Option<i32> {
        let current = self.seen.replicas;
        if current == 0 {
            return Some(int32(ratio.ceil()));
        }
        if self.tolerances.include(ratio) {
            return Some(current);
        }
        if self.seen.pods.is_empty() {
            return None;
        }
        // Terminating pods count here, unlike in the groups.
        let ready = self.seen.pods.iter().filter(|pod| {
            pod.phase == Phase::Running && pod.ready.is_some_and(|(ready, _)| ready == Ready::True)
        });
        let wanted = ratio * ready.count() as f64;
        Some(if wanted > f64::from(i32::MAX) { i32::MAX } else { int32(wanted.ceil()) })
    }

    fn by_average(&self, usage: i64, target: i64, is_external: bool) -> i32 {
        let status = self.seen.status_replicas;
        let ratio = usage as f64 / (target as f64 * f64::from(status));
        if self.tolerances.include(ratio) {
            return status;
        }
        let wanted = (usage as f64 / target as f64).ceil();
        if is_external && wanted > f64::from(i32::MAX) { i32::MAX } else { int32(wanted) }
    }
}

/// Sum of an external metric's series, capped; `None` without series.
fn total(series: &[i64], target: MetricTarget) -> Option<i64> {
    if series.is_empty() {
        return None;
    }
    let mut sum = 0_i64;
    for value in series {
        // Upstream detects an overflow differently for the two kinds of target.
        let is_over = match target {
            MetricTarget::Average(_) => sum.wrapping_add(*value) < 0,
            MetricTarget::Value(_) | MetricTarget::Utilization(_) => {
                *value > 0 && sum > i64::MAX - value
            }
        };
        if is_over {
            return Some(i64::MAX);
        }
        sum = sum.wrapping_add(*value);
    }
    Some(sum)
}

/// What samples are compared with.
enum Measure<'a> {
    Utilization { percent: i32, requests: BTreeMap<&'a str, i64> },
    Average(i64),
}

struct Reading {
    ratio: f64,
    percent: Option<i32>,
    average_m: i64,
}

impl Measure<'_> {
    /// Assumed usage of a missing pod when scaling down.
    fn busy(&self, pod: &str) -> i64 {
        match self {
            Self::Utilization { percent, requests } => {
                let request = requests.get(pod).copied().unwrap_or(0);
                request.wrapping_mul(i64::from((*percent).max(100))) / 100
            }
            Self::Average(target) => *target,
        }
    }

    fn read(&self, samples: &BTreeMap<&str, Sample>) -> Option<Reading> {
        let (mut used, mut requested, mut count) = (0_i64, 0_i64, 0_i64);
        for (pod, sample) in samples {
            if let Self::Utilization { requests, .. } = self {
                // Samples of pods that are no longer listed have no request to compare with.
                let Some(request) = requests.get(pod) else { continue };
                requested = requested.wrapping_add(*request);
            }
            used = used.wrapping_add(sample.value_m);
            count += 1;
        }
        match self {
            Self::Utilization { percent: target, .. } => {
                let percent = used.wrapping_mul(100).checked_div(requested)? as i32;
                let ratio = f64::from(percent) / f64::from(*target);
                Some(Reading { ratio, percent: Some(percent), average_m: used / count.max(1) })
            }
            Self::Average(target) => {
                let average_m = used.checked_div(count)?;
                let ratio = average_m as f64 / *target as f64;
                Some(Reading { ratio, percent: None, average_m })
            }
        }
    }
}
