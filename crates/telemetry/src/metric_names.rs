//! The closed list of metric names that Windfall exports. `windfall_<noun>_<unit>[_total]`; labels come
//! from closed sets, never from messages or call ids.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl MetricKind {
    /// The word of the exposition format.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One exported metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Its name.
    pub name: &'static str,
    /// How it behaves.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricName {
    MetricName { name, kind: MetricKind::Counter, labels, help }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricName {
    MetricName { name, kind: MetricKind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricName {
    MetricName { name, kind: MetricKind::Histogram, labels, help }
}

/// All of them. Queue-like things are pairs of counters, because a gauge hides what happens between two
/// scrapes.
pub const METRIC_NAMES: &[MetricName] = &[
    counter("windfall_calls_arrived_total", &[], "Calls that came."),
    counter("windfall_calls_started_total", &[], "Calls that began to run."),
    counter("windfall_calls_ended_total", &["end"], "Calls that ended, by how they ended."),
    counter("windfall_cold_starts_total", &[], "Calls that waited for a new instance."),
    counter("windfall_oom_kills_total", &[], "Attempts killed at their memory limit."),
    counter("windfall_violations_total", &["harvested"], "Calls over 1.05 times their baseline."),
    histogram("windfall_call_latency_seconds", &[], "Time from arrival to end."),
    histogram("windfall_call_slowdown_ratio", &[], "Latency over the baseline run time."),
    histogram("windfall_decision_duration_seconds", &["policy"], "Time a policy took to decide."),
    counter("windfall_ticks_total", &["decided_by"], "Ticks carried out, by policy or fallback."),
    counter("windfall_amendments_total", &["rule"], "Times a safeguard stepped in."),
    counter("windfall_grant_changes_total", &[], "Changes of running calls' grants."),
    counter("windfall_instance_changes_total", &[], "Changes of instances under way."),
    counter("windfall_refusals_total", &[], "Changes that the platform could not carry out."),
    counter("windfall_cpu_granted_core_seconds_total", &[], "CPU held by running calls."),
    counter("windfall_cpu_used_core_seconds_total", &[], "CPU in use."),
    counter("windfall_memory_granted_mib_seconds_total", &[], "Memory held by running calls."),
    gauge(
        "windfall_cpu_harvested_cores",
        &[],
        "CPU held by calls below their reservation, missing.",
    ),
    gauge("windfall_cpu_lent_cores", &[], "CPU held by calls above their reservation, extra."),
    gauge("windfall_instances_count", &["state"], "Instances, by state."),
    gauge("windfall_observation_age_seconds", &[], "Age of the last complete picture."),
    gauge("windfall_policy_quarantined_flag", &["policy"], "1 while a policy is set aside."),
    counter("windfall_objective_judged_total", &[], "Calls whose function has an objective."),
    counter("windfall_objective_missed_total", &[], "Those of them that were late or failed."),
    counter("windfall_cpu_reserved_core_seconds_total", &[], "CPU that users reserved for calls."),
    gauge("windfall_tick_age_seconds", &[], "Time since the last tick began."),
    gauge("windfall_tick_duration_seconds", &[], "How long the last tick took."),
    gauge("windfall_killed_flag", &[], "1 while the kill switch is on."),
    counter("windfall_database_rows_dropped_total", &[], "Rows that the database did not take."),
    counter("windfall_journal_bytes_total", &[], "Bytes written to the journal."),
    counter("windfall_journal_errors_total", &[], "Writes to the journal that failed."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_pattern_and_are_unique() {
        let mut names: Vec<&str> = METRIC_NAMES.iter().map(|metric| metric.name).collect();
        for metric in METRIC_NAMES {
            assert!(metric.name.starts_with("windfall_"), "{}", metric.name);
            assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            let is_counter = metric.kind == MetricKind::Counter;
            assert_eq!(metric.name.ends_with("_total"), is_counter, "{}", metric.name);
            assert!(metric.help.ends_with('.'));
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
