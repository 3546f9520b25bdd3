//! What the status of a policy says.

use std::sync::Arc;

use kube::ResourceExt;
use windfall_core::Timestamp;

use super::cases::Case;
use super::writes::Write;
use super::{Controller, Group, Sorted};
use crate::cluster::{ResizeState, TargetFacts, TargetProblem};
use crate::harm;
use crate::platform::Member;
use crate::resource_policy::{
    AppliedChanges, Condition, ContainerRecommendation, Decided, Original, OriginalRevision,
    Recommendation, ResourcePolicy, ResourcePolicyStatus,
};
use crate::size;
use crate::world::rfc3339;

/// The conditions that a policy has.
pub const CONDITIONS: [&str; 5] = ["Ready", "Measured", "Applied", "Conflict", "Reverted"];
/// Measurements of a day at one every 15 s; from then on the policy is as sure as it gets.
const DAY_OF_SAMPLES: u64 = 5760;
/// A recommendation is written again when it differs by more than this share.
const NEWS: f64 = 0.05;

/// A condition before it is written.
struct Said {
    kind: &'static str,
    is_true: Option<bool>,
    reason: &'static str,
    message: String,
}

impl Controller {
    pub(super) fn status_of(
        &mut self,
        one: &Sorted,
        target: Result<&TargetFacts<'_>, &TargetProblem>,
        now: Timestamp,
    ) -> ResourcePolicyStatus {
        let before = one.policy.status.clone().unwrap_or_default();
        let reverted = self.reverts.get(&one.key).cloned();
        let source_problem = self.source_problem.clone();
        let watch_problem = self.health.failing(super::WATCH_PATIENCE);
        let group = self.groups.get_mut(&one.group());
        let said = conditions(
            one,
            target,
            group,
            Problems {
                source: source_problem,
                watch: watch_problem,
                cooling: harm::cools_down(reverted.as_ref(), now).cloned(),
            },
        );
        let group = self.groups.get_mut(&one.group());
        let mut status = ResourcePolicyStatus {
            observed_generation: one.policy.metadata.generation,
            reverted,
            original: target.ok().map(original),
            recommendation: before.recommendation.clone(),
            last_decision: before.last_decision.clone(),
            ..ResourcePolicyStatus::default()
        };
        if let (Some(group), Ok(target), true) = (group, target, one.case.is_managed()) {
            fill_decision(&mut status, group, one, target, now);
        }
        status.applied = target.ok().map(applied);
        let stamped = said.into_iter().map(|said| stamp(said, &before, &one.policy, now));
        status.conditions = stamped.collect();
        status
    }
}

fn fill_decision(
    status: &mut ResourcePolicyStatus,
    group: &mut Group,
    one: &Sorted,
    target: &TargetFacts<'_>,
    now: Timestamp,
) {
    let decided = group.platform.id_of(&one.key).and_then(|id| {
        let last = group.last.as_ref()?;
        let target = last.plan.targets().iter().find(|target| target.function == id);
        let held = last.plan.amendments().iter().find(|one| one.function == id);
        let why = last.decision.targets.iter().find(|target| target.function == id);
        if target.is_none() && held.is_none() {
            return None;
        }
        let why = why.map(|target| target.why.clone()).filter(|why| !why.is_empty());
        let mut reason = why.unwrap_or_else(|| last.decision.reason.clone());
        if let Some(held) = held {
            reason = format!("{reason}; {}: {}", held.rule, held.reason);
        }
        Some(reason)
    });
    let Some(member) = group.platform.member(&one.key) else { return };
    if let Some(reason) = decided {
        let policy = one.policy.spec.policy.spelling().to_owned();
        status.last_decision = Some(Decided { time: rfc3339(now), policy, reason });
    }
    if member.samples > 0 {
        status.recommendation = Some(recommendation(member, target));
    }
}

fn recommendation(member: &Member, target: &TargetFacts<'_>) -> Recommendation {
    let user = target.container.size.allocation().unwrap_or_default();
    let wanted = member.recommended.size.unwrap_or(user);
    Recommendation {
        containers: vec![ContainerRecommendation {
            container_name: target.container.name.clone(),
            target: size::shown(wanted),
            user: size::shown(user),
        }],
        replicas: member.recommended.replicas.or(Some(target.deployment.1.replicas)),
        concurrency: member.recommended.concurrency,
        confidence_percent: (member.samples.min(DAY_OF_SAMPLES) * 100 / DAY_OF_SAMPLES) as u32,
        samples: member.samples,
    }
}

