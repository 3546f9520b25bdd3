//! What `kubectl windfall` prints about policies.

use std::fmt::Write as _;

use kube::ResourceExt;

use crate::resource_policy::{Condition, ResourcePolicy, ResourcePolicyStatus};

/// A table with one line per policy.
pub fn status(policies: &[ResourcePolicy]) -> String {
    if policies.is_empty() {
        return "no ResourcePolicies; `kubectl windfall status -A` looks in all namespaces"
            .to_owned();
    }
    let mut rows = vec![
        ["NAMESPACE", "NAME", "TARGET", "MODE", "READY", "RECOMMENDED", "PODS", "STATE"]
            .map(str::to_owned),
    ];
    rows.extend(policies.iter().map(row));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}", width = *width))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", cells.join("   ").trim_end());
    }
    text
}

fn row(policy: &ResourcePolicy) -> [String; 8] {
    let status = policy.status.clone().unwrap_or_default();
    let recommendation = status.recommendation.clone().unwrap_or_default();
    let size = recommendation
        .containers
        .first()
        .map(|one| format!("{} {}", one.target.cpu, one.target.memory));
    let pods = recommendation.replicas.map_or_else(|| "-".to_owned(), |count| count.to_string());
    [
        policy.namespace().unwrap_or_default(),
        policy.name_any(),
        format!("{:?}/{}", policy.spec.target_ref.kind, policy.spec.target_ref.name),
        policy.spec.mode.word().to_owned(),
        condition(&status, "Ready").map_or_else(|| "-".to_owned(), |one| one.status.clone()),
        size.unwrap_or_else(|| "nothing yet".to_owned()),
        pods,
        state(policy, &status),
    ]
}

/// The most important thing about a policy, in one word.
fn state(policy: &ResourcePolicy, status: &ResourcePolicyStatus) -> String {
    let holds = |name| condition(status, name).is_some_and(|one| one.status == "True");
    match () {
        () if policy.spec.paused => "paused",
        () if holds("Reverted") => "reverted",
        () if holds("Conflict") => "conflict",
        () if holds("Applied") => "applied",
        () => "watching",
    }
    .to_owned()
}

fn condition<'a>(status: &'a ResourcePolicyStatus, name: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|one| one.type_ == name)
}

/// Everything about one policy, from the question to what came of it.
pub fn explain(policy: &ResourcePolicy) -> String {
    let spec = &policy.spec;
    let status = policy.status.clone().unwrap_or_default();
    let mut lines = vec![
        format!("policy       {}/{}", policy.namespace().unwrap_or_default(), policy.name_any()),
        format!("target       {:?} {}", spec.target_ref.kind, spec.target_ref.name),
        format!("mode         {}{}", spec.mode.word(), if spec.paused { ", paused" } else { "" }),
        format!("decided by   {}", spec.policy.spelling()),
    ];
    if let Some(found) = &status.recommendation {
        for one in &found.containers {
            lines.push(format!(
                "recommended  container {}: cpu {} (user: {}), memory {} (user: {})",
                one.container_name,
                one.target.cpu,
                one.user.cpu,
                one.target.memory,
                one.user.memory
            ));
        }
        if let Some(replicas) = found.replicas {
            lines.push(format!("             {replicas} pods"));
        }
        lines.push(format!(
            "confidence   {} % from {} samples",
            found.confidence_percent, found.samples
        ));
    } else {
        lines.push("recommended  nothing yet: no measurements".to_owned());
    }
    if let Some(last) = &status.last_decision {
        lines.push(format!("because      {} ({}, {})", last.reason, last.policy, last.time));
    }
    if let Some(applied) = &status.applied {
        lines.push(format!(
            "in force     {} of {} pods resized, {} wait for room, {} cannot",
            applied.resized, applied.pods, applied.deferred, applied.infeasible
        ));
    }
    if let Some(reverted) = &status.reverted {
        lines.push(format!(
            "reverted     {} at {}, {} times in a row; no change before {}",
            reverted.reason, reverted.time, reverted.times, reverted.until
        ));
    }
    for one in &status.conditions {
        lines.push(format!(
            "condition    {}={} {}: {}",
            one.type_, one.status, one.reason, one.message
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(paused: bool) -> ResourcePolicy {
        serde_json::from_value(json!({
            "apiVersion": "windfall.dev/v1alpha1", "kind": "ResourcePolicy",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "mode": "Auto", "paused": paused},
            "status": {
                "recommendation": {"containers": [{"containerName": "web", "target": {"cpu": "200m", "memory": "96Mi"},
                    "user": {"cpu": "1", "memory": "512Mi"}}], "replicas": 3, "confidencePercent": 40, "samples": 120},
                "lastDecision": {"time": "t", "policy": "windfall", "reason": "peak 150m over 120 samples"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Managed", "message": "m"},
                    {"type": "Applied", "status": "True", "reason": "Resized", "message": "3 pods"}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_policy_is_one_line_with_its_state() {
        let text = status(&[policy(false)]);
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            line,
            ["shop", "web", "Deployment/web", "Auto", "True", "200m", "96Mi", "3", "applied"]
        );
        assert!(status(&[policy(true)]).contains("paused"));
        assert!(status(&[]).contains("-A"));
    }

    #[test]
    fn an_explanation_has_size_reason_and_conditions() {
        let text = explain(&policy(true));
        for part in [
            "mode         Auto, paused",
            "cpu 200m (user: 1)",
            "peak 150m over 120 samples",
            "40 % from 120",
            "Applied=True Resized",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
