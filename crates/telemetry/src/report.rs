//! One HTML file that needs nothing else: no network, no server. Data, style and script are inside; the
//! script draws from the data, so that one file can be searched, zoomed and switched between loads.
//!
//! Text from outside (policy and function names, settings, commands) reaches the page either escaped or
//! inside a JSON block in which no `<` is left, and the script only ever sets it as text.

mod from_files;
mod narrative;
mod palette;

pub use from_files::{ComparisonResults, JournalReport, journal_report};
pub(crate) use palette::signs;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::comparison::{Comparison, HEADLINE};
use crate::metric_table::{METRICS, metric};
use crate::metrics::RunDetail;
use crate::metrics::series::TimeSeries;
use crate::summary::RunSummary;

const STYLE: &str = include_str!("../assets/report.css");
const ELEMENTS: &str = include_str!("../assets/elements.js");
const CHARTS: &str = include_str!("../assets/charts.js");
const SCRIPT: &str = include_str!("../assets/report.js");

/// What every report says about where its numbers come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportContext {
    /// The heading.
    pub title: String,
    /// The command that makes these numbers again.
    pub command: String,
    /// Version of Windfall.
    pub version: String,
    /// The settings as they were resolved.
    pub settings: Value,
}

/// A workload in pictures; made by whoever knows the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracePicture {
    /// The heading.
    pub title: String,
    /// One paragraph about it.
    pub notes: String,
    /// Second, calls per second.
    pub arrivals: Vec<(f64, f64)>,
    /// Seconds, share of calls.
    pub durations: Vec<(f64, f64)>,
    /// So many of the busiest functions, calls of all of them together.
    pub popularity: Vec<(f64, f64)>,
    /// Trigger, share or count.
    pub triggers: Vec<(String, f64)>,
    /// Anything else worth a line: name, value.
    pub facts: Vec<(String, String)>,
}

/// The report of a comparison. Of `details`, the first for each load and policy is shown.
pub fn comparison_report(
    context: &ReportContext,
    comparison: &Comparison,
    details: &[RunDetail],
) -> String {
    let mut policies: Vec<&str> = Vec::new();
    for aggregate in &comparison.aggregates {
        if !policies.contains(&aggregate.policy.as_str()) {
            policies.push(&aggregate.policy);
        }
    }
    let best: serde_json::Map<String, Value> = comparison
        .loads()
        .into_iter()
        .map(|load| {
            let keys = HEADLINE.iter().map(|key| (*key, comparison.best(load, key)));
            (load.to_string(), keys.collect::<std::collections::BTreeMap<_, _>>().into_json())
        })
        .collect();
    let mut data = common(context, "comparison");
    data["policies"] = json!(policies);
    data["loads"] = json!(comparison.loads());
    data["best"] = Value::Object(best);
    data["best_policy"] = json!(narrative::best_policy(comparison).or(policies.first().copied()));
    data["palette"] = json!(palette::signs(&policies));
    data["verdicts"] = json!(narrative::verdicts(comparison));
    data["seed_metrics"] = json!(SEED_METRICS);
    data["seeds"] = seed_rows(&comparison.rows);
    data["comparison"] = json!({
        "baseline": comparison.baseline,
        "aggregates": comparison.aggregates,
        "pairs": comparison.pairs,
    });
    data["details"] = first_details(details);
    let mut seeds: Vec<u64> = comparison.rows.iter().map(|row| row.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let note = comparison.left_out_note().map(|note| format!(" · {note}")).unwrap_or_default();
    data["footer"] = json!(footer(context, &seeds) + &note);
    page(&context.title, &subtitle(comparison), &narrative::story(comparison), &data)
}

/// The report of one run.
pub fn run_report(context: &ReportContext, run: &RunSummary, detail: &RunDetail) -> String {
    let mut data = common(context, "run");
    data["policies"] = json!([run.policy]);
    data["palette"] = json!(palette::signs(&[&run.policy]));
    data["run"] = json!(run);
    let undefined = METRICS.iter().filter(|metric| metric.of(run).is_none());
    data["undefined"] = undefined.map(|metric| metric.key).collect::<Vec<_>>().into_json();
    data["details"] = first_details(std::slice::from_ref(detail));
    data["footer"] = json!(footer(context, &[run.seed]));
    let subtitle = format!("policy {}, load {}, seed {}", run.policy, run.load, run.seed);
    page(&context.title, &subtitle, &narrative::run_story(run), &data)
}

/// The report of a workload.
pub fn trace_report(version: &str, picture: &TracePicture) -> String {
    let context = ReportContext { version: version.to_owned(), ..ReportContext::default() };
    let mut data = common(&context, "trace");
    data["metrics"] = json!([]);
    data["trace"] = json!(picture);
    data["footer"] = json!(format!("Windfall {version}"));
    page(&picture.title, "workload", &picture.notes, &data)
}

trait IntoJson {
    fn into_json(self) -> Value;
}

impl<T: Serialize> IntoJson for T {
    fn into_json(self) -> Value {
        json!(self)
    }
}

fn common(context: &ReportContext, kind: &str) -> Value {
    let metrics: Vec<Value> = METRICS
        .iter()
        .map(|metric| {
            json!({
                "key": metric.key, "label": metric.label, "unit": metric.unit,
                "direction": metric.direction.words(), "meaning": metric.meaning,
            })
        })
        .collect();
    json!({
        "kind": kind, "metrics": metrics, "headline": HEADLINE, "details": [],
        "command": context.command, "settings": context.settings,
    })
}

/// What can be looked at seed by seed.
const SEED_METRICS: [&str; 7] = [
    "slowdown_p99",
    "slowdown_p999",
    "bounded_slowdown_p99",
    "rfet_mean",
    "violation_share",
    "cold_share",
    "core_seconds_held",
];

fn seed_rows(rows: &[RunSummary]) -> Value {
    let row = |row: &RunSummary| {
        let mut value = json!({ "policy": row.policy, "load": row.load, "seed": row.seed });
        for key in SEED_METRICS {
            value[key] = json!(metric(key).and_then(|metric| metric.of(row)).map(rounded));
        }
        value
    };
    Value::Array(rows.iter().filter(|row| row.calls > 0).map(row).collect())
}

fn first_details(details: &[RunDetail]) -> Value {
    let mut shown: Vec<&RunDetail> = Vec::new();
    for detail in details {
        let is_new = |other: &&RunDetail| {
            (other.label.load, &other.label.policy) != (detail.label.load, &detail.label.policy)
        };
        if shown.iter().all(is_new) {
            shown.push(detail);
        }
    }
    let all = shown.iter().map(|detail| {
        let mut value = json!(detail);
        value["series"] = columns(&detail.series);
        value["slowdown_cdf"] = detail
            .slowdown_cdf
            .iter()
            .map(|(x, y)| json!([rounded(*x), y]))
            .collect::<Vec<_>>()
            .into_json();
        if let Some(page) = value.as_object_mut() {
            // The page of a comparison does not draw it.
            page.remove("latency_cdf");
        }
        value
    });
    Value::Array(all.collect())
}

/// Columns of rounded numbers take a fifth of the space of named, exact ones.
fn columns(series: &TimeSeries) -> Value {
    let points = series.points();
    macro_rules! column {
        ($field:ident) => {
            points.iter().map(|point| rounded(point.$field)).collect::<Vec<f64>>()
        };
    }
    let time: Vec<f64> = points.iter().map(|point| rounded(point.from.as_secs_f64())).collect();
    json!({
        "time": time,
        "capacity_cores": column!(capacity_cores), "demand_cores": column!(demand_cores),
        "granted_cores": column!(granted_cores), "held_back_cores": column!(held_back_cores),
        "used_cores": column!(used_cores),
        "harvested_cores": column!(harvested_cores), "lent_cores": column!(lent_cores),
        "running": column!(running), "waiting": column!(waiting), "instances": column!(instances),
    })
}

/// Five digits that matter: more cannot be seen in a picture.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(4.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn subtitle(comparison: &Comparison) -> String {
    let loads: Vec<String> = comparison.loads().iter().map(f64::to_string).collect();
    format!("{} runs, load {}", comparison.rows.len(), loads.join(", "))
}

