//! The honest benchmark: the agent is trained, written, and judged from its file beside everyone else.

use std::path::PathBuf;

use anyhow::Context;
use windfall_core::Duration;
use windfall_scenario::Scenario;
use windfall_scenario::faasrm_training::{FaasrmTraining, TrainingPoint};
use windfall_scenario::sweep::{Sweep, SweepResult};
use windfall_telemetry::{Comparison, RunDetail};
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
    /// How the agent learned; empty if it was given.
    pub(super) curve: Vec<TrainingPoint>,
    /// The agent's file.
    pub(super) checkpoint: PathBuf,
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
        curve,
        checkpoint,
    })
}

/// Trains the agent and writes it into the folder of the results.
fn train(arguments: &Arguments, source: Source) -> anyhow::Result<(PathBuf, Vec<TrainingPoint>)> {
    let usual = if arguments.common.quick {
        FaasrmTraining::quick(source)
    } else {
        FaasrmTraining::on(source)
    };
    let training = FaasrmTraining { threads: all_threads(), ..usual };
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
