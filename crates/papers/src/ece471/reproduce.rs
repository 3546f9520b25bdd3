//! The whole exercise: golden scores, exploration, every learner on several seeds, the reward designs,
//! trained against random.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::mean;
use windfall_rl::Spread;
use windfall_rl::algorithms::dqn::Dqn;
use windfall_rl::algorithms::ppo::Ppo;
use windfall_rl::algorithms::q_learning::QLearning;
use windfall_rl::algorithms::reinforce::Reinforce;
use windfall_rl::learner::Learner;
use windfall_rl::parallel::Workers;
use windfall_rl::policy::evaluate;

mod bands;
mod continuing;
mod designs;
pub use bands::{Band, bands};
pub use continuing::{Continued, Duel, continued, duel};
pub use designs::{DesignResult, train_design};

use super::baselines::{Golden, golden};
use super::environment::{Ece471, Features, Settings};
use super::exploration::{Random, Visit, trajectory};
use super::rewards::Design;
use super::{RATES, settings};

/// Which learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// PPO with everything that helps.
    Ppo,
    /// PPO as the course hands it out.
    PpoCourse,
    /// Deep Q-learning.
    Dqn,
    /// Tabular Q-learning.
    QLearning,
    /// REINFORCE with a baseline.
    Reinforce,
    /// REINFORCE as the course hands it out.
    ReinforceCourse,
}

impl Algorithm {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ppo => "ppo",
            Self::PpoCourse => "ppo-course",
            Self::Dqn => "dqn",
            Self::QLearning => "q-learning",
            Self::Reinforce => "reinforce",
            Self::ReinforceCourse => "reinforce-course",
        }
    }

    /// Whether it receives the mask of legal actions; the course's variants do not.
    pub fn masks(self) -> bool {
        match self {
            Self::Ppo | Self::Dqn | Self::QLearning | Self::Reinforce => true,
            Self::PpoCourse | Self::ReinforceCourse => false,
        }
    }

    /// Starts it.
    pub fn start(self, environment: Settings, iterations: u64, seed: Seed) -> Box<dyn Learner> {
        let several = || vec![Ece471::new(environment); settings::EPISODES];
        let features = match environment.features {
            Features::Course => 6,
            Features::WithDirection => 7,
        };
        match self {
            Self::Ppo => Box::new(Ppo::new(settings::ppo(iterations), several(), seed, 1)),
            Self::PpoCourse => {
                Box::new(Ppo::new(settings::ppo_course(iterations), several(), seed, 1))
            }
            Self::Dqn => {
                Box::new(Dqn::new(settings::dqn(iterations), Ece471::new(environment), seed))
            }
            Self::QLearning => {
                let settings = settings::q_learning(iterations, features);
                Box::new(QLearning::new(settings, Ece471::new(environment), seed))
            }
            Self::Reinforce => {
                Box::new(Reinforce::new(settings::reinforce(iterations), several(), seed, 1))
            }
            Self::ReinforceCourse => {
                Box::new(Reinforce::new(settings::reinforce_course(iterations), several(), seed, 1))
            }
        }
    }
}

/// One learner on one kind of observation for one length of training.
///
/// Learners that see the last direction go by their plain name, because the reward depends on it; the same
/// learner on the course's six features has a name that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// Which learner.
    pub algorithm: Algorithm,
    /// What it sees.
    pub features: Features,
    /// What it is paid for.
    pub design: Design,
    /// Iterations of five episodes.
    pub iterations: u64,
}

impl Experiment {
    /// Its name in results.
    pub fn name(&self) -> String {
        let name = self.algorithm.name();
        match (self.features, self.algorithm) {
            (Features::WithDirection, _)
            | (Features::Course, Algorithm::PpoCourse | Algorithm::ReinforceCourse) => {
                name.to_owned()
            }
            (Features::Course, _) => format!("{name}-six-features"),
        }
    }
}

/// What to reproduce.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The learners.
    pub experiments: Vec<Experiment>,
    /// Seeds each learner is trained on, one after the other from this one.
    pub first_seed: u64,
    /// How many.
    pub seeds: u64,
    /// Iterations between two greedy evaluations.
    pub evaluate_every: u64,
    /// Iterations for each of the four reward designs.
    pub design_iterations: u64,
    /// Iterations of the training that is interrupted half-way, kept and continued.
    pub continued_iterations: u64,
    /// Threads; the results do not depend on it.
    pub threads: usize,
}