fn footer(context: &ReportContext, seeds: &[u64]) -> String {
    let listed: Vec<String> = seeds.iter().take(20).map(u64::to_string).collect();
    let more = if seeds.len() > 20 { " and more" } else { "" };
    format!("Windfall {} · seeds {}{more}", context.version, listed.join(", "))
}

pub(crate) fn page(title: &str, subtitle: &str, story: &str, data: &Value) -> String {
    let (title, subtitle, story) = (escaped(title), escaped(subtitle), escaped(story));
    let data = script_safe(&data.to_string());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"kicker\">{subtitle}</p>\n<p class=\"story\">{story}</p>\n\
         <noscript><p>The charts need JavaScript; nothing is loaded from outside.</p></noscript>\n\
         </main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{ELEMENTS}</script>\n<script>\n{CHARTS}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// JSON in which nothing can end the script block it stands in.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::RunMetrics;
    use crate::sample::{call, label};
    use windfall_core::{TelemetrySink, Timestamp};

    const NASTY: &str = "</script><script>alert(1)</script><!--&\u{2028}";

    fn scripts(html: &str) -> usize {
        html.to_lowercase().matches("<script").count()
    }

    #[test]
    fn no_text_from_outside_becomes_markup() {
        let mut metrics = RunMetrics::new(Timestamp::ZERO);
        metrics.call(&call(0, 1.0));
        let name = label(NASTY, 1);
        let context = ReportContext {
            title: NASTY.to_owned(),
            command: NASTY.to_owned(),
            version: NASTY.to_owned(),
            settings: json!({ NASTY: NASTY }),
        };
        let names = vec![NASTY.to_owned(); 2];
        let detail = metrics.detail(&name, &names);
        let comparison = Comparison::new(vec![metrics.summary(&name)], NASTY);
        let picture = TracePicture {
            title: NASTY.to_owned(),
            notes: NASTY.to_owned(),
            triggers: vec![(NASTY.to_owned(), 1.0)],
            facts: vec![(NASTY.to_owned(), NASTY.to_owned())],
            ..TracePicture::default()
        };
        let pages = [
            comparison_report(&context, &comparison, std::slice::from_ref(&detail)),
            run_report(&context, &metrics.summary(&name), &detail),
            trace_report(NASTY, &picture),
        ];
        for html in pages {
            assert_eq!(scripts(&html), 4);
            assert_eq!(html.matches("</script").count(), 4);
            assert!(!html.contains("<!--"));
            // In the text of the page a line separator is harmless; in a script it was not always.
            let (_, scripts) = html.split_once("</main>").unwrap();
            assert!(!scripts.contains('\u{2028}'));
        }
    }

    #[test]
    fn a_report_asks_nothing_of_the_network() {
        let html = trace_report("0.1.0", &TracePicture::default());
        let outside = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("http://") && !outside.contains("https://"));
        assert!(html.len() < 60_000, "{} bytes before any data", html.len());
    }

    #[test]
    fn pictures_keep_five_digits() {
        assert_eq!(rounded(1234.5678), 1234.6);
        assert_eq!(rounded(0.000_123_456_78), 0.000_123_46);
        assert_eq!(rounded(0.0), 0.0);
    }
}