fn applied(target: &TargetFacts<'_>) -> AppliedChanges {
    let count = |is: fn(&ResizeState) -> bool| {
        target.pods.iter().filter(|(_, pod)| is(&pod.resize)).count() as u32
    };
    let resized = target.pods.iter().filter(|(_, pod)| {
        let container = pod.container(&target.container.name);
        container.is_some_and(|one| one.size != target.container.size)
    });
    AppliedChanges {
        pods: target.pods.len() as u32,
        resized: resized.count() as u32,
        deferred: count(|state| matches!(state, ResizeState::Deferred(_))),
        infeasible: count(|state| matches!(state, ResizeState::Infeasible(_))),
        replicas: target.deployment.1.original_replicas.map(|_| target.deployment.1.replicas),
    }
}

fn original(target: &TargetFacts<'_>) -> Original {
    let revisions = target.revision.iter().chain(&target.noted_revisions);
    let noted = revisions.filter(|(_, facts)| !facts.original.is_empty());
    let annotation = |(key, value): (&String, &Option<String>)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    };
    Original {
        size: target.container.size.allocation().map(size::shown),
        replicas: target.deployment.1.original_replicas,
        container_concurrency: target.service.and_then(|(_, service)| service.original_concurrency),
        revisions: noted
            .map(|(key, facts)| OriginalRevision {
                name: key.name.clone(),
                annotations: facts.original.iter().map(annotation).collect(),
            })
            .collect(),
    }
}

/// What is wrong beyond the policy itself.
struct Problems {
    source: Option<String>,
    watch: Option<String>,
    cooling: Option<crate::resource_policy::Reverted>,
}

fn conditions(
    one: &Sorted,
    target: Result<&TargetFacts<'_>, &TargetProblem>,
    group: Option<&mut Group>,
    problems: Problems,
) -> Vec<Said> {
    let said = |kind, is_true, reason, message: String| Said { kind, is_true, reason, message };
    let conflict = conflict(&one.case);
    let reverted = reverted(problems.cooling.as_ref());
    let policy_problem =
        group.as_ref().and_then(|group| group.control.as_ref().err().map(ToString::to_string));
    let member = group.and_then(|group| group.platform.member(&one.key));
    let is_measured = member.as_ref().is_some_and(|member| member.signals.is_some());
    let refused = member.as_ref().and_then(|member| member.refused.clone());
    let measured = if is_measured {
        said(
            "Measured",
            Some(true),
            "Fresh",
            "usage was measured within the last minute".to_owned(),
        )
    } else {
        let message = problems
            .source
            .unwrap_or_else(|| "no fresh measurement of its pods; nothing is changed".to_owned());
        said("Measured", Some(false), "NoMetrics", message)
    };
    let applied = match (&refused, one.case.scope().acts()) {
        (Some(error), _) => said("Applied", Some(false), "Refused", error.to_string()),
        (None, true) => {
            said("Applied", Some(true), "Applied", "what is desired was accepted".to_owned())
        }
        (None, false) => {
            said("Applied", Some(false), "NotActing", "nothing is changed in this mode".to_owned())
        }
    };
    let ready = match (&one.case, target, problems.watch, policy_problem) {
        (Case::Off, ..) => said("Ready", Some(true), "Off", "switched off".to_owned()),
        // What is missing may be there and only not be seen.
        (_, _, Some(problem), _) => said("Ready", Some(false), "WatchFailed", problem),
        (_, Err(problem), ..) => said("Ready", Some(false), "TargetUnusable", problem.to_string()),
        (_, _, _, Some(problem)) => said("Ready", Some(false), "PolicyUnusable", problem),
        _ if !is_measured => said("Ready", Some(false), "NoMetrics", measured.message.clone()),
        _ => said(
            "Ready",
            Some(true),
            one.policy.spec.mode.word(),
            "decided at every pass".to_owned(),
        ),
    };
    vec![ready, measured, applied, conflict, reverted]
}

/// Whether somebody else acts on the target.
fn conflict(case: &Case) -> Said {
    let said = |kind, is_true, reason, message: String| Said { kind, is_true, reason, message };
    let rivals = match case {
        Case::Managed { rivals, .. } => rivals.join(", "),
        Case::Off | Case::Leaving | Case::Broken(_) => String::new(),
    };
    if rivals.is_empty() {
        said("Conflict", Some(false), "Alone", "no other autoscaler acts on the target".to_owned())
    } else {
        let message = format!("{rivals} acts on the same target; only recommending");
        said("Conflict", Some(true), "OtherAutoscaler", message)
    }
}

/// Whether the last change did harm.
fn reverted(cooling: Option<&crate::resource_policy::Reverted>) -> Said {
    let said = |kind, is_true, reason, message: String| Said { kind, is_true, reason, message };
    match cooling {
        Some(last) => said(
            "Reverted",
            Some(true),
            "Harm",
            format!("{}; nothing is changed before {}", last.reason, last.until),
        ),
        None => {
            said("Reverted", Some(false), "NoHarm", "no change had to be taken back".to_owned())
        }
    }
}

