//! Table and page of the experiment on the kernel.

use std::fmt::Write as _;

use windfall_telemetry::Document;
use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Point, Section, Series, SeriesStyle, Table,
};
use windfall_telemetry::statistics::Estimate;

use super::{KernelExperiment, KernelRow};
use crate::calibration::{FunctionModel, table as calibration_table};
use crate::reproduce::Request;

pub(super) fn text(experiment: &KernelExperiment) -> String {
    let mut text = format!(
        "{:10} {:>15} {:>7} {:>13} {:>9} {:>9} {:>9} {:>8} {:>6} {:>8}  {:>15}  {:>13}",
        "policy",
        "RFET mean",
        "P98",
        "P98 time s",
        "harvest",
        "accel.",
        "guarded",
        "worst",
        "kills",
        "manager",
        "simulated",
        "published"
    );
    for policy in experiment.policies() {
        let mean = |of: fn(&KernelRow) -> f64| {
            experiment.estimate(policy, of).map_or(f64::NAN, |estimate| estimate.mean)
        };
        let interval = |of: fn(&KernelRow) -> f64, digits: usize| {
            experiment.estimate(policy, of).map_or_else(String::new, |it| plus_minus(&it, digits))
        };
        let simulated = |of: fn(&KernelRow) -> f64| {
            experiment.simulated(policy, of).map_or(f64::NAN, |estimate| estimate.mean)
        };
        let _ = write!(
            text,
            "\n{policy:10} {:>15} {:>7.2} {:>13} {:>7.1} % {:>7.1} % {:>7.1} % {:>6.0} % {:>6.1} {:>6.2} %  {:>6.3} {:>6.2} s  {:>13}",
            interval(|row| row.rfet_mean, 3),
            mean(|row| row.rfet_p98),
            interval(|row| row.p98_s, 2),
            mean(|row| row.harvested_share) * 100.0,
            mean(|row| row.accelerated_share) * 100.0,
            mean(|row| row.safeguarded_share) * 100.0,
            mean(|row| row.worst_degradation) * 100.0,
            mean(|row| f64::from(row.memory_kills)),
            mean(|row| row.manager_cpu_share) * 100.0,
            simulated(|row| row.rfet_mean),
            simulated(|row| row.p98_s),
            published(experiment, policy),
        );
    }
    let _ = write!(text, "\n\n{}", story(experiment));
    text
}

fn plus_minus(estimate: &Estimate, digits: usize) -> String {
    format!("{:.digits$} ± {:.digits$}", estimate.mean, estimate.half_width())
}

fn published(experiment: &KernelExperiment, policy: &str) -> String {
    let row = experiment.published.iter().find(|row| row.policy == policy);
    row.map_or_else(|| "-".to_owned(), |row| format!("{:.2} {:>6.1} s", row.rfet_mean, row.p98_s))
}

fn story(experiment: &KernelExperiment) -> String {
    let setup = &experiment.setup;
    let errors = |of: fn(&super::Comparison) -> f64| {
        let all = experiment.prediction.iter().map(of);
        all.map(f64::abs).fold(0.0, f64::max) * 100.0
    };
    format!(
        "{} calls in {:.0} s on {} cores, {} repetitions in ABBA order; the users' reservations alone fill {:.0} % of the \
         node. RFET is a call's run time over that of the same call alone at the user's size (median of {} \
         measurements). Intervals are Student's, 95 %, over repetitions. The simulator's mean RFET is off by at most \
         {:.1} % and its P98 time by at most {:.1} %; single run times are off by at most {:.1} % in the median.",
        setup.calls,
        setup.schedule_s,
        setup.cores,
        setup.repetitions,
        setup.reserved_load * 100.0,
        setup.baseline_passes,
        errors(|row| row.rfet_error),
        errors(|row| row.p98_error),
        errors(|row| row.call_error),
    )
}

pub(super) fn page(request: &Request<'_>, experiment: &KernelExperiment) -> Document {
    Document {
        context: request.context(
            "FaaSRM's experiment on a real kernel",
            serde_json::to_value(&experiment.setup).unwrap_or_default(),
        ),
        subtitle: format!(
            "ten applications, {} calls, {} repetitions, limits by {}",
            experiment.setup.calls, experiment.setup.repetitions, experiment.setup.driver
        ),
        story: story(experiment),
        sections: vec![
            results(experiment),
            runs(experiment),
            prediction(experiment),
            models(experiment),
            scaling(experiment),
        ],
        ..Document::default()
    }
}

