//! Prometheus metrics. Names, kinds and help come from the one list in the telemetry crate; a name that is not in it is
//! not exported.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use windfall_telemetry::LogHistogram;
use windfall_telemetry::metric_names::METRIC_NAMES;

use super::ApiState;
use crate::live::Live;

/// Bounds of the latency histogram, seconds.
const BOUNDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// The text, metric by metric.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    /// Begins the metric `name`; false if the list does not have it.
    fn begin(&mut self, name: &str) -> bool {
        let Some(metric) = METRIC_NAMES.iter().find(|metric| metric.name == name) else {
            debug_assert!(false, "{name} is not in METRIC_NAMES");
            return false;
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {}", metric.help);
        let _ = writeln!(self.0, "# TYPE {name} {}", metric.kind.word());
        true
    }

    fn value(&mut self, name: &str, value: f64) {
        self.labelled(name, &[("", value)]);
    }

    /// One line for each set of labels, written as `rule="limits"`.
    fn labelled(&mut self, name: &str, values: &[(&str, f64)]) {
        if self.begin(name) {
            for (labels, value) in values {
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(self.0, "{name}{labels} {value}");
            }
        }
    }

    fn histogram(&mut self, name: &str, values: &LogHistogram) {
        if !self.begin(name) {
            return;
        }
        let cdf = values.cdf(400);
        let count = values.count();
        for bound in BOUNDS {
            let below = cdf.iter().take_while(|(value, _)| *value <= bound).last();
            let share = below.map_or(0.0, |(_, share)| *share);
            let calls = (share * count as f64).round();
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{bound}\"}} {calls}");
        }
        let _ = writeln!(self.0, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(self.0, "{name}_sum {}", values.sum());
        let _ = writeln!(self.0, "{name}_count {count}");
    }
}

pub(super) async fn metrics(State(state): State<Arc<ApiState>>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text(&state)).into_response()
}

fn text(state: &ApiState) -> String {
    let live = state.live();
    let totals = &live.totals;
    let mut out = Exposition::default();
    let answered = (totals.calls - totals.failed) as f64;
    out.labelled(
        "windfall_calls_ended_total",
        &[("end=\"completed\"", answered), ("end=\"failed\"", totals.failed as f64)],
    );
    out.value("windfall_cold_starts_total", totals.cold_starts as f64);
    out.value("windfall_oom_kills_total", totals.oom_kills as f64);
    out.value("windfall_objective_judged_total", totals.judged as f64);
    out.value("windfall_objective_missed_total", (totals.judged - totals.met) as f64);
    out.histogram("windfall_call_latency_seconds", &live.latency);
    let decided = totals.ticks.saturating_sub(totals.blind_ticks) as f64;
    out.labelled(
        "windfall_ticks_total",
        &[
            ("decided_by=\"policy\"", decided),
            ("decided_by=\"fallback\"", totals.blind_ticks as f64),
        ],
    );
    let rules: Vec<(String, f64)> = (totals.trips_by_rule.iter())
        .map(|(rule, count)| (format!("rule=\"{rule}\""), *count as f64))
        .collect();
    let rules: Vec<(&str, f64)> =
        rules.iter().map(|(rule, count)| (rule.as_str(), *count)).collect();
    out.labelled("windfall_amendments_total", &rules);
    out.value("windfall_grant_changes_total", totals.grant_changes as f64);
    out.value("windfall_refusals_total", totals.refused as f64);
    cores(&mut out, &live);
    instances(&mut out, &live);
    let now = state.clock.now();
    out.value("windfall_observation_age_seconds", now.since(live.health.seen_at).as_secs_f64());
    out.value("windfall_tick_age_seconds", now.since(live.health.last_tick).as_secs_f64());
    out.value("windfall_tick_duration_seconds", live.health.tick_took.as_secs_f64());
    let quarantined = f64::from(u8::from(live.health.is_quarantined));
    out.labelled(
        "windfall_policy_quarantined_flag",
        &[(&format!("policy=\"{}\"", live.policy.replace(['"', '\\', '\n'], "_")), quarantined)],
    );
    out.value("windfall_killed_flag", f64::from(u8::from(state.governance.is_killed())));
    out.value("windfall_database_rows_dropped_total", live.health.rows_dropped as f64);
    out.0
}

/// CPU and memory, in all and now.
fn cores(out: &mut Exposition, live: &Live) {
    let totals = &live.totals;
    out.value("windfall_cpu_reserved_core_seconds_total", totals.core_seconds_reserved);
    out.value("windfall_cpu_granted_core_seconds_total", totals.core_seconds_held);
    out.value("windfall_cpu_used_core_seconds_total", totals.core_seconds_used);
    out.value("windfall_memory_granted_mib_seconds_total", totals.mib_seconds_held);
    if let Some(point) = live.history.back() {
        out.value("windfall_cpu_harvested_cores", point.harvested);
        out.value("windfall_cpu_lent_cores", point.lent);
    }
}

fn instances(out: &mut Exposition, live: &Live) {
    let states = live.functions.iter().fold((0, 0, 0), |(ready, busy, starting), function| {
        let (r, b, s) = function.instances;
        (ready + r, busy + b, starting + s)
    });
    out.labelled(
        "windfall_instances_count",
        &[
            ("state=\"idle\"", f64::from(states.0.saturating_sub(states.1))),
            ("state=\"busy\"", f64::from(states.1)),
            ("state=\"starting\"", f64::from(states.2)),
        ],
    );
}
