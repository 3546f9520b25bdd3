//! One workload as a policy sees it.

use windfall_core::{Allocation, Duration, FunctionId, FunctionView, Instances, Timestamp};

use super::Member;
use crate::cluster::TargetFacts;
use crate::desired::least_in_force;
use crate::metrics::{MetricsStore, Signals, Wanted};

/// Requests per pod where nobody set a number; Knative's default.
const USUAL_CONCURRENCY: u32 = 100;

/// What is known about a workload. One without pods uses nothing, which needs no measurement.
pub(super) fn signals(
    metrics: &MetricsStore,
    wanted: &Wanted,
    target: &TargetFacts<'_>,
    since: Timestamp,
    now: Timestamp,
) -> Option<Signals> {
    let is_at_zero = target.deployment.1.replicas == 0 && target.pods.is_empty();
    if is_at_zero {
        return Some(Signals { taken_at: now, ..Signals::default() });
    }
    metrics.signals(wanted, since)
}

pub(super) fn function_view(
    id: FunctionId,
    member: &Member,
    target: &TargetFacts<'_>,
    now: Timestamp,
) -> FunctionView {
    let signals = member.signals.clone().unwrap_or_default();
    let reservation = target.container.size.allocation().unwrap_or(Allocation::ZERO);
    let ready = target.pods.iter().filter(|(_, pod)| pod.is_ready).count() as u32;
    let completions = signals.completions.unwrap_or(0.0).round() as u32;
    let mean_concurrency = signals.concurrency.or_else(|| {
        // Little's law: requests in the system are their rate times their duration.
        Some(signals.per_second? * signals.mean_run?.as_secs_f64())
    });
    let mean_concurrency = mean_concurrency.unwrap_or(0.0);
    let in_flight = mean_concurrency.round() as u32;
    let concurrency = concurrency(member, target);
    FunctionView {
        function: id,
        reservation,
        allocation: allocation(member, target).unwrap_or(reservation),
        kept: None,
        start_cpu: None,
        concurrency,
        ready: Instances::new(ready),
        busy: Instances::new(in_flight.div_ceil(concurrency.max(1)).min(ready)),
        starting: Instances::new(target.pods.len() as u32 - ready),
        in_flight,
        queued: signals.queued.round() as u32,
        mean_concurrency,
        arrivals: completions,
        completions,
        cold_starts: cold_starts(target, signals.window, now),
        mean_run: signals.mean_run,
        mean_wait: None,
        cpu_used_cores: signals.cpu_cores,
        memory_peak_mib: signals.memory_peak_mib,
        cold_start: cold_start(target),
        presence: Vec::new(),
    }
}

/// What a new pod gets now: what pods have, or what was recommended if nothing is carried out.
fn allocation(member: &Member, target: &TargetFacts<'_>) -> Option<Allocation> {
    if member.carries_out() {
        least_in_force(target, member.scope).or(member.desired.size)
    } else {
        member.recommended.size
    }
}

fn concurrency(member: &Member, target: &TargetFacts<'_>) -> u32 {
    let Some((_, revision)) = target.revision else { return 1 };
    let annotated = revision.annotations.get("target").and_then(|text| text.parse::<f64>().ok());
    let hard = Some(revision.container_concurrency).filter(|limit| *limit > 0);
    let soft = annotated.map(|target| target.max(1.0) as u32);
    let asked = member.recommended.concurrency.filter(|_| !member.carries_out());
    asked.or(soft).or(hard).unwrap_or(USUAL_CONCURRENCY)
}

/// Requests per pod as the user wrote them, or as Knative has them where the user wrote nothing.
pub(super) fn users_concurrency(target: &TargetFacts<'_>) -> u32 {
    let Some((_, revision)) = target.revision else { return USUAL_CONCURRENCY };
    let annotated = match revision.original.get("target") {
        Some(noted) => noted.as_ref(),
        None => revision.annotations.get("target"),
    };
    let soft = annotated.and_then(|text| text.parse::<f64>().ok()).map(|calls| calls as u32);
    soft.unwrap_or(USUAL_CONCURRENCY)
}

/// Pods that were created inside the window.
fn cold_starts(target: &TargetFacts<'_>, window: Duration, now: Timestamp) -> u32 {
    let seconds = |at: Timestamp| (at.as_nanos() / 1_000_000_000) as i64;
    let begin = seconds(now) - window.as_secs_f64().ceil() as i64;
    target.pods.iter().filter(|(_, pod)| pod.created >= begin).count() as u32
}

/// The median time from creation to ready; a second, where no pod has become ready. Kubernetes writes whole seconds.
fn cold_start(target: &TargetFacts<'_>) -> Duration {
    let took = |ready: i64, created: i64| u64::try_from(ready - created).unwrap_or(0).max(1);
    let mut times: Vec<u64> = target
        .pods
        .iter()
        .filter_map(|(_, pod)| Some(took(pod.ready_since?, pod.created)))
        .collect();
    times.sort_unstable();
    Duration::from_secs(times.get(times.len() / 2).copied().unwrap_or(1))
}
