//! Which concurrency limit a Knative service should have, and who finds it
//! in how many load tests.

use windfall_papers::knative_concurrency::reproduce::{Plan, Reproduction, reproduce as play};
use windfall_papers::knative_concurrency::{Best, DEFAULT_LIMIT, LearnerRow, SweepPoint};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::{ReproduceError, Reproduced, Request, Stage, Watcher};

/// Sweeps the limits of nine workloads, then lets two learners look for the best one.
pub fn reproduce(
    request: &Request<'_>,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ReproduceError> {
    let mut plan = if request.quick { Plan::quick() } else { Plan::full() };
    plan.seeds = request.seeds.unwrap_or(plan.seeds).max(1);
    watcher.begin(Stage::LoadTests(plan.load_tests()));
    let result = play(&plan, &|| watcher.advance(1));
    watcher.end();
    present(request, &plan, &result, &Place::simulated(&plan))
}

/// Where load tests were made, in words for the page.
#[derive(Clone, Debug)]
pub struct Place {
    /// One line under the heading.
    pub subtitle: String,
    /// What the numbers depend on: what, value, from where.
    pub made: Vec<[String; 3]>,
    /// How to read that table.
    pub lead: String,
}

impl Place {
    fn simulated(plan: &Plan) -> Self {
        Self {
            subtitle: format!(
                "{} load tests per limit, {} runs per learner, 500 requests a second for 30 s each",
                plan.repetitions, plan.seeds
            ),
            made: MADE.iter().map(|row| row.map(str::to_owned)).collect(),
            lead: "Which numbers were measured on a real CPU, which are Knative's or the paper's, and which were \
                   chosen so that the paper's kinds of workload behave as it reports."
                .to_owned(),
        }
    }
}

/// Page, table and numbers of load tests, wherever they were made.
pub fn present(
    request: &Request<'_>,
    plan: &Plan,
    result: &Reproduction,
    place: &Place,
) -> Result<Reproduced, ReproduceError> {
    Reproduced::new(page(request, plan, result, place), text(result), result)
}

fn text(result: &Reproduction) -> String {
    let mut lines = vec![format!(
        "{:9} {:>5}  {:>10} {:>9}   at Knative's {DEFAULT_LIMIT}: {:>8} {:>9} {:>8}",
        "workload", "best", "req/s", "mean ms", "req/s", "mean ms", "success"
    )];
    for best in &result.best {
        lines.push(format!(
            "{:9} {:>5}  {:>10.1} {:>9.0}                    {:>8.1} {:>9.0} {:>7.1}%",
            best.workload,
            best.limit,
            best.throughput,
            best.mean_ms,
            best.default_throughput,
            best.default_mean_ms,
            best.default_success * 100.0,
        ));
    }
    lines.push(String::new());
    lines.push(
        "share of runs that would settle within 5 % of the best after so many load tests".into(),
    );
    lines.push(format!(
        "{:9} {:15} {:>4} {:>4} {:>4} {:>4} {:>4} {:>4}  to stay  until still  unsafe picks  settles at",
        "workload", "learner", 15, 30, 60, 150, 300, 600
    ));
    for row in &result.learners {
        let shares = shares(row).map(|share| format!("{:>4.0}", share * 100.0)).join(" ");
        lines.push(format!(
            "{:9} {:15} {shares} {:>8} {:>12} {:>13}  {}",
            row.workload,
            row.name,
            tests(row.median_load_tests_to_within_5_percent, result),
            tests(row.median_load_tests_until_still, result),
            row.unsafe_picks_after_third,
            range(&row.settled_limits),
        ));
    }
    lines.join("\n")
}

fn shares(row: &LearnerRow) -> [f64; 6] {
    [
        row.within_5_percent_after_15,
        row.within_5_percent_after_30,
        row.within_5_percent_after_60,
        row.within_5_percent_after_150,
        row.within_5_percent_after_300,
        row.within_5_percent_after_600,
    ]
}

fn page(request: &Request<'_>, plan: &Plan, result: &Reproduction, place: &Place) -> Document {
    Document {
        context: request.context(
            "Knative's concurrency limit",
            serde_json::json!({
                "repetitions": plan.repetitions,
                "runs": plan.seeds,
                "load_tests_per_run": plan.tests,
                "workloads": result.workloads,
                "platform": result.platform,
            }),
        ),
        subtitle: place.subtitle.clone(),
        story: story(result),
        sections: vec![
            best_section(result),
            sweep_section(result, false),
            sweep_section(result, true),
            learner_section(result),
            made(place),
        ],
        ..Document::default()
    }
}

