//! FaaSRM's agent learns in the simulator.
//!
//! ```text
//!   iteration:  several rollouts, each a window of the training trace at one of the loads
//!               every call's reward goes to the decision that sized it
//!               one PPO update on all decisions that had a choice
//! ```
//!
//! A rollout is a function of the seed, the iteration and its place, so any number of threads gives the
//! same weights. Nothing but the source that is handed in is ever looked at: give it the training half.

use std::sync::{Arc, PoisonError};

use serde::Serialize;
use windfall_agents::faasrm::ScoreAgent;
use windfall_agents::faasrm::score_ppo::{Sample, ScorePpo, ScorePpoSettings};
use windfall_agents::faasrm::sizing::{FaasrmSizing, Lessons, empty_checkpoint};
use windfall_core::Seed;
use windfall_registry::checkpoint_policy::behind_its_safeguard;
use windfall_rl::Checkpoint;
use windfall_rl::parallel::Workers;
use windfall_rl::random::Draw;
use windfall_scenario::run::{NoJournal, Run, RunError, reserved};
use windfall_scenario::settings::Scenario;
use windfall_telemetry::RunSummary;
use windfall_trace::Source;

/// How the agent is trained.
#[derive(Clone, Debug, Serialize)]
pub struct FaasrmTraining {
    /// Where training calls come from.
    pub source: Source,
    /// Loads, taken in turn.
    pub loads: Vec<f64>,
    /// Updates.
    pub iterations: u64,
    /// Rollouts before each.
    pub rollouts: usize,
    /// Minutes of each.
    pub minutes: u32,
    /// Decisions learned from in each, at most, evenly spread.
    pub decisions: usize,
    /// What core-time costs in the reward; the paper's has none.
    pub core_price: f32,
    /// Of the learner.
    pub ppo: ScorePpoSettings,
    /// The seed of everything.
    pub seed: u64,
    /// Threads; the result does not depend on it.
    #[serde(skip)]
    pub threads: usize,
}

impl FaasrmTraining {
    /// The usual amount on `source`: a few minutes on two cores.
    pub fn on(source: Source) -> Self {
        Self {
            source,
            loads: vec![0.5, 0.8, 1.0, 1.2],
            iterations: 40,
            rollouts: 4,
            minutes: 20,
            decisions: 4096,
            core_price: 0.0,
            ppo: ScorePpoSettings::mended(),
            seed: 1,
            threads: 1,
        }
    }

    /// To see it work in seconds.
    pub fn quick(source: Source) -> Self {
        Self { iterations: 4, minutes: 5, decisions: 1024, ..Self::on(source) }
    }
}

/// One iteration of the learning curve, means over its rollouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrainingPoint {
    /// Its number, from 1.
    pub iteration: u64,
    /// Calls played so far.
    pub calls: u64,
    /// Mean reward of a decision that had a choice.
    pub reward: f64,
    /// Mean RFET of all calls.
    pub rfet: f64,
    /// Core-seconds granted over used.
    pub granted_over_used: f64,
    /// Mean entropy of the choices.
    pub entropy: f64,
}

/// A finished training.
#[derive(Clone, Debug)]
pub struct TrainedFaasrm {
    /// The agent with everything needed to go on.
    pub checkpoint: Checkpoint,
    /// Iteration by iteration.
    pub curve: Vec<TrainingPoint>,
}

/// What a rollout brings home.
struct Rollout {
    samples: Vec<Sample>,
    rewards: f64,
    decisions: u64,
    summary: RunSummary,
}

impl FaasrmTraining {
    /// Trains from scratch; `progress` is called after every iteration.
    pub fn run(&self, progress: &mut dyn FnMut(&TrainingPoint)) -> Result<TrainedFaasrm, RunError> {
        let seed = self.seed();
        let mut learner = ScorePpo::new(self.ppo, seed);
        let workers = Workers::new(self.threads);
        let mut curve: Vec<TrainingPoint> = Vec::new();
        for iteration in 0..self.iterations {
            let agent = learner.agent();
            let places: Vec<u64> = (0..self.rollouts as u64).collect();
            let rollouts = workers.map(&places, |place| {
                let from = seed.stream("rollout").member(iteration).member(*place);
                let turn = iteration as usize * self.rollouts + *place as usize;
                self.roll_out(&agent, from, self.loads[turn % self.loads.len()])
            });
            let rollouts: Vec<Rollout> = rollouts.into_iter().collect::<Result<_, _>>()?;
            let samples: Vec<Sample> =
                rollouts.iter().flat_map(|rollout| rollout.samples.iter().cloned()).collect();
            let entropy = learner.update(&samples, &workers).entropy;
            let before = curve.last().map_or(0, |point| point.calls);
            let point = TrainingPoint { entropy, ..point(iteration + 1, before, &rollouts) };
            progress(&point);
            curve.push(point);
        }
        Ok(TrainedFaasrm { checkpoint: self.checkpoint(&learner), curve })
    }

