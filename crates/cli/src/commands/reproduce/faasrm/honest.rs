//! The honest benchmark: the agent is trained, written, and judged from its file beside everyone else.

use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use windfall_core::Duration;
use windfall_scenario::Scenario;
use windfall_scenario::faasrm_training::{FaasrmTraining, TrainingPoint};
use windfall_scenario::sweep::{Sweep, SweepResult};
use windfall_telemetry::{Comparison, RunDetail, RunSummary};
use windfall_trace::{AzureLikeSettings, ReadOptions, Source};

use super::Arguments;
use crate::commands::compare::{BASELINE, all_threads};
use crate::output::directory;
use crate::progress::{self, SweepBar};

/// Who is compared, beside the agent.
const POLICIES: [&str; 7] =
    ["fixed", "safeguard-random", "histogram", "oracle", "greedy", "ensure", "libra"];

/// What came of it.
pub(super) struct Honest {
    /// One line on the calls.
    pub(super) workload: String,
    /// Whether they were made up.
    pub(super) is_generated: bool,
    /// All policies, paired by seed with `fixed`.
    pub(super) comparison: Comparison,
    /// Distributions of every run.
    pub(super) details: Vec<RunDetail>,
    /// How far `windfall` came, where it took part.
    pub(super) gap_closed: Vec<GapClosed>,
    /// What was promised of it, and whether it holds.
    pub(super) bars: Vec<Bar>,
    /// It without single ideas.
    pub(super) ablation: Vec<RunSummary>,
    /// How the agent learned; empty if it was given.
    pub(super) curve: Vec<TrainingPoint>,
    /// The agent's file.
    pub(super) checkpoint: PathBuf,
}

/// The share of the distance in core-seconds from the best heuristic to what is used.
#[derive(Serialize)]
pub(super) struct GapClosed {
    pub(super) load: f64,
    pub(super) share: f64,
}

/// A promise and whether it holds.
#[derive(Serialize)]
pub(super) struct Bar {
    pub(super) load: f64,
    pub(super) promise: String,
    pub(super) measured: String,
    pub(super) holds: bool,
}

pub(super) fn play(arguments: &Arguments) -> anyhow::Result<Honest> {
    let trace = arguments.trace()?;
    let (checkpoint, curve) = match &arguments.checkpoint {
        Some(file) => (file.clone(), Vec::new()),
        None => train(arguments, training_source(trace.as_ref()))?,
    };
    let mut policies = POLICIES.map(str::to_owned).to_vec();
    policies.push(checkpoint.display().to_string());
    let scenario = Scenario {
        name: "honest sizing".into(),
        trace: test_source(trace.as_ref(), arguments.common.quick),
        loads: arguments.loads(),
        seeds: arguments.honest_seeds(),
        policies,
        ..Scenario::default()
    };
    scenario.check()?;
    let bar = SweepBar(progress::calls(0));
    let SweepResult { rows, details } =
        Sweep { scenario: &scenario, threads: all_threads() }.play(&bar)?;
    bar.0.finish_and_clear();
    Ok(Honest {
        workload: scenario.trace.describe(),
        is_generated: trace.is_none(),
        comparison: Comparison::new(rows, BASELINE),
        details,
        gap_closed: Vec::new(),
        bars: Vec::new(),
        ablation: Vec::new(),
        curve,
        checkpoint,
    })
}

/// The hours that the tables are about; never trained on.
fn test_source(trace: Option<&PathBuf>, is_quick: bool) -> Source {
    source(trace, if is_quick { (240, 270) } else { (240, 360) }, 16.0)
}

/// The hours that may be learned from.
fn training_source(trace: Option<&PathBuf>) -> Source {
    source(trace, (0, 240), 8.0)
}

fn source(trace: Option<&PathBuf>, (from, to): (u32, u32), start_hour: f64) -> Source {
    match trace {
        Some(path) => {
            let options =
                ReadOptions { window_minutes: Some((from, to)), ..ReadOptions::default() };
            Source::File { path: path.clone(), options }
        }
        None => Source::AzureLike(AzureLikeSettings {
            functions: 250,
            duration: Duration::from_mins(u64::from(to - from).min(120)),
            start_hour,
            ..AzureLikeSettings::default()
        }),
    }
}

/// Trains the agent and writes it into the folder of the results.
fn train(arguments: &Arguments, source: Source) -> anyhow::Result<(PathBuf, Vec<TrainingPoint>)> {
    let usual = if arguments.common.quick {
        FaasrmTraining::quick(source)
    } else {
        FaasrmTraining::on(source)
    };
    let core_price = arguments.core_price;
    let training = FaasrmTraining { core_price, threads: all_threads(), ..usual };
    let bar = progress::steps("training the agent in the simulator", training.iterations);
    let trained = training.run(&mut |_| bar.inc(1))?;
    bar.finish_and_clear();
    let folder = arguments.folder();
    directory(&folder)?;
    let file = folder.join("faasrm.safetensors");
    let told = || format!("{}: cannot be written", file.display());
    trained.checkpoint.save(&file).with_context(told)?;
    Ok((file, trained.curve))
}

impl Arguments {
    fn folder(&self) -> PathBuf {
        self.common.out.clone().unwrap_or_else(|| PathBuf::from("runs/reproduce-faasrm"))
    }

    fn loads(&self) -> Vec<f64> {
        let all = [0.5, 0.8, 1.0, 1.2];
        if !self.loads.is_empty() {
            self.loads.clone()
        } else if self.common.quick {
            vec![0.8]
        } else {
            all.to_vec()
        }
    }

    fn honest_seeds(&self) -> Vec<u64> {
        let usual = if self.common.quick { 2 } else { 5 };
        (1..=u64::from(self.common.seeds.unwrap_or(usual))).collect()
    }
}