fn story(result: &Reproduction) -> String {
    let at_default = |best: &&Best| best.default_throughput < 0.95 * best.throughput;
    let hurt: Vec<&str> =
        result.best.iter().filter(at_default).map(|best| best.workload.as_str()).collect();
    let share = |name: &str| {
        let rows = result.learners.iter().filter(|row| row.name == name);
        let shares = rows.map(|row| row.within_5_percent_after_600);
        shares.sum::<f64>() / result.best.len().max(1) as f64 * 100.0
    };
    let brackets = result.learners.iter().filter(|row| row.name == "bracket-search");
    let still = brackets.map(|row| row.median_load_tests_until_still).fold(0.0, f64::max);
    let hours = |tests: f64| tests * result.seconds_per_load_test / 3600.0;
    let all = result.load_tests_per_run as f64;
    let unsafe_of = |name: &str| {
        let rows = result.learners.iter().filter(|row| row.name == name);
        rows.map(|row| row.unsafe_picks_after_third).sum::<usize>()
    };
    format!(
        "No limit is right for all: Knative's default of {DEFAULT_LIMIT} costs more than 5 % of the throughput on {} of {} \
         workloads{}. After {all} load tests ({:.1} hours, roll-outs included) the paper's Q-learner would settle within \
         5 % of the best in {:.0} % of its runs; the bracket search does in {:.0} %, and makes its last change after \
         at most {still:.0} tests ({:.0} minutes). After their third pick the two tried limits that fail more than \
         1 % of the requests {} and {} times.",
        hurt.len(),
        result.best.len(),
        if hurt.is_empty() { String::new() } else { format!(" ({})", hurt.join(", ")) },
        hours(all),
        share("q-learning"),
        share("bracket-search"),
        hours(still) * 60.0,
        unsafe_of("q-learning"),
        unsafe_of("bracket-search"),
    )
}

fn best_section(result: &Reproduction) -> Section {
    let heads = [
        "workload",
        "kind",
        "bloat MiB",
        "prime",
        "sleep ms",
        "best limit",
        "req/s",
        "mean ms",
        "req/s at 100",
        "mean ms at 100",
        "success at 100",
    ];
    let mut table = Table::new(heads);
    for (best, workload) in result.best.iter().zip(&result.workloads) {
        let shape = workload.shape;
        let is_worse = best.default_throughput < 0.95 * best.throughput;
        table.rows.push(vec![
            best.workload.as_str().into(),
            workload.kind.into(),
            shape.bloat_mib.to_string().into(),
            shape.prime.to_string().into(),
            shape.sleep_ms.to_string().into(),
            best.limit.to_string().into(),
            format!("{:.1}", best.throughput).into(),
            format!("{:.0}", best.mean_ms).into(),
            Cell {
                text: format!("{:.1}", best.default_throughput),
                worse: is_worse,
                ..Cell::default()
            },
            format!("{:.0}", best.default_mean_ms).into(),
            Cell {
                text: format!("{:.1} %", best.default_success * 100.0),
                worse: best.default_success < 0.99,
                ..Cell::default()
            },
        ]);
    }
    let lead = "Best is the highest throughput; mean latency decides between limits within 1 % of it. Numbers of \
                workloads are the paper's, their knobs are chosen. Marked cells lose more than 5 % of the \
                throughput, or more than 1 % of the requests.";
    Section::new("Best limits, and the default of 100", lead).with(Block::Table(table))
}

/// The curves of the workloads that sleep, or of the others.
fn sweep_section(result: &Reproduction, sleeps: bool) -> Section {
    let is_shown = |name: &str| {
        let mut all = result.workloads.iter();
        all.any(|it| it.name == name && (it.shape.sleep_ms > 0) == sleeps)
    };
    let chart = |title: &str, y: Axis, of: fn(&SweepPoint) -> f64| Chart {
        title: title.to_owned(),
        x: Axis::linear("concurrency limit"),
        y,
        series: (result.best.iter())
            .filter(|best| is_shown(&best.workload))
            .map(|best| {
                let own = result.sweep.iter().filter(|point| point.workload == best.workload);
                let points = own.map(|point| (f64::from(point.limit), of(point)));
                Series::line(best.workload.clone(), points)
            })
            .collect(),
    };
    let charts = vec![
        chart("Throughput", Axis::from_zero("successes per second"), |it| it.throughput),
        chart("Success", Axis::from_zero("% of requests"), |it| it.success * 100.0),
        chart("Mean latency", Axis::log("seconds"), |it| it.mean_ms / 1e3),
        chart("95th percentile of latency", Axis::log("seconds"), |it| it.p95_ms / 1e3),
    ];
    let (title, lead) = if sleeps {
        let lead = "A low limit leaves too few places in the whole cluster, a very high one too few pods for the \
                    work: the top lies in between, and above 210 throughput falls where there is work to do.";
        ("The sweep: with sleep", lead)
    } else {
        let lead = "The fewer at once, the better: a low limit makes the autoscaler ask for many pods early. Where a pod \
                    at its limit holds more memory than it may, it dies with all its requests.";
        ("The sweep: memory and CPU", lead)
    };
    Section::new(title, lead).with(Block::Charts(charts))
}

