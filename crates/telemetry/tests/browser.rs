//! A real browser opens a report and draws it. Needs Chromium (`apt-get install chromium`); where there is
//! none on the path the test says so and passes, so that nobody needs a browser to build.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use windfall_core::{IntervalRecord, Timestamp};
use windfall_telemetry::document::{
    Axis, Block, Cell, Chart, Document, Point, Section, Series, SeriesStyle, Table,
};
use windfall_telemetry::metrics::functions::FunctionRow;
use windfall_telemetry::report::{
    ReportContext, TracePicture, comparison_report, run_report, trace_report,
};
use windfall_telemetry::{Comparison, FunctionCosts, RunDetail, RunLabel, RunSummary};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let mut asked = Command::new(name);
        let asked = asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    })
}

/// The page after its scripts ran.
fn drawn(browser: &str, name: &str, html: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.html"));
    std::fs::write(&file, html).expect("the folder for tests is writable");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(user_folder(&folder, name))
        .args(["--window-size=1400,900", "--virtual-time-budget=2000"])
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("it gave its version a moment ago");
    let page = String::from_utf8(output.stdout).expect("our pages are UTF-8");
    assert!(page.contains("</html>"), "{}", String::from_utf8_lossy(&output.stderr));
    // What the script was given is not what it drew.
    let (before, rest) = page.split_once("<script").expect("data come first");
    let (_, after) = rest.rsplit_once("</script>").expect("scripts end");
    before.to_owned() + after
}

/// A profile of its own, so that a browser in use is not disturbed.
fn user_folder(folder: &Path, name: &str) -> String {
    format!("--user-data-dir={}", folder.join(format!("profile-{name}")).display())
}

fn assert_clean(name: &str, page: &str) {
    if let Some((_, message)) = page.split_once("class=\"script-error\">") {
        panic!("{name}: {}", message.split('<').next().unwrap_or_default());
    }
    for word in ["NaN", "undefined", "Infinity", "[object"] {
        if let Some(at) = page.find(word) {
            let from = page.floor_char_boundary(at.saturating_sub(200));
            panic!("{name} shows {word}: …{}…", &page[from..at + word.len()]);
        }
    }
}

fn row(policy: &str, load: f64, seed: u64, scale: f64) -> RunSummary {
    RunSummary {
        policy: policy.to_owned(),
        load,
        seed,
        calls: 1000,
        completed: 1000,
        rfet_mean: 1.0 + scale / 100.0,
        slowdown_p50: 1.0,
        slowdown_p95: 2.0 * scale,
        slowdown_p99: 9.0 * scale + seed as f64,
        bounded_slowdown_p99: 4.0 * scale,
        latency_p99_seconds: scale,
        violation_share: 0.01 * scale,
        slowdown_p999: 20.0 * scale,
        core_seconds_held: 5500.0 / scale,
        core_seconds_granted: 5000.0 / scale,
        core_seconds_held_back: 500.0 / scale,
        core_seconds_used: 1000.0,
        mib_seconds_granted: 1e6,
        ..RunSummary::default()
    }
}

fn detail(policy: &str, load: f64, has_calls: bool) -> RunDetail {
    let mut detail = RunDetail {
        label: RunLabel { policy: policy.to_owned(), load, seed: 1 },
        amendments: [("recent-peak".to_owned(), 3)].into(),
        ..RunDetail::default()
    };
    if has_calls {
        detail.slowdown_cdf = vec![(1.0, 0.5), (2.0, 0.9), (40.0, 1.0)];
        detail.functions =
            vec![FunctionRow { name: "resize".to_owned(), calls: 5, ..FunctionRow::default() }];
        for minute in 0..30 {
            detail.series.push(&IntervalRecord {
                from: Timestamp::from_secs(minute * 60),
                until: Timestamp::from_secs(minute * 60 + 60),
                granted_cores: minute as f64,
                ..IntervalRecord::default()
            });
        }
    }
    detail
}

fn context() -> ReportContext {
    ReportContext {
        title: "Seen by a browser".to_owned(),
        command: "windfall compare".to_owned(),
        version: "0.1.0".to_owned(),
        settings: json!({ "nodes": 8 }),
    }
}

fn count(page: &str, what: &str) -> usize {
    page.matches(what).count()
}

