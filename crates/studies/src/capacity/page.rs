//! Load held as a page: what each policy holds, and how service changes with load.

use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Document, Point, Section, Series, SeriesStyle, Table,
};
use windfall_telemetry::report::ReportContext;

use super::objective::{Objective, Service};
use super::summary::{CapacitySummary, Entrant, best_of};
use super::texts::{by_world, story};
use super::{CapacityResult, FixedService};

/// The page.
pub fn document(
    context: ReportContext,
    objective: &Objective,
    result: &CapacityResult,
    summaries: &[CapacitySummary],
) -> Document {
    let mut sections = Vec::new();
    for of_world in by_world(summaries) {
        let Some(first) = of_world.first() else { continue };
        let world = first.world.as_str();
        let held = Section::new(
            format!("Load held: {world}"),
            "The highest load at which the objective holds, mean over seeds, each policy at its best over-commit. In \
             small print the 95 % interval over functions and seeds drawn again.",
        );
        sections.push(held.with(Block::Table(table(of_world))));
        let curves = Section::new(
            format!("Service against load: {world}"),
            "The first seed; of many policies the best of each kind. Above the dashed line the objective is broken. \
             Further right is better.",
        );
        sections.push(curves.with(Block::Charts(charts(objective, result, world))));
    }
    Document {
        subtitle: format!("{} searches", result.rows.len()),
        story: story(summaries),
        sections,
        context,
        ..Document::default()
    }
}

fn table(summaries: &[CapacitySummary]) -> Table {
    let mut table = Table::new([
        "policy",
        "over-commit",
        "load held",
        "seeds",
        "over fixed",
        "over best incumbent",
        "over best ordered incumbent",
        "of peak oracle",
        "breaks first",
    ]);
    let number = |value: Option<f64>| {
        Cell::from(value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}")).as_str())
    };
    for one in summaries {
        let small = match one.low.zip(one.high) {
            Some((low, high)) => format!("{low:.2} to {high:.2}"),
            None => String::new(),
        };
        let ordered_small = one.ordered_low.map_or(String::new(), |low| format!("from {low:.2}"));
        table.rows.push(vec![
            one.policy.as_str().into(),
            format!("{}", one.best_over_commit).as_str().into(),
            format!("{:.3}", one.load_held).as_str().into(),
            format!("{}", one.seeds).as_str().into(),
            number(one.relative_to_fixed),
            Cell { small, ..number(one.relative_to_best_incumbent) },
            Cell { small: ordered_small, ..number(one.relative_to_best_ordered_incumbent) },
            number(one.share_of_peak_oracle),
            one.binds.as_str().into(),
        ]);
    }
    table
}

/// One quantity of an objective, drawn over load.
struct Quantity {
    title: &'static str,
    of: fn(&Service) -> f64,
    allowed: fn(&Objective) -> f64,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        title: "share of slow calls",
        of: Service::slow_share,
        allowed: |objective| objective.slow_share,
    },
    Quantity {
        title: "share of slow calls, worst class",
        of: Service::worst_class,
        allowed: |objective| objective.slow_share,
    },
    Quantity {
        title: "share of calls that run too long",
        of: Service::violation_share,
        allowed: |objective| objective.violation_share,
    },
    Quantity {
        title: "longest wait over what is allowed",
        of: Service::longest_wait,
        allowed: |_| 1.0,
    },
];

fn charts(objective: &Objective, result: &CapacityResult, world: &str) -> Vec<Chart> {
    let best = leaders(best_of(result, world));
    let seed =
        result.fixed.iter().find(|one| one.world == world).map(|one: &FixedService| one.seed);
    QUANTITIES.iter().map(|quantity| chart(quantity, objective, &best, seed)).collect()
}

/// More lines than this look alike.
const MOST_LINES: usize = 8;

/// Everybody, or the best of each kind if they are too many for one chart.
fn leaders(best: Vec<Entrant<'_>>) -> Vec<Entrant<'_>> {
    if best.len() <= MOST_LINES {
        return best;
    }
    let leads = |one: &Entrant<'_>| {
        let rivals = best.iter().filter(|other| other.role == one.role);
        rivals.map(Entrant::load_held).all(|held| held <= one.load_held())
    };
    let leading: Vec<bool> = best.iter().map(leads).collect();
    best.into_iter().zip(leading).filter_map(|(one, leads)| leads.then_some(one)).collect()
}

fn chart(
    quantity: &Quantity,
    objective: &Objective,
    best: &[Entrant<'_>],
    seed: Option<u64>,
) -> Chart {
    let allowed = (quantity.allowed)(objective);
    let points = |entrant: &Entrant<'_>| -> Vec<Point> {
        let row = entrant.rows.iter().find(|row| Some(row.seed) == seed);
        let measured = row.iter().flat_map(|row| &row.measured);
        let point =
            |load: f64, value: f64| Point::new(load, value.clamp(allowed * 1e-2, allowed * 1e2));
        measured
            .map(|tried| point(tried.load, (quantity.of)(&Service::of(&tried.result, None))))
            .collect()
    };
    let mut series: Vec<Series> = best
        .iter()
        .map(|entrant| Series {
            name: entrant.policy.to_owned(),
            style: SeriesStyle::Line,
            points: points(entrant),
        })
        .collect();
    let loads = || series.iter().flat_map(|one| &one.points).map(|point| point.x);
    let (low, high) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
    if low < high {
        series.push(Series::reference("allowed", allowed, low, high));
    }
    Chart {
        title: quantity.title.to_owned(),
        x: Axis { label: "load".into(), log: true, zero: false },
        y: Axis { label: quantity.title.into(), log: true, zero: false },
        series,
    }
}
