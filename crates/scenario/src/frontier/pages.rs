//! A frontier as text and as a page.

use std::fmt::Write;

use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Document, Point, Section, Series, SeriesStyle, Table,
};
use windfall_telemetry::report::ReportContext;

use super::ratios::Ratio;
use super::{FrontierPoint, FrontierResult, Question};

/// One setting, averaged over the seeds.
struct Setting<'a> {
    policy: &'a str,
    dial: f64,
    points: Vec<&'a FrontierPoint>,
}

impl Setting<'_> {
    fn mean(&self, of: fn(&FrontierPoint) -> f64) -> f64 {
        self.points.iter().map(|point| of(point)).sum::<f64>() / self.points.len().max(1) as f64
    }

    fn range(&self, of: fn(&FrontierPoint) -> f64) -> (f64, f64) {
        let values = self.points.iter().map(|point| of(point));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    }

    /// MiB-seconds over those of the oracle.
    fn over_oracle(&self, result: &FrontierResult) -> f64 {
        let held: f64 = result.oracle.iter().map(|point| point.cost.mib_seconds).sum();
        let mean = held / result.oracle.len().max(1) as f64;
        self.mean(|point| point.mib_seconds) / mean.max(f64::MIN_POSITIVE)
    }
}

fn settings(result: &FrontierResult) -> Vec<Setting<'_>> {
    let mut settings: Vec<Setting<'_>> = Vec::new();
    for point in &result.points {
        let known = settings
            .iter_mut()
            .find(|setting| setting.policy == point.policy && setting.dial == point.dial);
        match known {
            Some(setting) => setting.points.push(point),
            None => settings.push(Setting {
                policy: &point.policy,
                dial: point.dial,
                points: vec![point],
            }),
        }
    }
    settings
}

/// The tables for people.
pub fn to_text(question: Question, result: &FrontierResult, ratios: &[Ratio]) -> String {
    let mut text = format!(
        "{:32} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n",
        "policy", "dial", "slow %", "per fn %", "b-p99", "p99", "MiB/or", "changes/h", "core-s"
    );
    for setting in settings(result) {
        let _ = writeln!(
            text,
            "{:32} {:>9} {:>8.3} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>9.0} {:>9.0}",
            setting.policy,
            setting.dial,
            100.0 * setting.mean(|point| point.slow_share),
            100.0 * setting.mean(|point| point.slow_share_per_function),
            setting.mean(|point| point.bounded_slowdown_p99),
            setting.mean(|point| point.slowdown_p99),
            setting.over_oracle(result),
            setting.mean(|point| point.changes_per_hour),
            setting.mean(|point| point.core_seconds),
        );
    }
    let _ = writeln!(text, "\nagainst the incumbents' lower envelope, seed by seed:");
    let head = ["at equal slow share", "at equal MiB-s", "at equal slow share", "at equal p99"];
    let _ = writeln!(
        text,
        "{:32} {:>9} {:>20} {:>20} {:>20} {:>14} {:>7}  bootstrap",
        "policy", "dial", "MiB-s", "slow share", "instance-s", "core-s", "won"
    );
    let [a, b, c, d] = head;
    let _ = writeln!(text, "{:42} {a:>20} {b:>20} {c:>20} {d:>14}", "");
    for ratio in ratios {
        let bootstrap = ratio.bootstrap.filter(|_| question == Question::Scaling);
        let _ = writeln!(
            text,
            "{:32} {:>9} {:>20} {:>20} {:>20} {:>14} {:>7}  {}",
            ratio.policy,
            ratio.price,
            shown(ratio.mib_seconds_at_equal_slow_share),
            shown(ratio.slow_share_at_equal_mib_seconds),
            shown(ratio.instance_seconds_at_equal_slow_share),
            shown(ratio.core_seconds_at_equal_p99),
            format!("{}/{}", ratio.seeds_won, ratio.seeds),
            bootstrap.map_or(String::new(), |(low, high)| format!("[{low:.2}..{high:.2}]")),
        );
    }
    text
}

/// A ratio, or that the incumbents never get there.
fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The page.
pub fn document(
    context: ReportContext,
    question: Question,
    result: &FrontierResult,
    ratios: &[Ratio],
) -> Document {
    let seeds = result.oracle.len();
    Document {
        subtitle: format!("{} runs on {seeds} seeds", result.points.len()),
        story: story(question, ratios),
        sections: vec![curves(question, result), ratio_table(ratios), setting_table(result)],
        context,
        ..Document::default()
    }
}

fn story(question: Question, ratios: &[Ratio]) -> String {
    let of = |ratio: &Ratio| match question {
        Question::Scaling => ratio.mib_seconds_at_equal_slow_share,
        Question::Sizing { .. } => ratio.core_seconds_at_equal_p99,
    };
    let what = match question {
        Question::Scaling => "MiB-seconds of the incumbents' envelope at equal slow share",
        Question::Sizing { .. } => "core-seconds of the incumbents' envelope at equal p99 slowdown",
    };
    let Some(first) = ratios.first() else {
        return "No family was set against the incumbents.".to_owned();
    };
    let own: Vec<f64> =
        ratios.iter().filter(|ratio| ratio.policy == first.policy).filter_map(of).collect();
    let (low, high) = own.iter().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
    if own.is_empty() {
        return format!("{} is better than the incumbents ever get.", first.policy);
    }
    format!("{} needs {low:.2} to {high:.2} of the {what}.", first.policy)
}

