//! A Revision's settings, from the annotations of its PodAutoscaler.

use windfall_autoscalers::kpa::{Aggregation, Metric, RevisionSettings};

use super::duties::Autoscaled;

/// Reads all annotations that Knative's own class knows; one that does not parse counts as absent, because Knative's
/// webhook refuses it before it comes here.
pub(super) fn settings(of: &Autoscaled) -> RevisionSettings {
    let text = |name: &str| of.annotations.get(&format!("autoscaling.knative.dev/{name}"));
    let number = |name: &str| text(name).and_then(|text| text.trim().parse::<f64>().ok());
    let count = |name: &str| text(name).and_then(|text| text.trim().parse::<i32>().ok());
    let seconds =
        |name: &str| text(name).and_then(|text| milliseconds(text)).map(|ms| (ms / 1000) as u32);
    RevisionSettings {
        container_concurrency: of.container_concurrency,
        // Requests per second would need counters of the pods; in flight is what activators report as well.
        metric: Metric::Concurrency,
        aggregation: Aggregation::default(),
        target: number("target"),
        target_utilization_percentage: number("target-utilization-percentage"),
        min_scale: count("min-scale"),
        max_scale: count("max-scale"),
        initial_scale: count("initial-scale"),
        activation_scale: count("activation-scale"),
        window_seconds: seconds("window"),
        panic_window_percentage: number("panic-window-percentage"),
        panic_threshold_percentage: number("panic-threshold-percentage"),
        target_burst_capacity: number("target-burst-capacity"),
        scale_down_delay_seconds: seconds("scale-down-delay"),
        pod_retention_ms: text("scale-to-zero-pod-retention-period")
            .and_then(|text| milliseconds(text)),
        is_unreachable: of.is_unreachable,
    }
}

/// A duration as Go writes it: `90s`, `1m30s`, `500ms`, `1h`.
fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..end].parse().ok()?;
        let units = [("ms", 1.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1000.0)];
        let (unit, scale) = units.into_iter().find(|(unit, _)| rest[end..].starts_with(unit))?;
        total += value * scale;
        rest = &rest[end + unit.len()..];
    }
    Some(total as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_read() {
        for (text, ms) in
            [("6s", 6000), ("1m30s", 90_000), ("500ms", 500), ("1h", 3_600_000), ("1.5s", 1500)]
        {
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
        for wrong in ["", "6", "s", "6x", "-6s"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
    }
}
