//! The updater: which pods are evicted so that they restart with the recommended size.
//!
//! ```text
//!  pod ─► fit recommendation to policy ─► priority ─► accepted? ─► sorted ─► admitted? ─► can evict? ─► evict
//!             min, max, own limit           │            outside its bounds, quick OOM, or old and off
//!                                           Σ |request - target| / request
//! ```
//!
//! Request 100 millicores and 1 GiB, target 150 millicores and 1 GiB: diff |100 - 150| / 100 + 0 = 0.5, and
//! it is a scale-up. Within the bounds, a pod of 13 h is accepted (at least 12 h old, diff at least 0.1),
//! one of 11 h is not. Of 7 configured pods with a tolerance of 0.5, floor(3.5) = 3 may be missing at a time:
//! a pod may be evicted while more than 4 are running.

use super::aggregate::ContainerRecommendation;
use super::amounts::{Resource, Resources};
use super::settings::{EvictionRequirement, VpaSettings};

/// The updater's flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdaterSettings {
    /// `--pod-update-threshold`.
    pub min_change_priority: f64,
    /// `--pod-lifetime-update-threshold`.
    pub pod_lifetime_update_threshold_seconds: i64,
    /// `--evict-after-oom-threshold`.
    pub evict_after_oom_threshold_seconds: i64,
    /// `--min-replicas`.
    pub min_replicas: u32,
    /// `--eviction-tolerance`.
    pub eviction_tolerance_fraction: f64,
}

impl Default for UpdaterSettings {
    fn default() -> Self {
        Self {
            min_change_priority: 0.1,
            pod_lifetime_update_threshold_seconds: 43_200,
            evict_after_oom_threshold_seconds: 600,
            min_replicas: 2,
            eviction_tolerance_fraction: 0.5,
        }
    }
}

/// A pod as the updater sees it. Times are seconds from an arbitrary origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdaterPod {
    /// Its name.
    pub name: String,
    /// When it was started.
    pub started_at: Option<i64>,
    /// Whether it is pending.
    pub is_pending: bool,
    /// Containers that had a recommendation when the pod was created; `None` means all.
    pub observed: Option<Vec<String>>,
    /// Its containers.
    pub containers: Vec<UpdaterContainer>,
}

/// A container as the updater sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdaterContainer {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub request: Resources,
    /// Its limits.
    pub limit: Resources,
    /// Its last termination: whether it was an OOM kill, when it had started, when it ended.
    pub last_end: Option<(bool, i64, i64)>,
}

/// The updater's verdict on one pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateVerdict {
    /// Its name.
    pub name: String,
    /// Whether the budget allows its eviction, checked before any eviction.
    pub can_evict: bool,
    /// Whether a request lies outside the recommended bounds.
    pub is_outside: bool,
    /// Whether any target is above its request.
    pub is_scale_up: bool,
    /// Sum over resources of the relative difference.
    pub resource_diff: f64,
    /// Whether it should be updated.
    pub is_accepted: bool,
    /// Whether the VPA's requirements allow its eviction.
    pub is_admitted: bool,
}

/// Result of one pass of the updater.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdatePass {
    /// One verdict per pod, in the given order.
    pub verdicts: Vec<UpdateVerdict>,
    /// Pods in the order in which they are tried, by name.
    pub order: Vec<String>,
    /// Pods that are evicted, by name.
    pub evicted: Vec<String>,
}

/// One replica set with its recommendation.
#[derive(Clone, Debug)]
pub struct Updater<'a> {
    /// The updater's flags.
    pub settings: UpdaterSettings,
    /// The VerticalPodAutoscaler.
    pub vpa: &'a VpaSettings,
    /// The recommendation.
    pub recommendation: &'a [ContainerRecommendation],
    /// `spec.replicas` of the replica set.
    pub configured_replicas: u32,
}

/// How many pods of a replica set may be evicted.
struct Budget {
    is_large_enough: bool,
    configured: i64,
    running: i64,
    tolerated: i64,
    evicted: i64,
}