/// A chart of one trade.
struct Trade {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    paid: fn(&FrontierPoint) -> f64,
    bad: fn(&FrontierPoint) -> f64,
}

const SCALING: [Trade; 4] = [
    Trade {
        title: "Slow calls against memory",
        x: "MiB-seconds held",
        y: "slow calls, %",
        paid: |point| point.mib_seconds,
        bad: |point| 100.0 * point.slow_share,
    },
    Trade {
        title: "Slow calls against instances",
        x: "instance-seconds",
        y: "slow calls, %",
        paid: |point| point.instance_seconds,
        bad: |point| 100.0 * point.slow_share,
    },
    Trade {
        title: "Slow calls of the mean function against memory",
        x: "MiB-seconds held",
        y: "slow calls per function, %",
        paid: |point| point.mib_seconds,
        bad: |point| 100.0 * point.slow_share_per_function,
    },
    Trade {
        title: "Churn against memory",
        x: "MiB-seconds held",
        y: "instance changes per hour",
        paid: |point| point.mib_seconds,
        bad: |point| point.changes_per_hour,
    },
];

const SIZING: [Trade; 1] = [Trade {
    title: "p99 slowdown against CPU",
    x: "core-seconds granted",
    y: "p99 slowdown",
    paid: |point| point.core_seconds,
    bad: |point| point.slowdown_p99,
}];

fn curves(question: Question, result: &FrontierResult) -> Section {
    let trades: &[Trade] = match question {
        Question::Scaling => &SCALING,
        Question::Sizing { .. } => &SIZING,
    };
    let settings = settings(result);
    let charts = trades.iter().map(|trade| {
        let mut series: Vec<Series> = Vec::new();
        for setting in &settings {
            let (low, high) = setting.range(trade.bad);
            let point = Point::new(setting.mean(trade.paid), setting.mean(trade.bad))
                .with_spread(low, high)
                .with_label(setting.dial.to_string());
            match series.iter_mut().find(|series| series.name == setting.policy) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    name: setting.policy.to_owned(),
                    style: SeriesStyle::Frontier,
                    points: vec![point],
                }),
            }
        }
        let (x, y) = (Axis::log(trade.x), Axis::log(trade.y));
        Chart { title: trade.title.to_owned(), x, y, series }
    });
    Section::new(
        "Curves",
        "Each curve is one policy with its dial swept; a point is the mean over seeds, its bar the range. \
         Further down and to the left is better.",
    )
    .with(Block::Charts(charts.collect()))
}

fn ratio_table(ratios: &[Ratio]) -> Section {
    let mut table = Table::new([
        "setting",
        "MiB-s at equal slow share",
        "slow share at equal MiB-s",
        "instance-s at equal slow share",
        "slow share per function at equal MiB-s",
        "core-s at equal p99",
        "seeds won",
    ]);
    for ratio in ratios {
        let cell = |value: Option<f64>| Cell {
            worse: value.is_some_and(|value| value >= 1.0),
            ..Cell::from(shown(value))
        };
        let spread = ratio.bootstrap.map(|(low, high)| format!("functions {low:.2} to {high:.2}"));
        table.rows.push(vec![
            format!("{} at {}", ratio.policy, ratio.price).into(),
            Cell {
                small: spread.unwrap_or_default(),
                ..cell(ratio.mib_seconds_at_equal_slow_share)
            },
            cell(ratio.slow_share_at_equal_mib_seconds),
            cell(ratio.instance_seconds_at_equal_slow_share),
            cell(ratio.slow_share_per_function_at_equal_mib_seconds),
            cell(ratio.core_seconds_at_equal_p99),
            format!("{} of {}", ratio.seeds_won, ratio.seeds).into(),
        ]);
    }
    Section::new(
        "Against the envelope",
        "Below 1 is better than every incumbent at any setting, tuned on these very calls. A dash: the \
         incumbents never get there. The small print is 95 % over functions drawn again, on the first seed.",
    )
    .with(Block::Table(table))
}

fn setting_table(result: &FrontierResult) -> Section {
    let mut table = Table::new([
        "setting",
        "slow %",
        "slow % per function",
        "bounded p99",
        "MiB-s over oracle",
        "changes/h",
    ]);
    for setting in settings(result) {
        table.rows.push(vec![
            format!("{} at {}", setting.policy, setting.dial).into(),
            format!("{:.3}", 100.0 * setting.mean(|point| point.slow_share)).into(),
            format!("{:.2}", 100.0 * setting.mean(|point| point.slow_share_per_function)).into(),
            format!("{:.2}", setting.mean(|point| point.bounded_slowdown_p99)).into(),
            format!("{:.2}", setting.over_oracle(result)).into(),
            format!("{:.0}", setting.mean(|point| point.changes_per_hour)).into(),
        ]);
    }
    Section::new(
        "Every setting",
        "The oracle knows all arrivals and nobody waits; a policy that lets calls queue can hold less.",
    )
    .with(Block::Table(table))
}
