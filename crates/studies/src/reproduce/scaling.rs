//! Our own scaling environment: PPO beside classic policies in `windfall/Scaling-v0`.

use windfall_gym::contest::{Contest, Plan, Standing, contest};
use windfall_rl::Spread;
use windfall_rl::training::CurvePoint;
use windfall_telemetry::Document;
use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Point, Section, Series, SeriesStyle, Table,
};

use super::{ReproduceError, Reproduced, Request, Stage, Watcher};

/// What this reproduction is asked beyond the usual.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The first seed; settings were tuned on seeds above 100.
    pub first_seed: u64,
    /// Iterations of each training; the plan's own number if none.
    pub iterations: Option<u64>,
}

/// Trains PPO and plays it beside the classic policies on functions and hours that no training saw.
pub fn reproduce(
    request: &Request<'_>,
    settings: Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ReproduceError> {
    let threads = request.threads;
    let usual = if request.quick { Plan::quick(threads) } else { Plan::full(threads) };
    let plan = Plan {
        first_seed: settings.first_seed,
        seeds: request.seeds.map_or(usual.seeds, |seeds| u64::from(seeds.max(1))),
        iterations: settings.iterations.unwrap_or(usual.iterations),
        ..usual
    };
    watcher.begin(Stage::Iterations(plan.iterations * plan.seeds));
    let result = contest(&plan, &|_| watcher.advance(1));
    watcher.end();
    Reproduced::new(page(request, &plan, &result), text(&result), &result)
}

fn text(result: &Contest) -> String {
    let mut lines = vec![format!(
        "{:14} {:>8} {:>6} {:>8} {:>8} {:>6} {:>6} {:>8}",
        "policy", "return", "sd", "lowest", "highest", "SLO", "CPU", "core-s"
    )];
    for row in &result.standings {
        let Spread { mean, sd, low, high } = row.total;
        lines.push(format!(
            "{:14} {mean:>8.2} {sd:>6.2} {low:>8.2} {high:>8.2} {:>6.3} {:>6.3} {:>8.0}",
            row.name, row.preserved.mean, row.utilisation.mean, row.core_seconds.mean,
        ));
    }
    lines.join("\n")
}

fn page(request: &Request<'_>, plan: &Plan, result: &Contest) -> Document {
    Document {
        context: request.context(
            "Scaling one function among neighbours",
            serde_json::to_value(plan).unwrap_or_default(),
        ),
        subtitle: format!(
            "windfall/Scaling-v0, seeds {} to {}, {} iterations each",
            plan.first_seed,
            plan.first_seed + plan.seeds - 1,
            plan.iterations
        ),
        story: story(result),
        sections: vec![standings(result), curves(result)],
        ..Document::default()
    }
}

fn story(result: &Contest) -> String {
    let Some(place) = result.standings.iter().position(|row| row.name == "ppo") else {
        return String::new();
    };
    let names = |rows: &[Standing]| {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "On functions and hours that no training saw, PPO earns {:.1} per episode of 200 ticks. Above it: {}. \
         Below it: {}.",
        result.standings[place].total.mean,
        names(&result.standings[..place]),
        names(&result.standings[place + 1..]),
    )
}

fn standings(result: &Contest) -> Section {
    let mut table =
        Table::new(["policy", "return", "SLO preservation", "CPU utilisation", "core-seconds"]);
    let best = result.standings.iter().filter(|row| !row.name.starts_with("oracle"));
    let best = best.map(|row| row.total.mean).fold(f64::NEG_INFINITY, f64::max);
    let cell = |spread: &Spread, digits: usize| Cell {
        text: format!("{:.digits$}", spread.mean),
        small: format!("sd {:.digits$}", spread.sd),
        ..Cell::default()
    };
    table.rows.extend(result.standings.iter().map(|row| {
        let is_best = row.total.mean >= best && !row.name.starts_with("oracle");
        vec![
            row.name.clone().into(),
            Cell { best: is_best, ..cell(&row.total, 2) },
            cell(&row.preserved, 3),
            cell(&row.utilisation, 3),
            cell(&row.core_seconds, 0),
        ]
    }));
    let series = result.standings.iter().map(|row| Series {
        name: row.name.clone(),
        style: SeriesStyle::Points,
        points: vec![
            Point::new(row.utilisation.mean, row.preserved.mean)
                .with_spread(row.preserved.low, row.preserved.high),
        ],
    });
    Section::new(
        "Test part",
        "Mean over twenty episodes of each seed, deviation over seeds; the same episodes for everyone. Policies \
         take one published move per tick, as the learner does; `-free` takes effect immediately. The oracle \
         knows the load that comes and plans one tick at a time: it is no bound.",
    )
    .with(Block::Table(table))
    .with(Block::Charts(vec![Chart {
        title: "What is kept and what it takes".to_owned(),
        x: Axis::linear("CPU utilisation"),
        y: Axis::linear("SLO preservation"),
        series: series.collect(),
    }]))
}

#[expect(clippy::cast_precision_loss, reason = "iterations are few")]
fn curves(result: &Contest) -> Section {
    let lines = |of: fn(&CurvePoint) -> Option<f64>| {
        let line = |training: &windfall_gym::contest::Trained| {
            let points = training.curve.iter();
            let points =
                points.filter_map(|point| Some((point.report.iteration as f64, of(point)?)));
            Series::line(format!("seed {}", training.seed), points)
        };
        result.trained.iter().map(line).collect()
    };
    let chart = |title: &str, series| Chart {
        title: title.to_owned(),
        x: Axis::linear("iteration"),
        y: Axis::linear("return of an episode"),
        series,
    };
    Section::new(
        "Training",
        "Each seed's training. The policy with the best evaluation on the validation part is the one that was \
         played above.",
    )
    .with(Block::Charts(vec![
        chart("Evaluations on the validation part", lines(|point| Some(point.evaluation?.mean))),
        chart("Episodes played in training", lines(|point| point.report.mean_return)),
    ]))
}