/// Columns of the main table.
const HEADS: [&str; 14] = [
    "policy",
    "RFET mean",
    "beside fixed",
    "RFET P98",
    "P98 time, s",
    "P98 latency, s",
    "harvested",
    "accelerated",
    "safeguarded",
    "worst degradation",
    "memory kills",
    "granted core-s",
    "manager's CPU",
    "published RFET, P98",
];

fn results(experiment: &KernelExperiment) -> Section {
    let mut table = Table::new(HEADS);
    for policy in experiment.policies() {
        let cell = |of: fn(&KernelRow) -> f64, digits: usize| -> Cell {
            experiment.estimate(policy, of).map_or_else(Cell::default, |it| Cell {
                text: format!("{:.digits$}", it.mean),
                small: format!("± {:.digits$}", it.half_width()),
                ..Cell::default()
            })
        };
        let share = |of: fn(&KernelRow) -> f64| -> Cell {
            experiment
                .estimate(policy, of)
                .map_or_else(Cell::default, |it| format!("{:.1} %", it.mean * 100.0).into())
        };
        let beside = experiment.beside_fixed(policy, |row| row.rfet_mean);
        let beside = beside.map_or_else(Cell::default, |it| Cell {
            text: format!("{:+.3}", it.mean),
            small: format!("{:+.3} to {:+.3}", it.low, it.high),
            worse: it.low > 0.0,
            best: it.high < 0.0,
        });
        table.rows.push(vec![
            policy.into(),
            cell(|row| row.rfet_mean, 3),
            beside,
            cell(|row| row.rfet_p98, 2),
            cell(|row| row.p98_s, 2),
            cell(|row| row.latency_p98_s, 2),
            share(|row| row.harvested_share),
            share(|row| row.accelerated_share),
            share(|row| row.safeguarded_share),
            share(|row| row.worst_degradation),
            cell(|row| f64::from(row.memory_kills), 1),
            cell(|row| row.granted_core_s, 1),
            share(|row| row.manager_cpu_share),
            published(experiment, policy).into(),
        ]);
    }
    let lead = "Means over repetitions with 95 % intervals. Published numbers are FaaSRM's own, on 80 cores with other programs \
                behind the ten names: compare the order, not the seconds. A degradation is that of a harvested call over the \
                same call alone at the user's size, contention included.";
    Section::new("Seven managers", lead).with(Block::Table(table))
}

/// Every run in the order it was made.
fn runs(experiment: &KernelExperiment) -> Section {
    let chart = |title: &str, y: Axis, of: fn(&KernelRow) -> f64| Chart {
        title: title.to_owned(),
        x: Axis::linear("run, in the order they were made"),
        y,
        series: (experiment.policies().into_iter())
            .map(|policy| {
                let own = experiment.kernel.iter().enumerate();
                let own = own.filter(|(_, row)| row.policy == policy);
                let points = own.map(|(place, row)| Point::new(place as f64 + 1.0, of(row)));
                Series {
                    name: policy.to_owned(),
                    style: SeriesStyle::Frontier,
                    points: points.collect(),
                }
            })
            .collect(),
    };
    let load = |row: &KernelRow| row.conditions.map_or(0.0, |it| it.load_average);
    let charts = vec![
        chart("Mean RFET", Axis::linear("run time over the user's"), |row| row.rfet_mean),
        chart("P98 of run time", Axis::from_zero("seconds"), |row| row.p98_s),
        chart("P98 of latency", Axis::from_zero("seconds"), |row| row.latency_p98_s),
        chart("Other work on the machine", Axis::from_zero("load average"), load),
    ];
    let lead = "Policies alternate: forwards in odd repetitions, backwards in even ones. All of a run lies in one group with the \
                largest weight there is, beside whatever else the machine does.";
    Section::new("Every run", lead).with(Block::Charts(charts))
}

