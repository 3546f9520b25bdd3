//! The honest benchmark of per-call sizing, as a table.
//!
//! `cargo run --profile quick -p windfall-scenario --example honest_sizing -- --trace FOLDER`
//!
//! `--train` plays the training half instead (for tuning), `--set TOML` changes dials of `windfall`,
//! `--policies`, `--loads`, `--seeds`, `--minutes` restrict what is played.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use windfall_scenario::honest_sizing::HonestSizing;
use windfall_scenario::sweep::Watcher;
use windfall_scenario::{Scenario, Sweep};
use windfall_telemetry::Comparison;

struct Nobody;
impl Watcher for Nobody {}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut benchmark =
        HonestSizing { threads: 1, with_ablation: false, ..HonestSizing::default() };
    let (mut train, mut settings, mut policies) = (false, String::new(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("a value is missing");
        let numbers = |text: String| text.split(',').map(str::to_owned).collect::<Vec<String>>();
        match argument.as_str() {
            "--train" => train = true,
            "--ablation" => benchmark.with_ablation = true,
            "--trace" => benchmark.trace = Some(PathBuf::from(value()?)),
            "--threads" => benchmark.threads = value()?.parse()?,
            "--minutes" => benchmark.minutes = Some(value()?.parse()?),
            "--set" => settings = value()?.replace(';', "\n"),
            "--policies" => policies = Some(numbers(value()?)),
            "--loads" => {
                benchmark.loads =
                    numbers(value()?).iter().map(|load| load.parse()).collect::<Result<_, _>>()?;
            }
            "--seeds" => {
                benchmark.seeds =
                    numbers(value()?).iter().map(|seed| seed.parse()).collect::<Result<_, _>>()?;
            }
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let mut out = std::io::stdout().lock();
    if let Some(policies) = policies {
        let trace = if train { benchmark.training_source() } else { benchmark.test_source() };
        let (loads, seeds) = (benchmark.loads, benchmark.seeds);
        let policy_settings = BTreeMap::from([("windfall".to_owned(), settings.parse()?)]);
        let scenario =
            Scenario { trace, loads, seeds, policies, policy_settings, ..Scenario::default() };
        let played = Sweep { scenario: &scenario, threads: benchmark.threads }.play(&Nobody)?;
        for row in &played.rows {
            writeln!(
                out,
                "{:16} {} {} calls {:7} p50 {:.4} p95 {:.4} p99 {:9.4} b99 {:8.3} rfet {:.4} harv% {:.4} cold% {:.2} oom {:4} granted {:.0} used {:.0} ratio {:.4} mem {:.3} looks/call {:.2}",
                row.policy,
                row.load,
                row.seed,
                row.calls,
                row.slowdown_p50,
                row.slowdown_p95,
                row.slowdown_p99,
                row.bounded_slowdown_p99,
                row.rfet_mean,
                100.0 * row.harvested_violation_share,
                100.0 * row.cold_share,
                row.oom_kills,
                row.core_seconds_granted,
                row.core_seconds_used,
                row.core_seconds_granted / row.core_seconds_used,
                row.mib_seconds_granted / row.mib_seconds_used,
                row.looks as f64 / row.calls.max(1) as f64,
            )?;
        }
        return Ok(());
    }
    let result = benchmark.play(&Nobody)?;
    writeln!(out, "{}\n{}", result.workload, result.comparison.to_text())?;
    for gap in &result.gap_closed {
        writeln!(out, "{gap:?}")?;
    }
    for bar in &result.bars {
        writeln!(
            out,
            "{} load {}: {} ({})",
            if bar.holds { "ok  " } else { "MISS" },
            bar.load,
            bar.promise,
            bar.measured
        )?;
    }
    if !result.ablation.is_empty() {
        writeln!(out, "{}", Comparison::new(result.ablation, "windfall").to_text())?;
    }
    Ok(())
}
