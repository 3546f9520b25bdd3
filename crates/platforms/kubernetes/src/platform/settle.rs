//! Whether accepted changes are in force, by what the watches show.

use windfall_core::{FunctionId, Outcome, Refusal, Setting, Settled, Timestamp};

use super::{Member, Open, SETTLES_WITHIN};
use crate::actuators::{ActionError, settings_of};
use crate::cluster::TargetFacts;
use crate::desired::{Desired, Progress, Scope, least_in_force, size_progress};

/// Moves what has ended from the member's open changes to `settled`.
pub(super) fn settle(
    settled: &mut Vec<Settled>,
    member: &mut Member,
    id: FunctionId,
    target: &TargetFacts<'_>,
    now: Timestamp,
) {
    let mut open = std::mem::take(&mut member.open);
    open.retain(|change| match outcome(member, change, target, now) {
        Some(outcome) => {
            settled.push(Settled { plan: change.plan, function: id, at: now, outcome });
            false
        }
        None => true,
    });
    member.open = open;
}

fn outcome(
    member: &mut Member,
    change: &Open,
    target: &TargetFacts<'_>,
    now: Timestamp,
) -> Option<Outcome> {
    // A recommendation is in force as soon as it is made: nothing else was promised.
    if !member.carries_out() {
        return Some(Outcome::Applied);
    }
    let progress = match size_of(member, change, target) {
        Progress::Done => settings_progress(member, change, target),
        other => other,
    };
    let reason = match progress {
        Progress::Done => return Some(Outcome::Applied),
        Progress::Stuck(reason) => reason,
        Progress::Pending => match &member.refused {
            Some(ActionError::Refused(said) | ActionError::Forbidden(said)) => {
                Refusal::System(said.clone())
            }
            Some(ActionError::NoRoom(_)) => Refusal::NoRoom,
            _ if now.since(change.since) >= SETTLES_WITHIN => Refusal::Unreachable,
            _ => return None,
        },
    };
    Some(give_up(member, change, target, reason))
}

/// Reports what is in force instead, and no longer asks for the rest: a node keeps room for what a pod asks for.
fn give_up(
    member: &mut Member,
    change: &Open,
    target: &TargetFacts<'_>,
    reason: Refusal,
) -> Outcome {
    if !change.target.is_resize() {
        return Outcome::Failed(reason);
    }
    let in_force = least_in_force(target, member.scope);
    let own = target.container.size.allocation();
    member.desired.size = in_force.filter(|held| Some(*held) != own);
    match in_force.or(own) {
        Some(in_force) => Outcome::Partly { in_force, reason },
        None => Outcome::Failed(reason),
    }
}

fn size_of(member: &Member, change: &Open, target: &TargetFacts<'_>) -> Progress {
    if !change.target.is_resize() && change.target.cpu_ceiling.is_keep() {
        return Progress::Done;
    }
    size_progress(target, &member.desired, member.scope)
}

/// Number of pods, and what Knative's autoscaler has taken over from the Revision.
fn settings_progress(member: &Member, change: &Open, target: &TargetFacts<'_>) -> Progress {
    if member.scope != Scope::Everything {
        return Progress::Done;
    }
    let is_there = match target.pod_autoscaler {
        Some(taken_over) if target.service.is_some() => {
            let mut asked = Desired::default();
            asked.follow(&change.target, windfall_core::Allocation::ZERO);
            asked.most_replicas = member.desired.most_replicas;
            let mut settings = settings_of(&asked).into_iter();
            settings.all(|(key, value)| taken_over.annotations.get(&key) == Some(&value))
        }
        Some(_) | None => match change.target.instances {
            Setting::Set(count) => target.deployment.1.replicas == count.get(),
            Setting::Keep => true,
        },
    };
    if is_there { Progress::Done } else { Progress::Pending }
}