impl Plan {
    /// Everything the targets speak of, on ten seeds.
    pub fn full(threads: usize) -> Self {
        let with = |algorithm, features, iterations| Experiment {
            algorithm,
            features,
            design: Design::Authors,
            iterations,
        };
        use Algorithm::{Dqn, Ppo, PpoCourse, QLearning, Reinforce, ReinforceCourse};
        use Features::{Course, WithDirection};
        Self {
            experiments: vec![
                with(Ppo, WithDirection, 50),
                with(Ppo, WithDirection, 500),
                with(Ppo, Course, 50),
                with(Ppo, Course, 500),
                with(PpoCourse, Course, 50),
                with(Dqn, WithDirection, 50),
                with(Dqn, Course, 50),
                with(QLearning, WithDirection, 50),
                with(QLearning, Course, 50),
                with(Reinforce, WithDirection, 300),
                with(ReinforceCourse, Course, 300),
            ],
            first_seed: 1,
            seeds: 10,
            evaluate_every: 10,
            design_iterations: 50,
            continued_iterations: 40,
            threads,
        }
    }

    /// The same page in a fraction of the time: three seeds, short trainings.
    pub fn quick(threads: usize) -> Self {
        let mut plan = Self::full(threads);
        plan.experiments.retain(|experiment| experiment.iterations <= 300);
        for experiment in &mut plan.experiments {
            experiment.iterations = experiment.iterations.min(30);
        }
        Self { seeds: 3, design_iterations: 20, continued_iterations: 10, ..plan }
    }

    /// Iterations of everything together.
    pub fn iterations(&self) -> u64 {
        let learners: u64 = self.experiments.iter().map(|experiment| experiment.iterations).sum();
        let designs = Design::TASKS.len() as u64 * self.design_iterations;
        (learners + designs) * self.seeds + self.design_iterations + self.continued_iterations
    }
}

/// One point of a training curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Iterations done.
    pub iteration: u64,
    /// Environment steps done.
    pub steps: u64,
    /// Mean return of the episodes played in training.
    pub reward: Option<f64>,
    /// Mean SLO preservation in training.
    pub slo: f64,
    /// Mean CPU utilisation in training.
    pub util: f64,
    /// Return of the greedy policy, mean over all rates; where it was evaluated.
    pub greedy: Option<f64>,
}

/// How a learner did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlgorithmResult {
    /// Its name.
    pub name: String,
    /// What it saw.
    pub features: Features,
    /// What it was paid for.
    pub design: Design,
    /// Iterations of five episodes.
    pub iterations: u64,
    /// Environment steps of each seed.
    pub steps: u64,
    /// Seeds.
    pub seeds: u64,
    /// Mean over seeds of the last policy's greedy return.
    pub mean: f64,
    /// Standard deviation over seeds (n - 1).
    pub sd: f64,
    /// The worst seed.
    pub min: f64,
    /// The best seed.
    pub max: f64,
    /// The worst greedy evaluation of any seed in the last half of training: has it fallen back?
    pub worst_late: f64,
    /// The last policy's greedy return of each seed.
    pub finals: Vec<f64>,
    /// For each seed the first evaluation that reached [`REACHED`] and the worst from there on.
    pub reached: Vec<Reached>,
    /// Curves over all seeds.
    pub bands: Vec<Band>,
    /// The training curve of each seed.
    #[serde(skip)]
    pub curves: Vec<Vec<Point>>,
}

/// What PPO must reach and not fall back from.
pub const REACHED: f64 = 189.5;

/// When a training first reached [`REACHED`], and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The iteration; nothing if it never did.
    pub iteration: Option<u64>,
    /// The worst evaluation from there on.
    pub worst_after: Option<f64>,
}

impl Reached {
    fn of(curve: &[Point]) -> Self {
        let evaluated = || curve.iter().filter_map(|point| Some((point.iteration, point.greedy?)));
        let iteration = evaluated().find(|(_, greedy)| *greedy >= REACHED).map(|(first, _)| first);
        let after = evaluated().filter(|(at, _)| iteration.is_some_and(|first| *at >= first));
        let worst_after = after.map(|(_, greedy)| greedy).reduce(f64::min);
        Self { iteration, worst_after }
    }
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Scores that need no learning.
    pub golden: Golden,
    /// Task 1.2: the first 200 steps of random exploration.
    pub exploration: Vec<Visit>,
    /// The learners.
    pub algorithms: Vec<AlgorithmResult>,
    /// The four reward designs.
    pub designs: Vec<DesignResult>,
    /// Kept half-way and continued.
    pub continued: Continued,
    /// Trained against random.
    pub duel: Duel,
}