fn prediction(experiment: &KernelExperiment) -> Section {
    let heads = [
        "policy",
        "RFET: kernel",
        "simulated",
        "error",
        "P98 time: kernel",
        "simulated",
        "error",
        "single calls",
    ];
    let mut table = Table::new(heads);
    for row in &experiment.prediction {
        let kernel = |of: fn(&KernelRow) -> f64| {
            experiment.estimate(&row.policy, of).map_or(f64::NAN, |it| it.mean)
        };
        let simulated = |of: fn(&KernelRow) -> f64| {
            experiment.simulated(&row.policy, of).map_or(f64::NAN, |it| it.mean)
        };
        let error = |value: f64| Cell {
            text: format!("{:+.1} %", value * 100.0),
            worse: value.abs() > 0.1,
            ..Cell::default()
        };
        table.rows.push(vec![
            row.policy.as_str().into(),
            format!("{:.3}", kernel(|row| row.rfet_mean)).into(),
            format!("{:.3}", simulated(|row| row.rfet_mean)).into(),
            error(row.rfet_error),
            format!("{:.2} s", kernel(|row| row.p98_s)).into(),
            format!("{:.2} s", simulated(|row| row.p98_s)).into(),
            error(row.p98_error),
            format!("{:.1} %", row.call_error * 100.0).into(),
        ]);
    }
    let lead = "The same calls with demands from the fitted models, on one simulated node with the kernel's CPU; baselines are \
                simulated the same way as they were measured. Single calls: median error of a call's run time. \
                Marked errors exceed 10 %.";
    Section::new("What the simulator predicts", lead).with(Block::Table(table))
}

fn models(experiment: &KernelExperiment) -> Section {
    let heads = [
        "function",
        "calls",
        "work at the middle input",
        "grows with input to the",
        "parallelism",
        "waits",
        "memory",
        "error, median",
        "error, p95",
    ];
    let mut table = Table::new(heads);
    for model in &experiment.calibration.functions {
        let FunctionModel { median_input, .. } = *model;
        let work = model.work(median_input);
        table.rows.push(vec![
            model.name.rsplit('/').next().unwrap_or_default().into(),
            model.calls.to_string().into(),
            format!("{:.0} ms", work * 1e3).into(),
            growth(model).into(),
            format!("{:.2} cores", model.parallelism).into(),
            format!("{:.0} ms", model.fixed(work) * 1e3).into(),
            format!("{:.0} MiB", model.memory(median_input)).into(),
            format!("{:.1} %", model.error.median * 100.0).into(),
            format!("{:.1} %", model.error.p95 * 100.0).into(),
        ]);
    }
    let lead = "Fitted to calls that ran alone at the user's size, at the whole node and at half a core. The error is that of calls \
                that were not used for the fit.";
    Section::new("The functions", lead)
        .with(Block::Table(table))
        .with(Block::Paragraph(calibration_note(experiment)))
}

/// How work grows with the input.
fn growth(model: &FunctionModel) -> String {
    match model.work_steps.len() {
        0 => format!("{:.2}", model.work_exponent),
        steps => format!("{steps} steps"),
    }
}

fn calibration_note(experiment: &KernelExperiment) -> String {
    let text = calibration_table(&experiment.calibration);
    text.lines().last().unwrap_or_default().to_owned()
}

fn scaling(experiment: &KernelExperiment) -> Section {
    let setup = &experiment.setup;
    let mut table = Table::new(["what", "published", "here"]);
    for (what, published, here) in [
        (
            "machines",
            "10 invokers of 8 cores, 2 GB for functions each".to_owned(),
            format!("one node of {} cores, {} MiB", setup.cores, setup.memory_mib),
        ),
        (
            "calls",
            "268 in 60 s".to_owned(),
            format!("{} in {:.0} s", setup.calls, setup.schedule_s),
        ),
        (
            "who calls what, in which second",
            "published".to_owned(),
            format!("the same, {} times as fast", setup.speed),
        ),
        (
            "inputs",
            "not published".to_owned(),
            format!("{} of the functions' defaults, times 1/2 to 2", setup.scale),
        ),
        (
            "users' sizes, threads per call",
            "published".to_owned(),
            "the same; no call gets more than the node".to_owned(),
        ),
        (
            "programs",
            "Python, FFmpeg, ResNet-50".to_owned(),
            "our own in Rust after their descriptions".to_owned(),
        ),
        ("execution time", "seconds to half a minute".to_owned(), "tenths of a second".to_owned()),
        (
            "learning",
            "FaaSRM's agent trained on OpenWhisk for 150 h".to_owned(),
            "trained in our simulator; all others start from nothing in every run".to_owned(),
        ),
    ] {
        table.rows.push(vec![what.into(), published.into(), here.into()]);
    }
    let lead = "What differs from the published experiment. Calls enter at the platform's gateway, without the HTTP front.";
    Section::new("Scale", lead).with(Block::Table(table))
}
