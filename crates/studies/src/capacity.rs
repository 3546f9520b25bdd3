//! Load held at equal service: how much load the same machines carry while an objective holds, policy by policy.
//!
//! ```text
//!   margin │            ╱ fixed      ╱ weights     ╱ ours         load is raised until the worst clause of the
//!          │          ╱            ╱             ╱                objective breaks: the load held. What a policy
//!      1 ──┼────────●────────────●─────────────●─────             holds back or wastes shows by itself, because
//!          │      ╱            ╱             ╱                    nobody can be served with it.
//!          └─────────────────────────────────────► load
//! ```
//!
//! [`objective`] what service has to be like · [`measure`] what a run did to each function's calls · [`search`] the
//! highest load that holds · [`contestants`] who takes part · [`worlds`] where · [`summary`] the best over-commit of
//! each, ratios and their intervals over functions · [`page`] and [`texts`] what people read · [`kernel`] the same on a real
//! machine.

pub mod contestants;
pub mod kernel;
mod largest;
pub mod measure;
pub mod objective;
pub mod page;
pub mod search;
pub mod summary;
pub mod texts;
pub mod worlds;

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use windfall_core::{Seed, Workload};
use windfall_scenario::cluster::Reserved;
use windfall_scenario::run::{Run, RunError, reserved};
use windfall_scenario::settings::Scenario;
use windfall_scenario::sweep::{OwnPolicies, RegistryOnly};

use contestants::{Contestant, Role};
use largest::WithoutLargest;
use measure::{FunctionService, ServiceMeasure, Used};
use objective::{Objective, Service};
use search::{Measured, Search, Tried, load_held};
use worlds::CapacityWorld;

/// What is to be measured.
pub struct Capacity {
    /// Where.
    pub worlds: Vec<CapacityWorld>,
    /// Who takes part; the first one is `fixed`.
    pub contestants: Vec<Contestant>,
    /// What service has to be like.
    pub objective: Objective,
    /// Seeds: other demands, reservations and arrival times of the same functions.
    pub seeds: Vec<u64>,
    /// Where the highest load is looked for.
    pub search: Search,
}

/// The load that one policy holds at one over-commit, on one seed.
#[derive(Clone, Debug, Serialize)]
pub struct CapacityRow {
    /// The world.
    pub world: String,
    /// The policy as tables call it.
    pub policy: String,
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
    /// The seed.
    pub seed: u64,
    /// The highest load at which the objective holds; 0 if it never does.
    pub load_held: f64,
    /// What it is in the comparison.
    #[serde(skip)]
    pub role: Role,
    /// Every load that was tried.
    #[serde(skip)]
    pub measured: Vec<Measured>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct CapacityResult {
    /// In order of world, contestant, over-commit, seed.
    pub rows: Vec<CapacityRow>,
    /// What `fixed` did at its lowest load, by world and seed.
    pub fixed: Vec<FixedService>,
}

/// What `fixed` did at its lowest load, and what nobody can go beyond.
#[derive(Clone, Debug)]
pub struct FixedService {
    /// The world.
    pub world: String,
    /// The seed.
    pub seed: u64,
    /// What happened to each function's calls.
    pub functions: Vec<FunctionService>,
    /// The load at which what calls use is all there is.
    pub packing_bound: f64,
}

/// Who watches. Called from several threads.
pub trait CapacityWatcher: Sync {
    /// So many searches will be made.
    fn begins(&self, _searches: usize) {}
    /// A search is over.
    fn search_ends(&self, _row: &CapacityRow) {}
    /// Whether everything should end soon; asked every few thousand events.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Watches nothing.
pub struct Nobody;

impl CapacityWatcher for Nobody {}

/// Who watches, and who brings policies that the registry does not know.
#[derive(Clone, Copy)]
struct Around<'a> {
    watcher: &'a dyn CapacityWatcher,
    own: &'a dyn OwnPolicies,
}

/// One search.
struct Job<'a> {
    world: &'a CapacityWorld,
    contestant: &'a Contestant,
    over_commit: f64,
    seed: u64,
}

/// What a run at one load amounted to.
struct Played {
    functions: Vec<FunctionService>,
    used: Used,
}

impl Capacity {
    /// Plays everything on so many threads, which cannot be seen in the result.
    pub fn play_on(
        &self,
        threads: usize,
        watcher: &dyn CapacityWatcher,
    ) -> Result<CapacityResult, CapacityError> {
        self.play_with(threads, watcher, &RegistryOnly)
    }

