//! The page of the reproduction.

use windfall_papers::ece471::baselines::Golden;
use windfall_papers::ece471::reproduce::{AlgorithmResult, Band, Plan, Reproduction};
use windfall_papers::ece471::{Features, optimum};
use windfall_rl::Spread;
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::super::Request;
use super::bars;

pub(super) fn page(request: &Request<'_>, plan: &Plan, result: &Reproduction) -> Document {
    Document {
        context: request.context(
            "ECE 471: scaling one function",
            serde_json::to_value(plan).unwrap_or_default(),
        ),
        subtitle: format!(
            "seeds {} to {}, faithful environment, greedy evaluation of the last policy",
            plan.first_seed,
            plan.first_seed + plan.seeds - 1
        ),
        story: story(result),
        sections: vec![
            golden(&result.golden),
            exploration(result),
            learners(result),
            designs(result),
            curves(result),
            ending(result),
        ],
        ..Document::default()
    }
}

fn story(result: &Reproduction) -> String {
    let missed: Vec<String> =
        bars::judge(result).iter().filter(|bar| !bar.is_met()).map(ToString::to_string).collect();
    let bars = match (missed.is_empty(), bars::judge(result).is_empty()) {
        (_, true) => "No learner was trained long enough for a bar.".to_owned(),
        (true, false) => "Every bar that was measured is met.".to_owned(),
        (false, false) => format!("Missed: {}.", missed.join("; ")),
    };
    format!(
        "The reward punishes a move that reverses the last one, and the course's six features do not show \
         the last move. On these six features no policy that always does the same in the same state \
         earns more than {:.2} (found by search over all of them); the optimum with that knowledge is \
         {:.2}. Learners named plainly see the last direction as a seventh feature; those on the course's \
         own features stand beside them with names that say so. {bars}",
        optimum::memoryless(),
        result.golden.dp,
    )
}

pub(super) fn golden_rows(golden: &Golden) -> [(&'static str, f64); 6] {
    [
        ("dynamic programming (exact)", golden.dp),
        ("greedy to the best count", golden.greedy),
        ("M/M/1 rule", golden.mm1),
        ("HPA 80 %", golden.hpa80),
        ("HPA 70 %", golden.hpa70),
        ("HPA 60 %", golden.hpa60),
    ]
}

fn golden(golden: &Golden) -> Section {
    let mut table = Table::new(["policy", "return of 200 steps"]);
    let row = |(name, score): &(&str, f64)| vec![(*name).into(), format!("{score:.2}").into()];
    table.rows.extend(golden_rows(golden).iter().map(row));
    Section::new(
        "Golden scores",
        "What needs no learning: the optimum and one-line rules, mean over arrival rates 1 to 8.",
    )
    .with(Block::Table(table))
}

fn exploration(result: &Reproduction) -> Section {
    let visits = &result.exploration;
    // Feature 4 is containers over 20.
    let containers =
        visits.iter().map(|visit| (f64::from(visit.step), f64::from(visit.state[4]) * 20.0));
    let rewards = visits.iter().map(|visit| (f64::from(visit.step), visit.reward));
    let chart = |title: &str, y: Axis, series| Chart {
        title: title.to_owned(),
        x: Axis::linear("step"),
        y,
        series: vec![series],
    };
    Section::new(
        "Task 1: exploration",
        "Two hundred random steps of one episode, illegal actions included; a reward of -1 is a penalty.",
    )
    .with(Block::Charts(vec![
        chart("Containers", Axis::from_zero("containers"), Series::line("containers", containers)),
        chart("Reward", Axis::linear("reward of a step"), Series::line("reward", rewards)),
    ]))
}

fn learners(result: &Reproduction) -> Section {
    let mut table = Table::new([
        "learner",
        "sees",
        "iterations",
        "mean return",
        "worst seed",
        "first at 189.5",
        "worst from there on",
    ]);
    table.rows.extend(result.algorithms.iter().map(learner_row));
    let mut verdicts = Table::new(["bar", "asked", "found"]);
    verdicts.rows.extend(bars::judge(result).into_iter().map(|bar| {
        let (met, what) = (bar.is_met(), bar.what);
        let found =
            Cell { text: format!("{:.2}", bar.found), worse: !met, best: met, ..Cell::default() };
        vec![what.into(), format!("{:.2}", bar.least).into(), found]
    }));
    let section = Section::new(
        "Task 2: learners",
        "Greedy return of the last policy, mean and deviation over seeds. An iteration is five episodes of \
         200 steps. For comparison, stable-baselines3's PPO was measured at 182 to 185 after 50,000 steps \
         and 185 to 186 after 300,000 on these features, and at 190.2 once observations are normalised.",
    )
    .with(Block::Table(table));
    let section =
        if verdicts.rows.is_empty() { section } else { section.with(Block::Table(verdicts)) };
    section.with(Block::Charts(vec![greedy_chart(result, true), greedy_chart(result, false)]))
}

fn learner_row(row: &AlgorithmResult) -> Vec<Cell> {
    let first: Vec<u64> = row.reached.iter().filter_map(|reached| reached.iteration).collect();
    let reached = match first.iter().max() {
        Some(last) => Cell {
            text: format!("{} of {} seeds", first.len(), row.seeds),
            small: format!("the last at iteration {last}"),
            ..Cell::default()
        },
        None => "no seed".into(),
    };
    let after = row.reached.iter().filter_map(|reached| reached.worst_after).reduce(f64::min);
    let mean = Cell {
        text: format!("{:.2}", row.mean),
        small: format!("sd {:.2}", row.sd),
        ..Cell::default()
    };
    let sees = match row.features {
        Features::Course => "six features",
        Features::WithDirection => "and the last direction",
    };
    vec![
        row.name.clone().into(),
        sees.into(),
        row.iterations.to_string().into(),
        mean,
        format!("{:.2}", row.min).into(),
        reached,
        after.map_or_else(|| "-".to_owned(), |after| format!("{after:.2}")).into(),
    ]
}

/// Rows with the longest training of each name.
fn longest(result: &Reproduction, features: Option<Features>) -> Vec<&AlgorithmResult> {
    let rows =
        result.algorithms.iter().filter(|row| features.is_none_or(|kind| row.features == kind));
    let is_longest = |row: &&AlgorithmResult| {
        result
            .algorithms
            .iter()
            .all(|other| other.name != row.name || other.iterations <= row.iterations)
    };
    rows.filter(is_longest).collect()
}

fn greedy_chart(result: &Reproduction, with_direction: bool) -> Chart {
    let (features, title) = if with_direction {
        (Features::WithDirection, "Evaluations, last direction shown")
    } else {
        (Features::Course, "Evaluations, the course's six features")
    };
    let rows = longest(result, Some(features));
    let mut series: Vec<Series> = rows.iter().map(|row| line(row, |band| band.greedy)).collect();
    let last = rows.iter().map(|row| row.iterations).max().unwrap_or(1);
    #[expect(clippy::cast_precision_loss, reason = "iterations are few")]
    series.push(Series::reference("optimum", result.golden.dp, 0.0, last as f64));
    Chart {
        title: title.to_owned(),
        x: Axis::linear("iteration"),
        y: Axis::linear("greedy return"),
        series,
    }
}

#[expect(clippy::cast_precision_loss, reason = "iterations are few")]
fn line(row: &AlgorithmResult, of: fn(&Band) -> Option<Spread>) -> Series {
    let points = row.bands.iter().filter_map(|band| {
        let found = of(band)?;
        Some(Point::new(band.iteration as f64, found.mean).with_spread(found.low, found.high))
    });
    Series { name: row.name.clone(), points: points.collect(), ..Series::default() }
}

fn designs(result: &Reproduction) -> Section {
    let mut table = Table::new([
        "design",
        "CPU utilisation",
        "SLO preservation",
        "own return",
        "course's check",
    ]);
    let spread = |spread: &Spread| Cell {
        text: format!("{:.3}", spread.mean),
        small: format!("sd {:.3}", spread.sd),
        ..Cell::default()
    };
    table.rows.extend(result.designs.iter().map(|row| {
        vec![
            row.design.name().into(),
            spread(&row.util),
            spread(&row.slo),
            spread(&row.total),
            ranks(row.ranks).into(),
        ]
    }));
    Section::new(
        "Task 3: reward designs",
        "PPO paid by each of the four designs: what its policy then does at all rates, mean over seeds. The \
         course checks how a design ranks three fixed states; it has no check for the fourth.",
    )
    .with(Block::Table(table))
}

pub(super) fn ranks(ranks: Option<bool>) -> &'static str {
    match ranks {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "none",
    }
}

