//! What a run served, saved and risked: the object that scripts read, and the report that people open.

use std::sync::PoisonError;

use serde::Serialize;
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Section, Series, Table};
use windfall_telemetry::report::ReportContext;

use crate::embedded::load::Sent;
use crate::live::{ClusterPoint, FunctionLive, Live};
use crate::managed_platform::PlatformKind;
use crate::service::Service;
use crate::supervisor::SupervisorSettings;

/// Functions that the report lists.
const LISTED: usize = 25;

/// The last object of `windfall up`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// `embedded`, `emulated` or `simulated`.
    pub platform: &'static str,
    /// The policy in charge at the end.
    pub policy: String,
    /// The mode at the end.
    pub mode: String,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// Calls that ended.
    pub calls: u64,
    /// Calls that ended without an answer.
    pub failed: u64,
    /// Median latency, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the latency, milliseconds.
    pub p99_ms: f64,
    /// Share of judged calls that met their function's objective.
    pub objective_met_share: f64,
    /// Calls whose function has an objective.
    pub judged: u64,
    /// Core-seconds that users reserved for the calls.
    pub core_seconds_reserved: f64,
    /// Core-seconds that the calls held.
    pub core_seconds_held: f64,
    /// Core-seconds that the calls used.
    pub core_seconds_used: f64,
    /// Times a safeguard changed a decision.
    pub safeguard_trips: u64,
    /// What the load sent and how it was answered, where functions are real.
    pub load: Option<Sent>,
    /// Whether every function is known to have its own allocation back; nothing while it runs.
    pub restored: Option<bool>,
    /// Where the report is.
    pub report: Option<String>,
}

impl Summary {
    /// Sums up `service` as it is now.
    pub fn of(service: &Service) -> Self {
        let live = service.live.read().unwrap_or_else(PoisonError::into_inner);
        let totals = &live.totals;
        let millis = |q: f64| live.latency.quantile(q).unwrap_or(0.0) * 1e3;
        Self {
            platform: service.kind.word(),
            policy: live.policy.clone(),
            mode: service.governance.mode().to_string(),
            seconds: service.clock.now().as_secs_f64(),
            calls: totals.calls,
            failed: totals.failed,
            p50_ms: millis(0.5),
            p99_ms: millis(0.99),
            objective_met_share: totals.met_share(),
            judged: totals.judged,
            core_seconds_reserved: totals.core_seconds_reserved,
            core_seconds_held: totals.core_seconds_held,
            core_seconds_used: totals.core_seconds_used,
            safeguard_trips: totals.safeguard_trips,
            load: None,
            restored: None,
            report: None,
        }
    }

    /// Share of the reserved core-seconds that was not held.
    pub fn saved_share(&self) -> f64 {
        1.0 - self.core_seconds_held / self.core_seconds_reserved.max(1e-9)
    }
}

/// The report of a run as HTML.
pub fn report(service: &Service, summary: &Summary, command: String) -> String {
    let live = service.live.read().unwrap_or_else(PoisonError::into_inner);
    let settings = &service.settings;
    let document = Document {
        context: ReportContext {
            title: "Windfall: what was served, saved and risked".to_owned(),
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: serde_json::json!({
                "policy": settings.policy, "shadow": settings.shadow, "mode": summary.mode,
                "tick_seconds": settings.tick.as_secs_f64(), "seed": settings.seed,
            }),
        },
        subtitle: format!(
            "{}: {}; {:.0} s",
            summary.platform,
            service.kind.explained(),
            summary.seconds
        ),
        story: story(summary, service.kind),
        sections: vec![facts(summary, settings), over_time(&live), functions(&live), rules(&live)],
        refresh_seconds: None,
    };
    document.html()
}