/// A condition with its times: the time of the last change stays while the status does.
fn stamp(
    said: Said,
    before: &ResourcePolicyStatus,
    policy: &ResourcePolicy,
    now: Timestamp,
) -> Condition {
    let status = match said.is_true {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let earlier =
        before.conditions.iter().find(|one| one.type_ == said.kind && one.status == status);
    Condition {
        type_: said.kind.to_owned(),
        status: status.to_owned(),
        reason: said.reason.to_owned(),
        message: said.message,
        last_transition_time: earlier
            .map_or_else(|| rfc3339(now), |one| one.last_transition_time.clone()),
        observed_generation: policy.metadata.generation,
    }
}

/// The status of a policy while something that must be seen is not: as it was, but not ready.
pub(super) fn blind(
    policy: &ResourcePolicy,
    problem: &str,
    now: Timestamp,
) -> ResourcePolicyStatus {
    let before = policy.status.clone().unwrap_or_default();
    let message = problem.to_owned();
    let said = Said { kind: "Ready", is_true: Some(false), reason: "WatchFailed", message };
    let ready = stamp(said, &before, policy, now);
    let others = before.conditions.iter().filter(|one| one.type_ != ready.type_).cloned();
    let conditions = std::iter::once(ready.clone()).chain(others).collect();
    let observed_generation = policy.metadata.generation;
    ResourcePolicyStatus { observed_generation, conditions, ..before }
}

/// Whether a reader would act on the difference. Counters and times alone are not worth a write.
pub(super) fn differs(before: &ResourcePolicyStatus, after: &ResourcePolicyStatus) -> bool {
    let conditions = |status: &ResourcePolicyStatus| {
        let key = |one: &Condition| {
            (one.type_.clone(), one.status.clone(), one.reason.clone(), one.observed_generation)
        };
        status.conditions.iter().map(key).collect::<Vec<_>>()
    };
    before.observed_generation != after.observed_generation
        || conditions(before) != conditions(after)
        || before.applied != after.applied
        || before.original != after.original
        || before.reverted != after.reverted
        || is_news(before.recommendation.as_ref(), after.recommendation.as_ref())
}

fn is_news(before: Option<&Recommendation>, after: Option<&Recommendation>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before != after };
    if before.replicas != after.replicas || before.concurrency != after.concurrency {
        return true;
    }
    if after.confidence_percent.abs_diff(before.confidence_percent) >= 5 {
        return true;
    }
    let amounts = |one: &Recommendation| {
        let first = one.containers.first()?;
        let cpu = f64::from(size::millicores(&first.target.cpu)?);
        Some((first.container_name.clone(), cpu, size::bytes(&first.target.memory)? as f64))
    };
    match (amounts(before), amounts(after)) {
        (Some(a), Some(b)) => {
            let far = |x: f64, y: f64| (x - y).abs() > NEWS * x.max(y);
            a.0 != b.0 || far(a.1, b.1) || far(a.2, b.2)
        }
        (a, b) => a != b,
    }
}

/// Events for what changed between two statuses.
pub(super) fn events(
    policy: &Arc<ResourcePolicy>,
    before: &ResourcePolicyStatus,
    after: &ResourcePolicyStatus,
) -> Vec<Write> {
    let mut events = Vec::new();
    for condition in &after.conditions {
        let last = before.conditions.iter().find(|one| one.type_ == condition.type_);
        let is_new = last.is_none_or(|last| {
            (&last.status, &last.reason) != (&condition.status, &condition.reason)
        });
        let event: Option<(bool, &'static str)> =
            match (condition.type_.as_str(), condition.status.as_str()) {
                ("Ready", "True") => Some((false, "Ready")),
                ("Ready", "False") => Some((true, "NotReady")),
                ("Conflict", "True") => Some((true, "Conflict")),
                ("Applied", "False") if condition.reason == "Refused" => Some((true, "Refused")),
                _ => None,
            };
        if let Some((is_warning, reason)) = event.filter(|_| is_new) {
            events.push(Write::event(policy, is_warning, reason, &condition.message));
        }
    }
    let resized =
        |status: &ResourcePolicyStatus| status.applied.as_ref().map_or(0, |one| one.resized);
    if resized(after) > resized(before) {
        let size = after.recommendation.as_ref().and_then(|one| one.containers.first());
        let size = size.map_or_else(String::new, |one| {
            format!(" to {} and {}", one.target.cpu, one.target.memory)
        });
        let note = format!("{} pods of {} resized{size}", resized(after), policy.name_any());
        events.push(Write::event(policy, false, "Resized", &note));
    }
    let replicas =
        |status: &ResourcePolicyStatus| status.applied.as_ref().and_then(|one| one.replicas);
    if let Some(count) = replicas(after).filter(|_| replicas(after) != replicas(before)) {
        events.push(Write::event(policy, false, "Scaled", &format!("scaled to {count} replicas")));
    }
    events
}
