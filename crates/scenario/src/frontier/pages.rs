//! A frontier as text and as a page.

use std::fmt::Write;

use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Document, Point, Section, Series, SeriesStyle, Table,
};
use windfall_telemetry::report::ReportContext;

use super::envelope::{Envelope, Trade};
use super::ratios::Ratio;
use super::trades::{RatioColumn, TradeChart};
use super::{FrontierPoint, FrontierResult, Question};

/// One setting, averaged over the seeds.
pub(super) struct Setting<'a> {
    policy: &'a str,
    dial: f64,
    points: Vec<&'a FrontierPoint>,
}

impl Setting<'_> {
    pub(super) fn mean(&self, of: fn(&FrontierPoint) -> f64) -> f64 {
        self.points.iter().map(|point| of(point)).sum::<f64>() / self.points.len().max(1) as f64
    }

    fn is_incumbent(&self) -> bool {
        self.points.iter().all(|point| point.is_incumbent)
    }

    fn range(&self, of: fn(&FrontierPoint) -> f64) -> (f64, f64) {
        let values = self.points.iter().map(|point| of(point));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
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

/// A dial as it is typed: prices in powers of ten.
pub fn dial(value: f64) -> String {
    let is_small = value != 0.0 && value.abs() < 0.01;
    if is_small { format!("{value:e}") } else { value.to_string() }
}

/// Words under heads, each column as wide as its widest cell; the first one to the left, numbers to the right.
fn aligned(table: &Table) -> String {
    let heads = table.heads.iter().map(String::as_str).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect());
    let lines: Vec<Vec<&str>> = std::iter::once(heads).chain(rows).collect();
    let wide = |place: usize| {
        lines.iter().filter_map(|line| line.get(place)).map(|cell| cell.len()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.heads.len()).map(wide).collect();
    let mut text = String::new();
    for line in lines {
        for (place, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match place {
                0 => write!(text, "{cell:width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

/// The tables for people.
pub fn to_text(question: Question, result: &FrontierResult, ratios: &[Ratio]) -> String {
    format!(
        "{}\nagainst the incumbents' lower envelope, seed by seed:\n{}\n{}",
        aligned(&settings_of(question, result)),
        aligned(&ratios_of(question, ratios)),
        story(question, ratios),
    )
}

/// A ratio, or that the incumbents never get there.
fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// The page.
pub fn document(
    context: ReportContext,
    question: Question,
    result: &FrontierResult,
    ratios: &[Ratio],
) -> Document {
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    };
    let (runs, seeds) = (result.points.len(), result.oracle.len());
    let against = Section::new(
        "Against the envelope",
        "Below 1 is better than every incumbent at any setting, tuned on these very calls. A dash: the \
         incumbents never get there. The small print is 95 % over functions drawn again, on the first seed.",
    );
    let every = Section::new("Every setting", question.reading());
    Document {
        subtitle: format!("{} on {}", count(runs, "run"), count(seeds, "seed")),
        story: story(question, ratios),
        sections: vec![
            curves(question, result),
            against.with(Block::Table(ratios_of(question, ratios))),
            every.with(Block::Table(settings_of(question, result))),
        ],
        context,
        ..Document::default()
    }
}

/// What came out, and where it holds: a ratio exists only where some incumbent is as good.
fn story(question: Question, ratios: &[Ratio]) -> String {
    let (what, good) = match question {
        Question::Scaling | Question::Together { .. } => {
            ("MiB-seconds of the incumbents' envelope at equal slow share", "slow share")
        }
        Question::Sizing { .. } => {
            ("core-seconds of the incumbents' envelope at equal p99 slowdown", "p99 slowdown")
        }
    };
    let Some(first) = ratios.first() else {
        return "No family was set against the incumbents.".to_owned();
    };
    let of = question.ratio_columns()[0].of;
    let own: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.policy == first.policy).collect();
    let known: Vec<f64> = own.iter().filter_map(|ratio| of(ratio)).collect();
    let beyond: Vec<String> =
        own.iter().filter(|ratio| of(ratio).is_none()).map(|ratio| dial(ratio.price)).collect();
    if known.is_empty() {
        return format!("{} has a lower {good} than the incumbents ever get.", first.policy);
    }
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(0.0, f64::max);
    let mut text = format!("{} needs {low:.3} to {high:.3} of the {what}.", first.policy);
    if !beyond.is_empty() {
        text += &format!(
            " That is said of the settings at which some incumbent gets there; at {} none has as low a {good}.",
            beyond.join(" and ")
        );
    }
    text
}

fn curves(question: Question, result: &FrontierResult) -> Section {
    let settings = settings(result);
    let charts = question.charts().iter().map(|trade| chart(trade, &settings));
    Section::new(
        "Curves",
        "Each curve is one policy with its dial swept; a point is the mean over seeds, its bar the range. \
         Further down and to the left is better. The dashed line is the lower envelope of the incumbents' \
         means: what the best of them does for the same price.",
    )
    .with(Block::Charts(charts.collect()))
}

fn chart(trade: &TradeChart, settings: &[Setting<'_>]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for setting in settings {
        let (low, high) = setting.range(trade.bad);
        let point = Point::new(setting.mean(trade.paid), setting.mean(trade.bad))
            .with_spread(low, high)
            .with_label(dial(setting.dial));
        match series.iter_mut().find(|series| series.name == setting.policy) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                name: setting.policy.to_owned(),
                style: SeriesStyle::Frontier,
                points: vec![point],
            }),
        }
    }
    let incumbents = settings.iter().filter(|setting| setting.is_incumbent());
    let means = incumbents
        .map(|setting| Trade { paid: setting.mean(trade.paid), bad: setting.mean(trade.bad) });
    // Where nothing is bad a logarithm has no place for it.
    let envelope = Envelope::of(means, f64::MIN_POSITIVE);
    let corners = envelope.points.iter().filter(|point| point.bad > f64::MIN_POSITIVE);
    series.push(Series {
        name: "incumbents' envelope".to_owned(),
        style: SeriesStyle::Reference,
        points: corners.map(|point| Point::new(point.paid, point.bad)).collect(),
    });
    let (x, y) = (Axis::log(trade.x), Axis::log(trade.y));
    Chart { title: trade.title.to_owned(), x, y, series }
}

fn ratios_of(question: Question, ratios: &[Ratio]) -> Table {
    let columns = question.ratio_columns();
    let heads = columns.iter().map(|column| column.head);
    let mut table = Table::new(["setting"].into_iter().chain(heads).chain(["seeds won"]));
    for ratio in ratios {
        let cell = |column: &RatioColumn| {
            let value = (column.of)(ratio);
            let worse = value.is_some_and(|value| value > column.fair);
            Cell { worse, ..Cell::from(shown(value)) }
        };
        let mut cells: Vec<Cell> = columns.iter().map(cell).collect();
        if let Some((low, high)) = ratio.bootstrap.filter(|_| question == Question::Scaling) {
            cells[0].small = format!("functions {low:.2} to {high:.2}");
        }
        let name = format!("{} at {}", ratio.policy, dial(ratio.price));
        let won = format!("{} of {}", ratio.seeds_won, ratio.seeds);
        table.rows.push([name.into()].into_iter().chain(cells).chain([won.into()]).collect());
    }
    table
}

fn settings_of(question: Question, result: &FrontierResult) -> Table {
    let columns = question.setting_columns();
    let mut table = Table::new(["setting"].into_iter().chain(columns.iter().map(|c| c.head)));
    for setting in settings(result) {
        let name = format!("{} at {}", setting.policy, dial(setting.dial));
        let cells = columns.iter().map(|column| {
            let (value, decimals) = ((column.of)(&setting, result), column.decimals);
            Cell::from(format!("{value:.decimals$}"))
        });
        table.rows.push([name.into()].into_iter().chain(cells).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_told_as_they_are_typed() {
        let told = [3e-6, 1e-4, 0.001, 0.3, 600.0, 0.0].map(dial);
        assert_eq!(told, ["3e-6", "1e-4", "1e-3", "0.3", "600", "0"]);
    }

    #[test]
    fn a_story_says_where_its_ratio_holds() {
        let ratio = |price, mib_seconds_at_equal_slow_share| Ratio {
            policy: "ours".to_owned(),
            price,
            mib_seconds_at_equal_slow_share,
            ..Ratio::default()
        };
        let told = story(Question::Scaling, &[ratio(3e-6, None), ratio(1e-5, Some(0.7))]);
        assert!(told.contains("0.700 to 0.700") && told.contains("at 3e-6 none"), "{told}");
        let never = story(Question::Scaling, &[ratio(3e-6, None)]);
        assert_eq!(never, "ours has a lower slow share than the incumbents ever get.");
    }

    #[test]
    fn each_question_has_its_own_columns() {
        let heads = |question| ratios_of(question, &[]).heads.join(" | ");
        assert!(!heads(Question::Scaling).contains("core-s"));
        assert!(!heads(Question::Sizing { load: 0.8 }).contains("MiB-s"));
    }
}
