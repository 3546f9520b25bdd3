//! Replays the updater's cases: one replica set, one pass. A decision is one pod's verdict, or the order and the
//! evictions of one case.

use std::io::Read;

use serde::Deserialize;

use super::report::{Difference, Report, StoryError};
use super::story_lines::for_each_story;
use super::vpa_format::{
    RawPolicy, RawRecommendation, RawResources, resources, seconds, seconds_if_any,
};
use crate::vpa::{
    ContainerRecommendation, EvictionRequirement, UpdatePolicy, UpdateVerdict, Updater,
    UpdaterContainer, UpdaterPod, UpdaterSettings, VpaSettings,
};

#[derive(Deserialize)]
struct Case {
    id: String,
    config: RawConfig,
    recommendation: Vec<RawRecommendation>,
    #[serde(default)]
    container_policies: Vec<RawPolicy>,
    #[serde(default)]
    eviction_requirements: Vec<RawRequirement>,
    vpa_min_replicas: Option<u32>,
    #[serde(default, deserialize_with = "seconds_if_any")]
    vpa_evict_after_oom_s: Option<i64>,
    configured_replicas: u32,
    #[serde(deserialize_with = "seconds")]
    now_t: i64,
    pods: Vec<RawPod>,
    verdicts: Vec<RawVerdict>,
    update_order: Vec<String>,
    evicted: Vec<String>,
}

#[derive(Deserialize)]
struct RawConfig {
    min_change_priority: f64,
    #[serde(deserialize_with = "seconds")]
    pod_lifetime_update_threshold_s: i64,
    #[serde(deserialize_with = "seconds")]
    evict_after_oom_threshold_s: i64,
    min_replicas: u32,
    eviction_tolerance_fraction: f64,
}

#[derive(Deserialize)]
struct RawRequirement {
    resources: Vec<String>,
    change: String,
}

#[derive(Deserialize)]
struct RawPod {
    name: String,
    #[serde(default, deserialize_with = "seconds_if_any")]
    start_t: Option<i64>,
    #[serde(default)]
    pending: bool,
    observed_containers: Option<Vec<String>>,
    containers: Vec<RawContainer>,
}

#[derive(Deserialize)]
struct RawContainer {
    name: String,
    #[serde(default)]
    request: Option<RawResources>,
    #[serde(default)]
    limit: Option<RawResources>,
    last_termination: Option<RawTermination>,
}

#[derive(Deserialize)]
struct RawTermination {
    reason: String,
    #[serde(deserialize_with = "seconds")]
    started_t: i64,
    #[serde(deserialize_with = "seconds")]
    finished_t: i64,
}

#[derive(Debug, Deserialize)]
struct RawVerdict {
    name: String,
    can_evict: bool,
    outside_recommended_range: bool,
    scale_up: bool,
    resource_diff: f64,
    accepted: bool,
    admitted: bool,
}

/// Replays the updater's cases from JSON lines, plain or gzip.
pub fn replay_vpa_updater(source: impl Read) -> Result<Report, StoryError> {
    let mut report = Report::default();
    for_each_story(source, |line, case: Case| {
        report.stories += 1;
        play(&case, &mut report)
            .map_err(|problem| StoryError::at(line, format!("case {}: {problem}", case.id)))
    })?;
    Ok(report)
}

fn play(case: &Case, report: &mut Report) -> Result<(), String> {
    let vpa = case.vpa()?;
    let recommendation: Vec<ContainerRecommendation> =
        case.recommendation.iter().map(RawRecommendation::recommendation).collect();
    let updater = Updater {
        settings: case.config.settings(),
        vpa: &vpa,
        recommendation: &recommendation,
        configured_replicas: case.configured_replicas,
    };
    let pods: Vec<UpdaterPod> = case.pods.iter().map(RawPod::pod).collect();
    let pass = updater.pass(&pods, case.now_t);
    if pass.verdicts.len() != case.verdicts.len() {
        let (pods, verdicts) = (pass.verdicts.len(), case.verdicts.len());
        return Err(format!("{pods} pods but {verdicts} verdicts"));
    }
    let difference = |expected: String, ours: String, seen: String| Difference {
        story: case.id.clone(),
        time: case.now_t.to_string(),
        expected,
        ours,
        seen,
    };
    for ((theirs, ours), pod) in case.verdicts.iter().zip(&pass.verdicts).zip(&pods) {
        report.count(is_equal(theirs, ours), || {
            difference(format!("{theirs:?}"), format!("{ours:?}"), format!("{pod:?}"))
        });
    }
    for (theirs, ours) in [(&case.update_order, &pass.order), (&case.evicted, &pass.evicted)] {
        report.count(theirs == ours, || {
            difference(format!("{theirs:?}"), format!("{ours:?}"), format!("{:?}", pass.verdicts))
        });
    }
    Ok(())
}

fn is_equal(theirs: &RawVerdict, ours: &UpdateVerdict) -> bool {
    // Upstream adds the two resources in random order; a sum of two terms does not depend on it.
    theirs.name == ours.name
        && theirs.can_evict == ours.can_evict
        && theirs.outside_recommended_range == ours.is_outside
        && theirs.scale_up == ours.is_scale_up
        && theirs.resource_diff == ours.resource_diff
        && theirs.accepted == ours.is_accepted
        && theirs.admitted == ours.is_admitted
}

impl Case {
    fn vpa(&self) -> Result<VpaSettings, String> {
        let requirement = |raw: &RawRequirement| {
            let must_rise = match raw.change.as_str() {
                "target_higher_than_requests" => true,
                "target_lower_than_requests" => false,
                other => return Err(format!("change is {other:?}")),
            };
            Ok(EvictionRequirement { resources: resources(&raw.resources)?, must_rise })
        };
        let requirements = self.eviction_requirements.iter().map(requirement);
        let policies = self.container_policies.iter().map(RawPolicy::policy);
        Ok(VpaSettings {
            policies: policies.collect::<Result<_, _>>()?,
            update: UpdatePolicy {
                min_replicas: self.vpa_min_replicas,
                evict_after_oom_seconds: self.vpa_evict_after_oom_s,
                eviction_requirements: requirements.collect::<Result<_, _>>()?,
                ..UpdatePolicy::default()
            },
            ..VpaSettings::default()
        })
    }
}

impl RawConfig {
    fn settings(&self) -> UpdaterSettings {
        UpdaterSettings {
            min_change_priority: self.min_change_priority,
            pod_lifetime_update_threshold_seconds: self.pod_lifetime_update_threshold_s,
            evict_after_oom_threshold_seconds: self.evict_after_oom_threshold_s,
            min_replicas: self.min_replicas,
            eviction_tolerance_fraction: self.eviction_tolerance_fraction,
        }
    }
}

impl RawPod {
    fn pod(&self) -> UpdaterPod {
        let container = |raw: &RawContainer| UpdaterContainer {
            name: raw.name.clone(),
            request: raw.request.unwrap_or_default().resources(),
            limit: raw.limit.unwrap_or_default().resources(),
            last_end: (raw.last_termination.as_ref())
                .map(|end| (end.reason == "OOMKilled", end.started_t, end.finished_t)),
        };
        UpdaterPod {
            name: self.name.clone(),
            started_at: self.start_t,
            is_pending: self.pending,
            observed: self.observed_containers.clone(),
            containers: self.containers.iter().map(container).collect(),
        }
    }
}