/// What is reported while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Which learner.
    pub experiment: Experiment,
    /// On which seed.
    pub seed: u64,
    /// The latest point of its curve.
    pub point: Point,
}

/// Reproduces. `progress` is called from several threads, in no particular order.
pub fn reproduce(plan: &Plan, progress: &(dyn Fn(&Progress) + Sync)) -> Reproduction {
    let workers = Workers::new(plan.threads);
    let exploration =
        trajectory(Settings::default(), &mut Random::new(Seed::new(1)), false, 200, Seed::new(1));
    let algorithms = plan
        .experiments
        .iter()
        .map(|experiment| run(plan, *experiment, &workers, progress))
        .collect();
    let designs = Design::TASKS.map(|design| train_design(plan, design, &workers, progress));
    Reproduction {
        golden: golden(),
        exploration,
        algorithms,
        designs: designs.to_vec(),
        continued: continued(plan, progress),
        duel: duel(plan, progress),
    }
}

/// Trains one learner on all seeds.
pub fn run(
    plan: &Plan,
    experiment: Experiment,
    workers: &Workers,
    progress: &(dyn Fn(&Progress) + Sync),
) -> AlgorithmResult {
    let seeds: Vec<u64> = (plan.first_seed..plan.first_seed + plan.seeds).collect();
    let curves = workers.map(&seeds, |seed| train(plan, experiment, *seed, progress).1);
    let last = |curve: &Vec<Point>| curve.last().and_then(|point| point.greedy).unwrap_or(f64::NAN);
    let finals: Vec<f64> = curves.iter().map(last).collect();
    let Spread { mean, sd, low, high } = Spread::of(&finals);
    let late = curves.iter().flatten().filter(|point| point.iteration * 2 > experiment.iterations);
    AlgorithmResult {
        name: experiment.name(),
        features: experiment.features,
        design: experiment.design,
        iterations: experiment.iterations,
        steps: curves.first().and_then(|curve| curve.last()).map_or(0, |point| point.steps),
        seeds: plan.seeds,
        mean,
        sd,
        min: low,
        max: high,
        worst_late: late.filter_map(|point| point.greedy).fold(f64::INFINITY, f64::min),
        finals,
        reached: curves.iter().map(|curve| Reached::of(curve)).collect(),
        bands: bands(&curves),
        curves,
    }
}

/// Trains one learner on one seed and returns it with its curve.
pub fn train(
    plan: &Plan,
    experiment: Experiment,
    seed: u64,
    progress: &(dyn Fn(&Progress) + Sync),
) -> (Box<dyn Learner>, Vec<Point>) {
    let Experiment { algorithm, features, design, iterations } = experiment;
    let settings = Settings { features, design, ..Settings::default() };
    let mut learner = algorithm.start(settings, iterations, Seed::new(seed));
    let mut curve = Vec::new();
    while learner.iteration() < iterations {
        let report = learner.iterate();
        let is_due = report.iteration.is_multiple_of(plan.evaluate_every.max(1));
        let is_last = report.iteration == iterations;
        let greedy = (is_due || is_last)
            .then(|| greedy_return(learner.as_ref(), settings, algorithm.masks()));
        let point = Point {
            iteration: report.iteration,
            steps: report.steps,
            reward: report.mean_return,
            slo: report.feature_means[1],
            util: report.feature_means[0],
            greedy,
        };
        progress(&Progress { experiment, seed, point: point.clone() });
        curve.push(point);
    }
    (learner, curve)
}

/// Return of the greedy policy: mean over all rates of one episode each.
pub fn greedy_return(learner: &dyn Learner, settings: Settings, masks: bool) -> f64 {
    let at = |rate| Ece471::new(Settings { rate: Some(rate), ..settings });
    let mut environments: Vec<Ece471> = RATES.map(at).collect();
    let totals = evaluate(&mut environments, learner.policy().as_mut(), masks, Seed::new(0));
    mean(&totals).unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