fn curves(result: &Reproduction) -> Section {
    let rows = longest(result, None);
    let plain: Vec<&AlgorithmResult> = rows
        .into_iter()
        .filter(|row| row.features == Features::WithDirection || row.name.ends_with("-course"))
        .collect();
    let chart = |title: &str, label: &str, of: fn(&Band) -> Option<Spread>| Chart {
        title: title.to_owned(),
        x: Axis::linear("iteration"),
        y: Axis::linear(label),
        series: plain.iter().map(|row| line(row, of)).collect(),
    };
    Section::new(
        "Task 4.1: training curves",
        "What is met in training, exploration included: mean over seeds, band from the lowest to the \
         highest seed.",
    )
    .with(Block::Charts(vec![
        chart("Reward", "return of an episode", |band| band.reward),
        chart("SLO preservation", "mean over steps", |band| Some(band.slo)),
        chart("CPU utilisation", "mean over steps", |band| Some(band.util)),
    ]))
}

fn ending(result: &Reproduction) -> Section {
    let (duel, continued) = (&result.duel, &result.continued);
    let same = if continued.identical { "the same bytes" } else { "different bytes" };
    Section::new(
        "Tasks 4.2 and 4.3: continued, and against random",
        format!(
            "PPO was kept after iteration {} of {}, read back from its {} bytes and continued; beside it \
             one training in a piece. Then {} steps at {} requests per second, trained and random.",
            continued.interrupted_at, continued.iterations, continued.bytes, duel.steps, duel.rate
        ),
    )
    .with(Block::Facts(vec![
        ("continued training ends in".to_owned(), same.to_owned()),
        ("its greedy return".to_owned(), format!("{:.2}", continued.continued)),
        ("trained policy earns".to_owned(), format!("{:.1}", duel.trained)),
        ("random actions earn".to_owned(), format!("{:.1}", duel.random)),
    ]))
}
