//! The page of a training: its curves so far.

use serde_json::Value;
use windfall_rl::training::{Best, CurvePoint};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Chart, Point, Section, Series};
use windfall_telemetry::report::ReportContext;

/// More points than a chart has pixels say nothing more.
const MOST_POINTS: usize = 1000;

/// The page of the training `title`, made by `command`; one that is still going on reloads itself every
/// `refresh_seconds`.
pub fn page(
    title: &str,
    command: &str,
    settings: &Value,
    curve: &[CurvePoint],
    refresh_seconds: Option<u32>,
) -> Document {
    let last = curve.last().map(|point| &point.report);
    let (iteration, steps) = last.map_or((0, 0), |report| (report.iteration, report.steps));
    let state = if refresh_seconds.is_some() { "training goes on" } else { "at rest" };
    Document {
        context: ReportContext {
            title: title.to_owned(),
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: settings.clone(),
        },
        subtitle: format!("iteration {iteration}, {steps} steps, {state}"),
        story: story(curve),
        sections: vec![
            Section::new(
                "Reward",
                "Return of an episode: in training, with exploration, and of the policy alone on the \
                 validation part (its band from the worst to the best episode).",
            )
            .with(Block::Charts(vec![rewards(curve)])),
            Section::new("Learner", "What the algorithm reports of itself, by iteration.")
                .with(Block::Charts(metrics(curve))),
        ],
        refresh_seconds,
    }
}

fn story(curve: &[CurvePoint]) -> String {
    match Best::of(curve) {
        Some(best) => format!(
            "The best policy so far earned {:.2} per episode in the evaluation after iteration {}.",
            best.mean, best.iteration
        ),
        None => "No policy has been evaluated yet.".to_owned(),
    }
}

fn rewards(curve: &[CurvePoint]) -> Chart {
    let evaluated = curve.iter().filter_map(|point| {
        let found = point.evaluation?;
        Some(Point::new(across(point), found.mean).with_spread(found.low, found.high))
    });
    let played = curve.iter().filter_map(|point| Some((across(point), point.report.mean_return?)));
    Chart {
        title: "Return per episode".to_owned(),
        x: Axis::linear("iteration"),
        y: Axis::linear("sum of rewards"),
        series: vec![
            Series {
                name: "evaluation".to_owned(),
                points: evaluated.collect(),
                ..Series::default()
            },
            Series::line("training", thin(played.collect())),
        ],
    }
}

fn metrics(curve: &[CurvePoint]) -> Vec<Chart> {
    let names = curve.last().map(|point| point.report.metrics.keys()).into_iter().flatten();
    let chart = |name: &String| {
        let points = curve
            .iter()
            .filter_map(|point| Some((across(point), *point.report.metrics.get(name)?)))
            .collect();
        Chart {
            title: name.replace('_', " "),
            x: Axis::linear("iteration"),
            y: Axis::linear(name.replace('_', " ")),
            series: vec![Series::line(name.replace('_', " "), thin(points))],
        }
    };
    names.map(chart).collect()
}

#[expect(clippy::cast_precision_loss, reason = "iterations are few")]
fn across(point: &CurvePoint) -> f64 {
    point.report.iteration as f64
}

/// Every so many points, the last always.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(place, _)| place % every == 0 || *place == last).map(|(_, point)| point).collect()
}