impl Budget {
    fn allows(&self, pod: &UpdaterPod) -> bool {
        if !self.is_large_enough || pod.is_pending {
            return self.is_large_enough;
        }
        // Without tolerance one pod may be evicted at a time, if all others are running.
        let is_first = self.tolerated == 0 && self.evicted == 0 && self.running == self.configured;
        let must_stay = self.configured.saturating_sub(self.tolerated);
        self.running - self.evicted > must_stay || is_first
    }
}

impl Updater<'_> {
    /// Runs one pass over `pods` at `now`.
    pub fn pass(&self, pods: &[UpdaterPod], now: i64) -> UpdatePass {
        let mut budget = self.budget(pods);
        let verdicts: Vec<UpdateVerdict> =
            pods.iter().map(|pod| self.verdict(pod, &budget, now)).collect();
        let mut order: Vec<(&UpdaterPod, &UpdateVerdict)> = (pods.iter().zip(&verdicts))
            .filter(|(_, verdict)| verdict.can_evict && verdict.is_accepted)
            .collect();
        // Pods that scale up first, then the larger difference; ties keep their order.
        order.sort_by(|(_, a), (_, b)| {
            let by_diff = b.resource_diff.total_cmp(&a.resource_diff);
            b.is_scale_up.cmp(&a.is_scale_up).then(by_diff)
        });
        order.retain(|(_, verdict)| verdict.is_admitted);
        let mut evicted = Vec::new();
        for (pod, _) in &order {
            if budget.allows(pod) {
                evicted.push(pod.name.clone());
                budget.evicted += i64::from(!pod.is_pending);
            }
        }
        let order = order.into_iter().map(|(pod, _)| pod.name.clone()).collect();
        UpdatePass { verdicts, order, evicted }
    }

    fn budget(&self, pods: &[UpdaterPod]) -> Budget {
        let required = self.vpa.update.min_replicas.unwrap_or(self.settings.min_replicas);
        let configured = f64::from(self.configured_replicas);
        Budget {
            is_large_enough: pods.len() >= required as usize && self.configured_replicas > 0,
            configured: i64::from(self.configured_replicas),
            running: pods.iter().filter(|pod| !pod.is_pending).count() as i64,
            tolerated: (configured * self.settings.eviction_tolerance_fraction) as i64,
            evicted: 0,
        }
    }

    fn verdict(&self, pod: &UpdaterPod, budget: &Budget, now: i64) -> UpdateVerdict {
        let fitted = self.fitted(pod);
        let priority = priority(pod, &fitted);
        UpdateVerdict {
            name: pod.name.clone(),
            can_evict: budget.allows(pod),
            is_accepted: self.is_accepted(pod, &priority, now),
            is_admitted: self.is_admitted(pod, &fitted),
            ..priority
        }
    }

    /// The recommendation for the containers of a pod, within policies and limits.
    fn fitted(&self, pod: &UpdaterPod) -> Vec<ContainerRecommendation> {
        let containers = self.recommendation.iter().filter_map(|recommended| {
            let container = pod.containers.iter().find(|it| it.name == recommended.container)?;
            Some((recommended, container))
        });
        containers
            .map(|(recommended, container)| {
                let policy = self.vpa.policy(&container.name);
                let fit = |amounts: Resources| {
                    let Some(policy) = policy else { return amounts };
                    let amounts = amounts.fitted(policy.min_allowed, policy.max_allowed);
                    match policy.is_requests_only {
                        true => amounts.map(|resource, amount| {
                            amount.min(container.limit.of(resource).unwrap_or(i64::MAX))
                        }),
                        false => amounts,
                    }
                };
                ContainerRecommendation {
                    target: fit(recommended.target),
                    lower_bound: fit(recommended.lower_bound),
                    upper_bound: fit(recommended.upper_bound),
                    ..recommended.clone()
                }
            })
            .collect()
    }

    fn is_accepted(&self, pod: &UpdaterPod, priority: &UpdateVerdict, now: i64) -> bool {
        let is_quick_oom = self.is_quick_oom(pod, now);
        if is_quick_oom && priority.resource_diff == 0.0 {
            return false;
        }
        let lifetime = self.settings.pod_lifetime_update_threshold_seconds;
        let is_old = pod.started_at.is_some_and(|started| now >= started + lifetime);
        priority.is_outside
            || is_quick_oom
            || (is_old && priority.resource_diff >= self.settings.min_change_priority)
    }

    /// Whether a container was OOM-killed soon after its start, and recently.
    fn is_quick_oom(&self, pod: &UpdaterPod, now: i64) -> bool {
        let own = self.vpa.update.evict_after_oom_seconds;
        let threshold = own.unwrap_or(self.settings.evict_after_oom_threshold_seconds);
        pod.containers.iter().any(|container| {
            let is_off = self.vpa.policy(&container.name).is_some_and(|policy| policy.is_off);
            let is_quick = container.last_end.is_some_and(|(is_oom, begun, ended)| {
                is_oom && ended - begun < threshold && now - ended < threshold
            });
            is_observed(pod, &container.name) && !is_off && is_quick
        })
    }

    /// At least one container with a recommendation must lack a request or meet all requirements.
    fn is_admitted(&self, pod: &UpdaterPod, fitted: &[ContainerRecommendation]) -> bool {
        fitted.iter().any(|recommended| {
            let container = pod.containers.iter().find(|it| it.name == recommended.container);
            let Some(UpdaterContainer { request, .. }) = container else { return false };
            let lacks_request = Resource::ALL.iter().any(|it| request.of(*it).is_none());
            let meets = |requirement: &EvictionRequirement| {
                requirement.resources.iter().any(|resource| {
                    let amount = |of: &Resources| of.of(*resource).unwrap_or(0);
                    let (now, then) = (amount(request), amount(&recommended.target));
                    if requirement.must_rise { then > now } else { then < now }
                })
            };
            lacks_request || self.vpa.update.eviction_requirements.iter().all(meets)
        })
    }
}