    /// The same with policies of the caller's own: contestants of these names are made by it.
    pub fn play_with(
        &self,
        threads: usize,
        watcher: &dyn CapacityWatcher,
        own: &dyn OwnPolicies,
    ) -> Result<CapacityResult, CapacityError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| CapacityError::Threads { threads, problem: error.to_string() })?;
        pool.install(|| self.play(Around { watcher, own }))
    }

    fn play(&self, around: Around<'_>) -> Result<CapacityResult, CapacityError> {
        let fixed = Contestant::new("fixed", Role::Fixed);
        let fixed: Vec<FixedService> = self
            .jobs(std::slice::from_ref(&fixed))
            .par_iter()
            .with_max_len(1)
            .map(|job| self.play_fixed(job, around))
            .collect::<Result<_, _>>()?;
        let jobs = self.jobs(&self.contestants);
        around.watcher.begins(jobs.len());
        let rows = jobs
            .par_iter()
            .with_max_len(1)
            .map(|job| {
                let known =
                    |one: &&FixedService| one.world == job.world.name && one.seed == job.seed;
                let fixed = fixed.iter().find(known).expect("every world and seed was played");
                let row = self.search(job, around, &fixed.functions)?;
                around.watcher.search_ends(&row);
                Ok(row)
            })
            .collect::<Result<_, CapacityError>>()?;
        Ok(CapacityResult { rows, fixed })
    }

    fn jobs<'a>(&'a self, contestants: &'a [Contestant]) -> Vec<Job<'a>> {
        let mut jobs = Vec::new();
        for world in &self.worlds {
            for contestant in contestants {
                for &over_commit in &contestant.over_commits {
                    let of_seed = |&seed: &u64| Job { world, contestant, over_commit, seed };
                    jobs.extend(self.seeds.iter().map(of_seed));
                }
            }
        }
        jobs
    }

    /// `fixed` where nothing is scarce: what it kills for memory, and what calls use.
    fn play_fixed(&self, job: &Job<'_>, around: Around<'_>) -> Result<FixedService, CapacityError> {
        let mut bench = self.bench(job, around)?;
        let Played { functions, used } = bench.play(self.search.lowest)?;
        let Reserved { cpu, .. } = bench.reserved;
        let by_memory = job.world.mib_per_core * cpu * 1e-3 / used.memory.max(1.0);
        Ok(FixedService {
            world: job.world.name.clone(),
            seed: job.seed,
            functions,
            packing_bound: (cpu / used.cpu.max(1.0)).min(by_memory),
        })
    }

    fn search(
        &self,
        job: &Job<'_>,
        around: Around<'_>,
        fixed: &[FunctionService],
    ) -> Result<CapacityRow, CapacityError> {
        let mut bench = self.bench(job, around)?;
        let kills = Service::of(fixed, None).kills();
        let holds = |functions: &Vec<FunctionService>| {
            self.objective.binding(&Service::of(functions, None), kills).margin <= 1.0
        };
        let play = |load: f64| bench.play(load).map(|played| played.functions);
        let measured: Vec<Tried<_>> = self.search.tries(play, holds)?;
        Ok(CapacityRow {
            world: job.world.name.clone(),
            policy: job.contestant.label.clone(),
            over_commit: job.over_commit,
            seed: job.seed,
            load_held: load_held(&self.objective, &measured, fixed, None),
            role: job.contestant.role,
            measured,
        })
    }

    fn bench<'a>(&self, job: &Job<'a>, around: Around<'a>) -> Result<Bench<'a>, CapacityError> {
        let Contestant { policy, settings, order, call_safeguards, .. } = job.contestant;
        let mut scenario = job.world.scenario.clone();
        scenario.platform.queue_order = *order;
        scenario.over_commit_cpu = job.over_commit;
        scenario.call_safeguards.clone_from(call_safeguards);
        if let Some(settings) = settings {
            scenario.policy_settings.insert(policy.clone(), settings.clone());
        }
        let seed = Seed::new(job.seed);
        let mut workload = scenario.trace.open(seed).map_err(RunError::from)?;
        if job.world.without_largest > 0 {
            let count = job.world.without_largest;
            workload = Box::new(WithoutLargest::new(workload, count, seed));
        }
        let reserved = reserved(workload.as_mut());
        let objective = self.objective;
        let (world, policy, seed) = (job.world, policy.clone(), job.seed);
        Ok(Bench { world, around, scenario, policy, seed, workload, reserved, objective })
    }
}

/// Everything that stays while load is raised.
struct Bench<'a> {
    world: &'a CapacityWorld,
    around: Around<'a>,
    scenario: Scenario,
    policy: String,
    seed: u64,
    workload: Box<dyn Workload + Send>,
    reserved: Reserved,
    objective: Objective,
}

impl Bench<'_> {
    fn play(&mut self, load: f64) -> Result<Played, CapacityError> {
        let cluster = self.world.cluster(&self.reserved, load);
        let run = Run {
            scenario: &self.scenario,
            policy: &self.policy,
            load,
            seed: self.seed,
            keep_steps: false,
        };
        let is_decided = AtomicBool::new(false);
        let warm_up = self.scenario.warm_up;
        let calls = self.reserved.calls;
        let mut measure = ServiceMeasure::new(self.objective, warm_up, calls, &is_decided);
        let Around { watcher, own } = self.around;
        let stop = || is_decided.load(Ordering::Relaxed) || watcher.is_stopped();
        let own = own.assemble(&self.policy, self.seed);
        run.play_until(own, cluster, self.workload.as_mut(), &mut measure, &stop)?;
        if watcher.is_stopped() {
            return Err(CapacityError::Stopped);
        }
        let used = measure.used;
        Ok(Played { functions: measure.into_functions(), used })
    }
}

/// Why a measurement was given up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// Fatal: a run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Fatal: the threads could not be started.
    #[error("{threads} threads could not be started: {problem}")]
    Threads {
        /// How many.
        threads: usize,
        /// What the system says.
        problem: String,
    },
    /// Fatal: the watcher stopped it.
    #[error("the measurement was stopped")]
    Stopped,
}

#[cfg(test)]
mod tests;
