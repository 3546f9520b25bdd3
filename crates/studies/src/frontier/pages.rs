//! A frontier as a page.

use windfall_telemetry::document::{
    Axis, Block, Chart, Document, Point, Section, Series, SeriesStyle,
};
use windfall_telemetry::report::ReportContext;

use super::alone::over_alone;
use super::envelope::{Envelope, Trade};
use super::ratios::Ratio;
use super::tables::{Setting, alone_of, parameter, ratios_of, settings, settings_of};
use super::texts::story;
use super::trades::TradeChart;
use super::{FrontierResult, Interval, Question};

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
    let over = over_alone(&result.points);
    let alone = (!over.is_empty()).then(|| {
        let section = Section::new(
            "Over each alone",
            "Both decision points together on the same calls over sizing with a plain keep-alive, over scaling at the \
             users' sizes, and over the incumbents' pair with the fewest slow calls: geometric mean, in small print the \
             least and the largest seed.",
        );
        section.with(Block::Table(alone_of(&over)))
    });
    Document {
        subtitle: format!("{} on {}", count(runs, "run"), count(seeds, "seed")),
        story: story(question, ratios),
        sections: [
            curves(question, result),
            against.with(Block::Table(ratios_of(question, ratios))),
        ]
        .into_iter()
        .chain(alone)
        .chain([every.with(Block::Table(settings_of(question, result)))])
        .collect(),
        context,
        ..Document::default()
    }
}

fn curves(question: Question, result: &FrontierResult) -> Section {
    let mut settings = settings(result);
    // In the legend ours comes first: it is what the page is about.
    settings.sort_by_key(Setting::is_incumbent);
    let charts = question.charts().iter().map(|trade| chart(trade, &settings));
    Section::new(
        "Curves",
        "Each curve is one policy with its parameter swept; a point is the mean over seeds, its bar the range. \
         Further down and to the left is better. The dashed line is the lower envelope of the incumbents' \
         means: what the best of them does for the same price.",
    )
    .with(Block::Charts(charts.collect()))
}

fn chart(trade: &TradeChart, settings: &[Setting<'_>]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for setting in settings {
        let Interval { low, high } = setting.range(trade.bad);
        let point = Point::new(setting.mean(trade.paid), setting.mean(trade.bad))
            .with_spread(low, high)
            .with_label(parameter(setting.parameter));
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