#[test]
fn a_browser_draws_every_chart_without_an_error() {
    let Some(browser) = browser() else {
        let mut stderr = std::io::stderr();
        let _ = std::io::Write::write_all(
            &mut stderr,
            b"skipped: no Chromium on the path; apt-get install chromium\n",
        );
        return;
    };
    let policies = [("fixed", 3.0), ("oracle", 1.0), ("libra", 2.0), ("<b>new & odd</b>", 1.5)];
    let rows: Vec<RunSummary> = policies
        .iter()
        .flat_map(|(policy, scale)| (1..=3).map(move |seed| row(policy, 0.8, seed, *scale)))
        .collect();
    let details: Vec<RunDetail> =
        policies.iter().map(|(name, _)| detail(name, 0.8, true)).collect();
    let costs: Vec<FunctionCosts> = rows
        .iter()
        .map(|row| if row.policy == "libra" { [3.0, 6.0] } else { [4.0, 8.0] })
        .map(|held| FunctionCosts { of_functions: held.to_vec(), of_none: 0.0 })
        .collect();
    let comparison = Comparison::with_functions(rows.clone(), &costs, "fixed");
    let page = drawn(browser, "comparison", &comparison_report(&context(), &comparison, &details));
    assert_clean("comparison", &page);
    // Points, three curves of each small panel, distribution, seven and three lines in full.
    assert_eq!(count(&page, "class=\"line\""), 4 * 3 + 4 + 7 + 3);
    assert!(page.contains("[0.750, 0.750] of 2"), "the ratio over functions is shown");
    assert_eq!(count(&page, "class=\"name\""), 4, "a label for each policy");
    assert_eq!(count(&page, "class=\"strip-dot\""), 12, "a mark for each run");
    assert!(!page.contains("<b>new"), "names are text");

    let page = drawn(browser, "run", &run_report(&context(), &rows[0], &details[0]));
    assert_clean("run", &page);
    assert_eq!(count(&page, "class=\"line\""), 7 + 3 + 1);

    // Nothing at all must still be a page.
    let empty =
        RunSummary { policy: "idle".to_owned(), load: 0.8, seed: 1, ..RunSummary::default() };
    let page =
        drawn(browser, "empty-run", &run_report(&context(), &empty, &detail("idle", 0.8, false)));
    assert_clean("empty run", &page);
    let nothing = Comparison::new(vec![empty], "fixed");
    let page = drawn(browser, "empty", &comparison_report(&context(), &nothing, &[]));
    assert_clean("empty comparison", &page);
    assert!(page.contains("without a measured call"), "{page}");

    let page = drawn(browser, "trace", &trace_report("0.1.0", &TracePicture::default()));
    assert_clean("trace", &page);

    let page = drawn(browser, "document", &document().html());
    assert_clean("document", &page);
    assert_eq!(count(&page, "class=\"line\""), 3, "a curve, a reference, a frontier");
    assert_eq!(count(&page, "class=\"name\""), 1, "points are named");
    assert!(!page.contains("<b>best"), "cells are text");
}

/// One block of every kind, one series of every style.
fn document() -> Document {
    let styles =
        [SeriesStyle::Line, SeriesStyle::Reference, SeriesStyle::Frontier, SeriesStyle::Points];
    let series = |style: SeriesStyle| Series {
        name: format!("{style:?}"),
        style,
        points: (1..4).map(|k| Point::new(k.into(), 2.0).with_spread(1.0, 3.0)).collect(),
    };
    let chart = |styles: &[SeriesStyle]| Chart {
        title: "a chart".to_owned(),
        x: Axis::log("parameter"),
        y: Axis::from_zero("reward"),
        series: styles.iter().copied().map(series).collect(),
    };
    let named = Chart {
        series: vec![Series { points: vec![Point::new(1.0, 1.0)], ..series(styles[3]) }],
        ..chart(&[])
    };
    let mut table = Table::new(["policy", "score"]);
    table.rows.push(vec!["ppo".into(), Cell { best: true, ..Cell::from("<b>best</b>") }]);
    let section = Section::new("All blocks", "how to read them")
        .with(Block::Paragraph("text".to_owned()))
        .with(Block::Facts(vec![("seeds".to_owned(), "10".to_owned())]))
        .with(Block::Table(table))
        .with(Block::Charts(vec![chart(&styles[..3]), named]));
    Document { context: context(), sections: vec![section], ..Document::default() }
}
