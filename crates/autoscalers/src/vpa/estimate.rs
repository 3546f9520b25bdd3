//! Computes a recommendation from a merged state.
//!
//! ```text
//!  percentile ─► amount + margin ─► · confidence factor ─► at least the pod's share ─► controlled only
//!       ─► rounding step ─► whole cores if configured ─► min allowed ─► max allowed
//!
//!  confidence c = min(days of history, samples / minutes in a day)
//!  upper · (1 + 1/c)      lower · (1 + 0.001/c)^-2      target unchanged
//! ```
//!
//! Twelve hours of one sample a minute: c = 0.5, so the upper bound is tripled and the lower one divided by
//! 1.002² = 1.004. A 90th percentile of 0.11026 cores is 110 millicores; plus 15 % is 126.

use super::aggregate::{Aggregate, ContainerRecommendation};
use super::amounts::{Resource, Resources, amount, scale};
use super::histogram::nanos;
use super::settings::{RecommenderSettings, VpaSettings};

/// Recommends for all containers of a pod together, because they share its minimum.
pub(super) fn recommend(
    settings: &RecommenderSettings,
    vpa: &VpaSettings,
    merged: &[(&str, &Aggregate)],
) -> Vec<ContainerRecommendation> {
    let share = 1.0 / merged.len() as f64;
    let least = Resources::both(
        scale(amount(settings.pod_min_cpu_millicores * 0.001 * 1000.0), share),
        scale(amount(settings.pod_min_memory_mb * 1024.0 * 1024.0), share),
    );
    let estimator = Estimator { settings, vpa, least };
    merged.iter().map(|(container, state)| estimator.estimate(container, state)).collect()
}

struct Estimator<'a> {
    settings: &'a RecommenderSettings,
    vpa: &'a VpaSettings,
    least: Resources,
}

impl Estimator<'_> {
    fn estimate(&self, container: &str, state: &Aggregate) -> ContainerRecommendation {
        let (cpu, memory) = (self.settings.cpu_percentiles, self.settings.memory_percentiles);
        let confidence = |interval| confidence(state, interval);
        let cpu_confidence = confidence(self.settings.confidence_interval_cpu_seconds);
        let memory_confidence = confidence(self.settings.confidence_interval_memory_seconds);
        let lower = |confidence: f64| (1.0 + 0.001 / confidence).powf(-2.0);
        let upper = |confidence: f64| 1.0 + 1.0 / confidence;
        let both = |cpu_share, memory_share, factors: Option<(f64, f64)>| {
            let base = Resources::both(
                self.with_margin(amount(state.cpu.percentile(cpu_share) * 1000.0)),
                self.with_margin(amount(state.memory.percentile(memory_share))),
            );
            let scaled = base.map(|resource, base| match (resource, factors) {
                (Resource::Cpu, Some((factor, _))) => scale(base, factor),
                (Resource::Memory, Some((_, factor))) => scale(base, factor),
                (_, None) => base,
            });
            self.published(container, scaled)
        };
        let target = both(cpu.target, memory.target, None);
        let lower_factors = (lower(cpu_confidence), lower(memory_confidence));
        let upper_factors = (upper(cpu_confidence), upper(memory_confidence));
        ContainerRecommendation {
            container: container.to_owned(),
            target: self.capped(container, target),
            lower_bound: self.capped(container, both(cpu.lower, memory.lower, Some(lower_factors))),
            upper_bound: self.capped(container, both(cpu.upper, memory.upper, Some(upper_factors))),
            uncapped_target: target,
        }
    }

    fn with_margin(&self, base: i64) -> i64 {
        base + scale(base, self.settings.safety_margin_fraction)
    }

    /// Raises to the pod's share, keeps controlled resources only, and rounds up.
    fn published(&self, container: &str, estimate: Resources) -> Resources {
        let controlled = self.vpa.policy(container).and_then(|policy| policy.controlled.as_ref());
        let is_controlled = |resource| controlled.is_none_or(|list| list.contains(&resource));
        let wants_cores = self.vpa.integer_cpu_containers.iter().any(|name| name == container);
        let rounded = estimate.map(|resource, amount| {
            let amount = amount.max(self.least.of(resource).unwrap_or(0));
            match resource {
                Resource::Cpu => {
                    let amount = round_up(amount, self.settings.round_cpu_millicores);
                    if wants_cores { amount.saturating_add(999) / 1000 * 1000 } else { amount }
                }
                Resource::Memory => round_up(amount, self.settings.round_memory_bytes),
            }
        });
        Resources {
            cpu_millicores: rounded.cpu_millicores.filter(|_| is_controlled(Resource::Cpu)),
            memory_bytes: rounded.memory_bytes.filter(|_| is_controlled(Resource::Memory)),
        }
    }

    fn capped(&self, container: &str, estimate: Resources) -> Resources {
        let policy = self.vpa.policy(container);
        let min = policy.map(|policy| policy.min_allowed).unwrap_or_default();
        let max = policy.map(|policy| policy.max_allowed).unwrap_or_default();
        estimate.fitted(min, max.or(self.settings.global_max_allowed))
    }
}

/// The next multiple of `step`.
fn round_up(amount: i64, step: i64) -> i64 {
    if step <= 1 || amount == 0 {
        return amount;
    }
    ((amount as f64 / step as f64).ceil() as i64).saturating_mul(step)
}

/// Amount of history, in units of the interval.
fn confidence(state: &Aggregate, interval_seconds: i64) -> f64 {
    let span = match (state.first_sample, state.last_sample) {
        (Some(first), Some(last)) => last - first,
        _ => 0,
    };
    let minutes = (interval_seconds / 60) as f64 + nanos(interval_seconds % 60) / 60e9;
    (nanos(span) / nanos(interval_seconds)).min(state.samples as f64 / minutes)
}
