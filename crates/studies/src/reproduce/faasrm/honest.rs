//! The honest benchmark: the agent is trained, written, and judged from its file beside everyone else.

use std::path::PathBuf;

use windfall_rl::Checkpoint;
use windfall_scenario::Run;
use windfall_scenario::sweep;
use windfall_trace::Source;

use super::{ReproduceError, Request, Settings, Stage, Watcher, trace};
use crate::faasrm_training::{FaasrmTraining, TrainedFaasrm, TrainingPoint};
use crate::honest_sizing::{HonestResult, HonestSizing};

/// The outcome.
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

pub(super) fn play(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Honest, ReproduceError> {
    let trace = trace(&settings.trace, watcher)?;
    let whole = HonestSizing { trace, ..HonestSizing::default() };
    let agents = match &settings.checkpoint {
        Some(file) => {
            vec![Agent { file: file.clone(), what: "the agent given".into(), curve: Vec::new() }]
        }
        None if !settings.with_agent => Vec::new(),
        None => train_all(request, settings.core_price, &whole.training_source(), watcher)?,
    };
    let benchmark = HonestSizing {
        loads: loads(request, settings),
        seeds: seeds(request),
        more_policies: agents.iter().map(|agent| agent.file.display().to_string()).collect(),
        minutes: settings.minutes.or(request.quick.then_some(20)),
        with_ablation: !request.quick && settings.with_ablation,
        with_over_commit: !request.quick && settings.with_over_commit,
        threads: request.threads,
        ..whole
    };
    watcher.begin(Stage::Calls);
    let result = benchmark.play(&SweepStage(watcher))?;
    watcher.end();
    Ok(Honest { result, agents })
}

/// Trains with the paper's reward, then with one that counts cores too, and keeps the agent as it was at
/// first: what learning added is the difference.
fn train_all(
    request: &Request<'_>,
    core_price: f32,
    source: &Source,
    watcher: &dyn Watcher,
) -> Result<Vec<Agent>, ReproduceError> {
    let training = |core_price: f32| {
        let usual = if request.quick { FaasrmTraining::quick } else { FaasrmTraining::on };
        FaasrmTraining { core_price, threads: request.threads, ..usual(source.clone()) }
    };
    let plain = learn(&training(0.0), "training with the paper's reward", watcher)?;
    let what = "the agent trained with the paper's reward".to_owned();
    let mut agents =
        vec![save(request, "faasrm.safetensors", what, &plain.checkpoint, plain.curve)?];
    if core_price > 0.0 {
        let priced = learn(&training(core_price), "training with a price on cores", watcher)?;
        let what = format!("the agent trained with a price of {core_price} on core-time");
        let name = "faasrm-priced.safetensors";
        agents.push(save(request, name, what, &priced.checkpoint, priced.curve)?);
    }
    let what = "the agent before its first lesson".to_owned();
    let untrained = training(0.0).untrained();
    agents.push(save(request, "faasrm-untrained.safetensors", what, &untrained, Vec::new())?);
    Ok(agents)
}

fn save(
    request: &Request<'_>,
    name: &str,
    what: String,
    checkpoint: &Checkpoint,
    curve: Vec<TrainingPoint>,
) -> Result<Agent, ReproduceError> {
    let folder = request.folder;
    std::fs::create_dir_all(folder)
        .map_err(|source| ReproduceError::Folder { folder: folder.to_owned(), source })?;
    let file = folder.join(name);
    match checkpoint.save(&file) {
        Ok(()) => Ok(Agent { file, what, curve }),
        Err(source) => Err(ReproduceError::Checkpoint { file, source }),
    }
}

fn learn(
    training: &FaasrmTraining,
    what: &'static str,
    watcher: &dyn Watcher,
) -> Result<TrainedFaasrm, ReproduceError> {
    watcher.begin(Stage::Training { what, steps: training.iterations });
    let trained = training.run(&mut |_| watcher.advance(1))?;
    watcher.end();
    Ok(trained)
}

fn loads(request: &Request<'_>, settings: &Settings) -> Vec<f64> {
    match (settings.loads.is_empty(), request.quick) {
        (false, _) => settings.loads.clone(),
        (true, true) => vec![0.8],
        (true, false) => vec![0.5, 0.8, 1.0, 1.2],
    }
}

fn seeds(request: &Request<'_>) -> Vec<u64> {
    let usual = if request.quick { 2 } else { 5 };
    (1..=u64::from(request.seeds.unwrap_or(usual))).collect()
}

/// Shows a sweep as a stage of calls.
struct SweepStage<'a>(&'a dyn Watcher);

impl sweep::Watcher for SweepStage<'_> {
    fn begins(&self, calls: u64, runs: u64) {
        self.0.extend(calls * runs);
    }

    fn calls(&self, more: u64) {
        self.0.advance(more);
    }

    fn run_ends(&self, run: &Run<'_>) {
        self.0.describe(&format!("{} at {}", run.label().policy, run.load));
    }
}
