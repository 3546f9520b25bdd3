//! The honest benchmark: the agent is trained, written, and judged from its file beside everyone else.

use std::path::PathBuf;

use anyhow::Context;
use windfall_rl::Checkpoint;
use windfall_studies::faasrm_training::{FaasrmTraining, TrainedFaasrm, TrainingPoint};
use windfall_studies::honest_sizing::{HonestResult, HonestSizing};
use windfall_trace::Source;

use super::Arguments;
use crate::commands::compare::all_threads;
use crate::output::directory;
use crate::progress::{self, SweepBar};

/// What came of it.
pub(super) struct Honest {
    /// Every policy on the test half.
    pub(super) result: HonestResult,
    /// The agent, first with the paper's reward; then what it is to be measured against.
    pub(super) agents: Vec<Agent>,
}

/// An agent in a file.
pub(super) struct Agent {
    /// Where it is.
    pub(super) file: PathBuf,
    /// What it is, for sentences.
    pub(super) what: String,
    /// How it learned; empty if it did not, or not here.
    pub(super) curve: Vec<TrainingPoint>,
}

pub(super) fn play(arguments: &Arguments) -> anyhow::Result<Honest> {
    let whole = HonestSizing { trace: arguments.trace()?, ..HonestSizing::default() };
    let agents = match &arguments.checkpoint {
        Some(file) => {
            vec![Agent { file: file.clone(), what: "the agent given".into(), curve: Vec::new() }]
        }
        None => train_all(arguments, &whole.training_source())?,
    };
    let benchmark = HonestSizing {
        loads: arguments.loads(),
        seeds: arguments.honest_seeds(),
        more_policies: agents.iter().map(|agent| agent.file.display().to_string()).collect(),
        minutes: arguments.minutes.or(arguments.delivery.quick.then_some(20)),
        with_ablation: !arguments.delivery.quick && !arguments.no_ablation,
        threads: all_threads(),
        ..whole
    };
    let bar = SweepBar(progress::calls(0));
    let result = benchmark.play(&bar)?;
    bar.0.finish_and_clear();
    Ok(Honest { result, agents })
}

/// Trains with the paper's reward, then with one that counts cores too, and keeps the agent as it was at
/// first: what learning added is the difference.
fn train_all(arguments: &Arguments, source: &Source) -> anyhow::Result<Vec<Agent>> {
    let training = |core_price: f32| {
        let usual =
            if arguments.delivery.quick { FaasrmTraining::quick } else { FaasrmTraining::on };
        FaasrmTraining { core_price, threads: all_threads(), ..usual(source.clone()) }
    };
    let save = |name: &str, what: String, checkpoint: &Checkpoint, curve: Vec<TrainingPoint>| {
        let folder = arguments.folder();
        directory(&folder)?;
        let file = folder.join(name);
        let told = || format!("{}: cannot be written", file.display());
        checkpoint.save(&file).with_context(told)?;
        anyhow::Ok(Agent { file, what, curve })
    };
    let plain = learn(&training(0.0), "training with the paper's reward")?;
    let what = "the agent trained with the paper's reward".to_owned();
    let mut agents = vec![save("faasrm.safetensors", what, &plain.checkpoint, plain.curve)?];
    let price = arguments.core_price;
    if price > 0.0 {
        let priced = learn(&training(price), "training with a price on cores")?;
        let what = format!("the agent trained with a price of {price} on core-time");
        agents.push(save("faasrm-priced.safetensors", what, &priced.checkpoint, priced.curve)?);
    }
    let what = "the agent before its first lesson".to_owned();
    let untrained = training(0.0).untrained();
    agents.push(save("faasrm-untrained.safetensors", what, &untrained, Vec::new())?);
    Ok(agents)
}

fn learn(training: &FaasrmTraining, told: &'static str) -> anyhow::Result<TrainedFaasrm> {
    let bar = progress::steps(told, training.iterations);
    let trained = training.run(&mut |_| bar.inc(1))?;
    bar.finish_and_clear();
    Ok(trained)
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