    /// The agent before its first lesson: what training is to be measured against.
    pub fn untrained(&self) -> Checkpoint {
        self.checkpoint(&ScorePpo::new(self.ppo, self.seed()))
    }

    fn seed(&self) -> Seed {
        Seed::new(self.seed).stream("faasrm-training")
    }

    fn checkpoint(&self, learner: &ScorePpo) -> Checkpoint {
        let (updates, steps) = learner.progress();
        let settings = serde_json::to_value(self).unwrap_or_default();
        let mut checkpoint = empty_checkpoint(self.seed(), updates, steps, settings);
        learner.store(&mut checkpoint);
        checkpoint
    }

    fn roll_out(&self, agent: &ScoreAgent, seed: Seed, load: f64) -> Result<Rollout, RunError> {
        let scenario = Scenario { trace: self.window(seed), ..Scenario::default() };
        let number = seed.get() >> 11;
        let open = || scenario.trace.open(Seed::new(number)).map_err(RunError::from);
        let reserved = reserved(open()?.as_mut());
        let run =
            Run { scenario: &scenario, policy: "faasrm", load, seed: number, keep_steps: false };
        let lessons = Lessons::default();
        let policy =
            FaasrmSizing::learning(agent.clone(), seed, Arc::clone(&lessons), self.core_price);
        let output = run.play_assembled(
            behind_its_safeguard(policy),
            &reserved,
            open()?.as_mut(),
            (&mut NoJournal, &mut |_| ()),
        )?;
        // Where there was one size to choose there is nothing to learn.
        let mut lessons =
            std::mem::take(&mut *lessons.lock().unwrap_or_else(PoisonError::into_inner));
        lessons.retain(|lesson| lesson.seen.count_allowed() > 1);
        let (decisions, rewards) =
            (lessons.len() as u64, lessons.iter().map(|lesson| f64::from(lesson.reward)).sum());
        let every = lessons.len().div_ceil(self.decisions.max(1)).max(1);
        let samples = lessons.into_iter().step_by(every).map(|lesson| Sample {
            seen: lesson.seen,
            action: lesson.action,
            log_probability: lesson.log_probability,
            value: lesson.reward,
        });
        Ok(Rollout { samples: samples.collect(), rewards, decisions, summary: output.summary })
    }

    /// A window of the training calls.
    fn window(&self, seed: Seed) -> Source {
        let mut source = self.source.clone();
        match &mut source {
            Source::AzureLike(settings) => {
                settings.duration = windfall_core::Duration::from_mins(u64::from(self.minutes));
            }
            Source::File { options, .. } => {
                let (from, to) = options.window_minutes.unwrap_or((0, 480));
                let starts = (to - from).saturating_sub(self.minutes) + 1;
                let from = from + Draw::new(seed.stream("window")).below(starts as usize) as u32;
                options.window_minutes = Some((from, to.min(from + self.minutes)));
            }
        }
        source
    }
}

fn point(iteration: u64, before: u64, rollouts: &[Rollout]) -> TrainingPoint {
    let sum = |of: fn(&Rollout) -> f64| rollouts.iter().map(of).sum::<f64>();
    let count = rollouts.len().max(1) as f64;
    TrainingPoint {
        iteration,
        calls: before + rollouts.iter().map(|rollout| rollout.summary.calls).sum::<u64>(),
        reward: sum(|rollout| rollout.rewards) / sum(|rollout| rollout.decisions as f64).max(1.0),
        rfet: sum(|rollout| rollout.summary.rfet_mean) / count,
        granted_over_used: sum(|rollout| rollout.summary.core_seconds_granted)
            / sum(|rollout| rollout.summary.core_seconds_used).max(1e-9),
        entropy: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_trace::AzureLikeSettings;

    fn training(threads: usize) -> FaasrmTraining {
        let source = Source::AzureLike(AzureLikeSettings {
            functions: 10,
            calls_per_hour: 3000.0,
            ..AzureLikeSettings::default()
        });
        let quick = FaasrmTraining::quick(source);
        FaasrmTraining { iterations: 2, rollouts: 2, threads, ..quick }
    }

    #[test]
    fn one_thread_and_two_give_the_same_weights() {
        let train = |threads| training(threads).run(&mut |_| ()).unwrap();
        let (one, two) = (train(1), train(2));
        assert_eq!(one.checkpoint.tensors, two.checkpoint.tensors);
        assert_eq!(one.curve, two.curve);
        assert!(one.curve[1].calls > one.curve[0].calls && one.curve[0].reward < 0.0);
    }

    #[test]
    fn windows_lie_in_the_training_half() {
        let options = windfall_trace::ReadOptions {
            window_minutes: Some((60, 100)),
            ..windfall_trace::ReadOptions::default()
        };
        let training = FaasrmTraining::on(Source::File { path: "x".into(), options });
        for number in 0..50 {
            let Source::File { options, .. } = training.window(Seed::new(number)) else { panic!() };
            let (from, to) = options.window_minutes.unwrap();
            assert!(from >= 60 && to <= 100 && to - from == 20, "{from} {to}");
        }
    }
}
