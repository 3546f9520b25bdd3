//! Replays the HorizontalPodAutoscaler's stories sync by sync and compares every field.

use std::io::Read;

use super::hpa_format::{Out, OutGroups, OutMetric, Story};
use super::report::{Difference, Report, StoryError};
use super::story_lines::for_each_story;
use crate::hpa::{Controller, MetricOutcome, Spec, Synced};

/// Replays the HorizontalPodAutoscaler's stories from JSON lines, plain or gzip.
pub fn replay_hpa(source: impl Read) -> Result<Report, StoryError> {
    let mut report = Report::default();
    for_each_story(source, |line, story: Story| {
        report.stories += 1;
        play(&story, &mut report)
            .map_err(|problem| StoryError::at(line, format!("story {}: {problem}", story.id)))
    })?;
    Ok(report)
}

fn play(story: &Story, report: &mut Report) -> Result<(), String> {
    let mut controller = Controller::new(story.settings(), story.spec()?);
    for sync in &story.syncs {
        let seen = story.seen(sync)?;
        let ours = recorded_form(controller.sync(&seen), controller.spec());
        report.count(ours == sync.out, || Difference {
            story: story.id.clone(),
            time: sync.t.to_string(),
            expected: format!("{:?}", sync.out),
            ours: format!("{ours:?}"),
            seen: format!("{seen:?}"),
        });
    }
    Ok(())
}

/// Our sync in the recorded form.
fn recorded_form(synced: Synced, spec: &Spec) -> Out {
    let normalised = synced.normalised;
    let metrics = synced.metrics.map(|outcomes| {
        let named = outcomes.iter().zip(&spec.metrics);
        named.map(|(outcome, metric)| recorded_metric(outcome, metric.source.failure())).collect()
    });
    Out {
        desired: synced.desired,
        rescaled: synced.is_rescaled,
        failed: synced.is_failed,
        reason: synced.reason,
        able_to_scale: Some(synced.able_to_scale.to_owned()),
        scaling_active: synced.scaling_active.map(str::to_owned),
        scaling_limited: normalised.map(|it| it.scaling_limited.to_owned()),
        metrics_desired: normalised.map(|it| it.metrics_desired),
        stabilized: normalised.map(|it| it.stabilized),
        rate_limit: normalised.and_then(|it| it.rate_limit),
        metrics,
    }
}

fn recorded_metric(outcome: &MetricOutcome, failure: &str) -> OutMetric {
    OutMetric {
        proposal: outcome.proposal,
        error: outcome.proposal.is_none().then(|| failure.to_owned()),
        utilization_percent: outcome.utilization_percent,
        average_m: outcome.average_m,
        value_m: outcome.value_m,
        pod_groups: outcome.pod_groups.map(|groups| OutGroups {
            ready: groups.ready,
            unready: groups.unready,
            missing: groups.missing,
            ignored: groups.ignored,
        }),
    }
}
