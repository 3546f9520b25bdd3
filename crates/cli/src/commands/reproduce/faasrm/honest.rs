//! The honest benchmark: the agent is trained, written, and judged from its file beside everyone else.

use std::path::PathBuf;

use anyhow::Context;
use windfall_rl::Checkpoint;
use windfall_scenario::faasrm_training::{FaasrmTraining, TrainingPoint};
use windfall_scenario::honest_sizing::{HonestResult, HonestSizing};
use windfall_trace::Source;

use super::Arguments;
use crate::commands::compare::all_threads;
use crate::output::directory;
use crate::progress::{self, SweepBar};

/// What came of it.
pub(super) struct Honest {
    /// Every policy on the test half.
    pub(super) result: HonestResult,
    /// How the agent learned; empty if it was given.
    pub(super) curve: Vec<TrainingPoint>,
    /// The agent's file.
    pub(super) checkpoint: PathBuf,
    /// The same agent before its first lesson; nothing if it was given.
    pub(super) untrained: Option<PathBuf>,
}

pub(super) fn play(arguments: &Arguments) -> anyhow::Result<Honest> {
    let whole = HonestSizing { trace: arguments.trace()?, ..HonestSizing::default() };
    let Learned { checkpoint, untrained, curve } = match &arguments.checkpoint {
        Some(file) => Learned { checkpoint: file.clone(), untrained: None, curve: Vec::new() },
        None => train(arguments, whole.training_source())?,
    };
    let files = std::iter::once(&checkpoint).chain(&untrained);
    let benchmark = HonestSizing {
        loads: arguments.loads(),
        seeds: arguments.honest_seeds(),
        more_policies: files.map(|file| file.display().to_string()).collect(),
        minutes: arguments.minutes.or(arguments.delivery.quick.then_some(20)),
        with_ablation: !arguments.delivery.quick && !arguments.no_ablation,
        threads: all_threads(),
        ..whole
    };
    let bar = SweepBar(progress::calls(0));
    let result = benchmark.play(&bar)?;
    bar.0.finish_and_clear();
    Ok(Honest { result, curve, checkpoint, untrained })
}

/// Where an agent is and how it came about.
struct Learned {
    checkpoint: PathBuf,
    untrained: Option<PathBuf>,
    curve: Vec<TrainingPoint>,
}

/// Trains the agent and writes it into the folder of the results, beside what it was at first.
fn train(arguments: &Arguments, source: Source) -> anyhow::Result<Learned> {
    let usual = if arguments.delivery.quick {
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
    let save = |name: &str, checkpoint: &Checkpoint| {
        let file = folder.join(name);
        let told = || format!("{}: cannot be written", file.display());
        checkpoint.save(&file).with_context(told).map(|()| file.clone())
    };
    Ok(Learned {
        checkpoint: save("faasrm.safetensors", &trained.checkpoint)?,
        untrained: Some(save("faasrm-untrained.safetensors", &training.untrained())?),
        curve: trained.curve,
    })
}

impl Arguments {
    fn folder(&self) -> PathBuf {
        self.delivery.out.clone().unwrap_or_else(|| PathBuf::from("runs/reproduce-faasrm"))
    }

    fn loads(&self) -> Vec<f64> {
        match (self.loads.is_empty(), self.delivery.quick) {
            (false, _) => self.loads.clone(),
            (true, true) => vec![0.8],
            (true, false) => vec![0.5, 0.8, 1.0, 1.2],
        }
    }

    fn honest_seeds(&self) -> Vec<u64> {
        let usual = if self.delivery.quick { 2 } else { 5 };
        (1..=u64::from(self.delivery.seeds.unwrap_or(usual))).collect()
    }
}