fn is_observed(pod: &UpdaterPod, container: &str) -> bool {
    pod.observed.as_ref().is_none_or(|names| names.iter().any(|name| name == container))
}

/// Thousandths of a unit: millicores, or bytes times a thousand.
fn milli(resource: Resource, amount: i64) -> i64 {
    match resource {
        Resource::Cpu => amount,
        Resource::Memory => amount.saturating_mul(1000),
    }
}

/// The part of the verdict about the difference between a pod and its recommendation.
fn priority(pod: &UpdaterPod, fitted: &[ContainerRecommendation]) -> UpdateVerdict {
    let mut verdict = UpdateVerdict::default();
    // Sums of targets and requests per resource, if the resource has a recommendation.
    let mut sums: [Option<(i64, i64)>; 2] = [None, None];
    for container in pod.containers.iter().filter(|it| is_observed(pod, &it.name)) {
        let Some(recommended) = fitted.iter().find(|it| it.container == container.name) else {
            continue;
        };
        for (resource, sum) in Resource::ALL.into_iter().zip(&mut sums) {
            let Some(target) = recommended.target.of(resource) else { continue };
            let (targeted, requested) = sum.get_or_insert((0, 0));
            *targeted = targeted.saturating_add(milli(resource, target));
            let Some(request) = container.request.of(resource) else {
                verdict.is_scale_up = true;
                verdict.is_outside = true;
                continue;
            };
            *requested = requested.saturating_add(milli(resource, request));
            let lower = recommended.lower_bound.of(resource);
            let upper = recommended.upper_bound.of(resource);
            verdict.is_scale_up |= target > request;
            verdict.is_outside |= lower.is_some_and(|bound| request < bound)
                || upper.is_some_and(|bound| request > bound);
        }
    }
    verdict.resource_diff = (sums.iter().flatten())
        .map(|(targeted, requested)| {
            let requested = (*requested as f64).max(1.0);
            (requested - *targeted as f64).abs() / requested
        })
        .sum();
    verdict
}