fn learner_section(result: &Reproduction) -> Section {
    let mut workloads: Vec<&str> =
        result.learners.iter().map(|row| row.workload.as_str()).collect();
    workloads.dedup();
    let charts = workloads
        .iter()
        .map(|workload| {
            let rows = result.learners.iter().filter(|row| row.workload == *workload);
            let mut series: Vec<Series> = rows
                .map(|row| Series {
                    name: row.name.clone(),
                    points: (row.curve.iter())
                        .map(|(tests, share)| Point::new(f64::from(*tests), share * 100.0))
                        .collect(),
                    ..Series::default()
                })
                .collect();
            let last = series.iter().flat_map(|it| &it.points).map(|it| it.x).fold(1.0, f64::max);
            series.push(Series::reference("within 5 %", 95.0, 1.0, last));
            Chart {
                title: format!("Workload {workload}"),
                x: Axis::log("load tests"),
                y: Axis::linear("% of the best throughput"),
                series,
            }
        })
        .collect();
    let lead = "After each load test: the throughput of the limit at which the learner would stay if it stopped \
                exploring, mean over runs. Median tests: until it stays within 5 % to the end. Unsafe picks: load tests \
                after the third at limits that fail more than 1 %, all runs together.";
    Section::new("The learners", lead)
        .with(Block::Charts(charts))
        .with(Block::Table(learner_table(result)))
}

fn learner_table(result: &Reproduction) -> Table {
    let heads = [
        "learner",
        "workload",
        "after 15",
        "after 30",
        "after 60",
        "after 150",
        "after 300",
        "after 600",
        "tests to stay within 5 %",
        "tests until still",
        "unsafe picks after third",
        "settles at",
    ];
    let mut table = Table::new(heads);
    for row in &result.learners {
        let mut cells: Vec<Cell> = vec![row.name.as_str().into(), row.workload.as_str().into()];
        cells.extend(shares(row).map(|share| format!("{:.0} %", share * 100.0).into()));
        cells.push(tests(row.median_load_tests_to_within_5_percent, result).into());
        cells.push(tests(row.median_load_tests_until_still, result).into());
        cells.push(Cell {
            text: row.unsafe_picks_after_third.to_string(),
            worse: row.unsafe_picks_after_third > 0,
            ..Cell::default()
        });
        cells.push(range(&row.settled_limits).into());
        table.rows.push(cells);
    }
    table
}

/// Lowest and highest.
fn range(limits: &[u32]) -> String {
    match (limits.iter().min(), limits.iter().max()) {
        (Some(low), Some(high)) if low < high => format!("{low} to {high}"),
        (Some(low), _) => low.to_string(),
        _ => String::new(),
    }
}

/// A number of load tests, or that there were not enough.
fn tests(count: f64, result: &Reproduction) -> String {
    if count > result.load_tests_per_run as f64 {
        format!("over {}", result.load_tests_per_run)
    } else {
        format!("{count:.0}")
    }
}

/// What the simulated numbers depend on.
const MADE: [[&str; 3]; 11] = [
    ["touching fresh memory", "0.646 ms of CPU per MiB, spread 12 %", "measured"],
    ["sieve", "1.95 to 2.55 ns of CPU per number", "measured"],
    ["handling a request", "0.5 ms of CPU", "chosen"],
    ["memory held", "2 x what is allocated: the collector's default", "chosen"],
    ["autoscaler", "Knative's, exact, with its defaults", "recorded decisions"],
    ["queues", "10 000 at the activator, 10 x the limit at a pod", "Knative"],
    ["nodes", "9", "the paper"],
    ["load", "500 requests/s for 30 s, from zero", "the paper"],
    ["pod", "0.2 cores, 6.5 GiB, 7 to a node", "chosen"],
    ["start of a pod", "median 4 s, one per second and node", "chosen"],
    ["workloads' knobs, bins of the Q-learner", "see the settings", "chosen"],
];

fn made(place: &Place) -> Section {
    let mut table = Table::new(["what", "value", "from"]);
    for row in &place.made {
        table.rows.push(row.iter().map(|text| text.as_str().into()).collect());
    }
    Section::new("Where the numbers come from", place.lead.clone()).with(Block::Table(table))
}