fn story(summary: &Summary, kind: PlatformKind) -> String {
    let unmeasured = match kind {
        PlatformKind::Simulated => " No function ran: these are numbers of the simulator.",
        PlatformKind::Emulated => " Limits were imitated without cgroups, so CPU is approximate.",
        PlatformKind::Embedded => "",
    };
    format!(
        "{} calls were served under the policy {}, {} of them without an answer. Users had reserved {:.0} core-seconds for \
         them; the calls held {:.0} ({:.0} % saved) and used {:.0}. {:.2} % of {} judged calls met their objective, and \
         safeguards changed {} decisions.{unmeasured}",
        summary.calls,
        summary.policy,
        summary.failed,
        summary.core_seconds_reserved,
        summary.core_seconds_held,
        summary.saved_share() * 100.0,
        summary.core_seconds_used,
        summary.objective_met_share * 100.0,
        summary.judged,
        summary.safeguard_trips,
    )
}

fn facts(summary: &Summary, settings: &SupervisorSettings) -> Section {
    let money = (summary.core_seconds_reserved - summary.core_seconds_held) / 3600.0
        * settings.price_per_core_hour;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    Section::new("In numbers", "Counted from the start to the end of the run.").with(Block::Facts(
        vec![
            fact("calls", summary.calls.to_string()),
            fact("latency p99", format!("{:.0} ms", summary.p99_ms)),
            fact("objective met", format!("{:.2} %", summary.objective_met_share * 100.0)),
            fact("core-seconds saved", format!("{:.0} %", summary.saved_share() * 100.0)),
            fact("saved", format!("{}{money:.4}", settings.currency)),
            fact("safeguard trips", summary.safeguard_trips.to_string()),
        ],
    ))
}

fn over_time(live: &Live) -> Section {
    let line = |name: &str, of: fn(&ClusterPoint) -> f64| {
        Series::line(name, live.history.iter().map(|point| (point.at, of(point))))
    };
    let cores = Chart {
        title: "Cores".to_owned(),
        x: Axis::linear("seconds since the start"),
        y: Axis::from_zero("cores"),
        series: vec![
            line("reserved", |point| point.reserved),
            line("granted", |point| point.granted),
            line("used", |point| point.used),
        ],
    };
    let calls = Chart {
        title: "Calls".to_owned(),
        x: Axis::linear("seconds since the start"),
        y: Axis::from_zero("calls"),
        series: vec![
            line("ended per second", |point| point.calls_per_second),
            line("waiting", |point| point.queued),
        ],
    };
    Section::new(
        "Over time",
        "What users reserve for running calls, what those hold, and what they use.",
    )
    .with(Block::Charts(vec![cores, calls]))
}

fn functions(live: &Live) -> Section {
    let mut busiest: Vec<&FunctionLive> = live.functions.iter().collect();
    busiest.sort_by_key(|function| std::cmp::Reverse(function.calls));
    let mut table =
        Table::new(["function", "calls", "p99", "objective", "late", "held of reserved", "trips"]);
    for function in busiest.into_iter().take(LISTED).filter(|function| function.calls > 0) {
        let [reserved, held, _] = function.core_seconds;
        let millis =
            |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.0} ms"));
        table.rows.push(vec![
            function.profile.name.clone().into(),
            function.calls.to_string().into(),
            millis(function.latency_ms(0.99)).into(),
            millis(function.objective.target_ms).into(),
            Cell { worse: function.late > 0, ..Cell::from(function.late.to_string()) },
            format!("{:.0} %", 100.0 * held / reserved.max(1e-9)).into(),
            function.trips.to_string().into(),
        ]);
    }
    Section::new("Functions", "The busiest ones; the dashboard and `windfall db export` have all.")
        .with(Block::Table(table))
}

fn rules(live: &Live) -> Section {
    let mut table = Table::new(["safeguard", "decisions changed"]);
    for (rule, times) in &live.totals.trips_by_rule {
        table.rows.push(vec![rule.clone().into(), times.to_string().into()]);
    }
    Section::new("Safeguards", "How often each changed what the policy had decided.")
        .with(Block::Table(table))
}
