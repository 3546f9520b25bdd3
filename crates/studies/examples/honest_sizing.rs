//! The honest benchmark of per-call sizing, as a table.
//!
//! `cargo run --profile quick -p windfall-studies --example honest_sizing -- --trace FOLDER`
//!
//! `--train` plays the training half instead (for tuning), `--set TOML` changes parameters of `windfall`, or of `--of`,
//! `--policies`, `--loads`, `--seeds`, `--minutes` restrict what is played.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use windfall_scenario::sweep::Watcher;
use windfall_scenario::{Scenario, Sweep};
use windfall_studies::honest_sizing::HonestSizing;
use windfall_telemetry::Comparison;

struct Nobody;
impl Watcher for Nobody {}

/// What was asked for on the command line.
#[derive(Default)]
struct Asked {
    benchmark: HonestSizing,
    is_training: bool,
    settings: String,
    of: Option<String>,
    policies: Option<Vec<String>>,
}

type Anything = Box<dyn std::error::Error>;

fn main() -> Result<(), Anything> {
    let asked = asked()?;
    if let Some(policies) = asked.policies.clone() {
        return play_some(asked, policies);
    }
    let mut out = std::io::stdout().lock();
    let result = asked.benchmark.play(&Nobody)?;
    writeln!(out, "{}\n{}", result.workload, result.comparison.to_text())?;
    for gap in &result.gap_closed {
        writeln!(out, "{gap:?}")?;
    }
    for bar in &result.bars {
        let sign = if bar.holds { "ok  " } else { "MISS" };
        writeln!(out, "{sign} load {}: {} ({})", bar.load, bar.promise, bar.measured)?;
    }
    for variant in &result.variants {
        writeln!(out, "{variant:?}")?;
    }
    for one in result.over_commit.iter().filter(|one| one.is_best) {
        writeln!(out, "{one:?}")?;
    }
    if !result.ablation.is_empty() {
        writeln!(out, "{}", Comparison::new(result.ablation, "windfall").to_text())?;
    }
    Ok(())
}

fn asked() -> Result<Asked, Anything> {
    let mut asked = Asked::default();
    asked.benchmark.threads = 1;
    asked.benchmark.with_ablation = false;
    asked.benchmark.with_over_commit = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("a value is missing");
        let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<String>>();
        match argument.as_str() {
            "--train" => asked.is_training = true,
            "--ablation" => asked.benchmark.with_ablation = true,
            "--trace" => asked.benchmark.trace = Some(PathBuf::from(value()?)),
            "--threads" => asked.benchmark.threads = value()?.parse()?,
            "--minutes" => asked.benchmark.minutes = Some(value()?.parse()?),
            "--set" => asked.settings = value()?.replace(';', "\n"),
            "--of" => asked.of = Some(value()?),
            "--policies" => asked.policies = Some(list(value()?)),
            "--loads" => {
                let loads = list(value()?);
                asked.benchmark.loads =
                    loads.iter().map(|load| load.parse()).collect::<Result<_, _>>()?;
            }
            "--seeds" => {
                let seeds = list(value()?);
                asked.benchmark.seeds =
                    seeds.iter().map(|seed| seed.parse()).collect::<Result<_, _>>()?;
            }
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Ok(asked)
}

/// Only some policies, one line a run: for setting parameters.
fn play_some(asked: Asked, policies: Vec<String>) -> Result<(), Anything> {
    let benchmark = asked.benchmark;
    let trace =
        if asked.is_training { benchmark.training_source() } else { benchmark.test_source() };
    let (loads, seeds) = (benchmark.loads, benchmark.seeds);
    let policy_settings = {
        let of = asked.of.unwrap_or_else(|| "windfall".to_owned());
        BTreeMap::from([(of, asked.settings.parse()?)])
    };
    let scenario =
        Scenario { trace, loads, seeds, policies, policy_settings, ..Scenario::default() };
    let played = Sweep { scenario: &scenario, threads: benchmark.threads }.play(&Nobody)?;
    let mut out = std::io::stdout().lock();
    for row in &played.rows {
        writeln!(
            out,
            "{:16} load {} seed {} calls {} p50 {:.4} p95 {:.4} p99 {:.4} rfet {:.4} harvested violations {:.4} % \
             memory kills {} granted {:.0} held back {:.0} used {:.0} ratio {:.4} looks per call {:.2}",
            row.policy,
            row.load,
            row.seed,
            row.calls,
            row.slowdown_p50,
            row.slowdown_p95,
            row.slowdown_p99,
            row.rfet_mean,
            100.0 * row.harvested_violation_share,
            row.oom_kills,
            row.core_seconds_granted,
            row.core_seconds_held_back,
            row.core_seconds_used,
            row.core_seconds_held / row.core_seconds_used,
            row.looks as f64 / row.calls.max(1) as f64,
        )?;
    }
    Ok(())
}
