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
mod resume;
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
use resume::SearchName;
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
    /// Whether incumbents that are far behind on the first seed are left out of the others: a first look in less time.
    pub races: bool,
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
    /// So many policies will be judged, each in one world.
    fn begins(&self, _contests: usize) {}
    /// One of them was judged: on every seed, at its best over-commits.
    fn contest_ends(&self, _rows: &[CapacityRow]) {}
    /// What a search of this name found before the measurement was cut off.
    fn recalls(&self, _search: &str) -> Option<String> {
        None
    }
    /// A search of this name has ended.
    fn keeps(&self, _search: &str, _found: &str) {}
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

/// All searches for one policy in one world.
struct Contest<'a> {
    world: &'a CapacityWorld,
    contestant: &'a Contestant,
    around: Around<'a>,
    fixed: &'a [FixedService],
}

/// One search.
struct Job<'a> {
    world: &'a CapacityWorld,
    contestant: &'a Contestant,
    over_commit: f64,
    seed: u64,
}

/// An over-commit is given up where it does not hold this share of the best on the first seed.
const CLOSE: f64 = 0.95;
/// In a race an incumbent is given up where it does not hold this share of the best of its kind on the first seed.
const CONTENDS: f64 = 0.85;

/// Where a search begins.
#[derive(Clone, Copy, Debug)]
struct Begin {
    /// Less than this is of no interest.
    least: Option<f64>,
    /// What a similar search found.
    guess: Option<f64>,
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
        let contestant = Contestant::new("fixed", Role::Fixed);
        let pairs = self.worlds.iter().flat_map(|world| self.seeds.iter().map(move |s| (world, s)));
        let jobs: Vec<Job<'_>> = pairs
            .map(|(world, &seed)| Job { world, contestant: &contestant, over_commit: 1.0, seed })
            .collect();
        let fixed: Vec<FixedService> = jobs
            .par_iter()
            .with_max_len(1)
            .map(|job| self.play_fixed(job, around))
            .collect::<Result<_, _>>()?;
        let pairs = |world| self.contestants.iter().map(move |contestant| (world, contestant));
        let contests: Vec<Contest<'_>> = self
            .worlds
            .iter()
            .flat_map(pairs)
            .map(|(world, contestant)| Contest { world, contestant, around, fixed: &fixed })
            .collect();
        around.watcher.begins(contests.len() * self.seeds.len().min(2));
        let firsts = contests
            .par_iter()
            .with_max_len(1)
            .map(|contest| {
                let rows = self.first_seed(contest)?;
                around.watcher.contest_ends(&rows);
                Ok(rows)
            })
            .collect::<Result<Vec<_>, CapacityError>>()?;
        let contends = if self.races { contenders(&firsts) } else { vec![true; firsts.len()] };
        let rows = (contests.par_iter(), firsts, contends)
            .into_par_iter()
            .with_max_len(1)
            .map(|(contest, firsts, contends)| {
                let rows = if contends { self.other_seeds(contest, firsts)? } else { firsts };
                if self.seeds.len() > 1 {
                    around.watcher.contest_ends(&rows);
                }
                Ok(rows)
            })
            .collect::<Result<Vec<_>, CapacityError>>()?;
        Ok(CapacityResult { rows: rows.into_iter().flatten().collect(), fixed })
    }

    /// One policy in one world on the first seed, at the over-commits that hold most.
    ///
    /// Of the over-commits 1, 1.5 and 2 with 0.9, 1.3 and 1.2, the third is given up after one run at 1.24, and the second
    /// alone is listed. With 1.3 and 1.25 both are.
    fn first_seed(&self, contest: &Contest<'_>) -> Result<Vec<CapacityRow>, CapacityError> {
        let Some(&first) = self.seeds.first() else { return Ok(Vec::new()) };
        let mut best: Option<f64> = None;
        let mut firsts = Vec::new();
        for &over_commit in &contest.contestant.over_commits {
            let least = best.filter(|&best| best > 0.0).map(|best| best * CLOSE);
            let row = self.search(contest, over_commit, first, Begin { least, guess: None })?;
            let Some(row) = row else { continue };
            best = Some(best.unwrap_or(0.0).max(row.load_held));
            firsts.push(row);
        }
        firsts.retain(|row| row.load_held >= best.unwrap_or(0.0) * CLOSE);
        Ok(firsts)
    }

    /// The same on the other seeds, each search begun where the first one ended.
    fn other_seeds(
        &self,
        contest: &Contest<'_>,
        firsts: Vec<CapacityRow>,
    ) -> Result<Vec<CapacityRow>, CapacityError> {
        let mut rows = Vec::new();
        for row in firsts {
            let CapacityRow { over_commit, load_held, .. } = row;
            rows.push(row);
            for &seed in self.seeds.iter().skip(1) {
                let begin = Begin { least: None, guess: Some(load_held) };
                rows.extend(self.search(contest, over_commit, seed, begin)?);
            }
        }
        Ok(rows)
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

    /// The load held, unless it is less than is of interest.
    fn search(
        &self,
        contest: &Contest<'_>,
        over_commit: f64,
        seed: u64,
        begin: Begin,
    ) -> Result<Option<CapacityRow>, CapacityError> {
        let Contest { world, contestant, around, fixed } = *contest;
        let known = |one: &&FixedService| one.world == world.name && one.seed == seed;
        let fixed = fixed.iter().find(known).expect("every world and seed was played");
        let job = Job { world, contestant, over_commit, seed };
        let measured = self.measured(&job, around, fixed, begin)?;
        Ok(measured.map(|measured| CapacityRow {
            world: world.name.clone(),
            policy: contestant.label.clone(),
            over_commit,
            seed,
            load_held: load_held(&self.objective, &measured, &fixed.functions, None),
            role: contestant.role,
            measured,
        }))
    }

    /// Every load that a search tries, unless it is given up; from an earlier measurement if that was cut off.
    fn measured(
        &self,
        job: &Job<'_>,
        around: Around<'_>,
        fixed: &FixedService,
        begin: Begin,
    ) -> Result<Option<Vec<Measured>>, CapacityError> {
        let name = self.search_name(job, begin);
        let earlier = around.watcher.recalls(&name).and_then(|text| resume::from_text(&text));
        if let Some(measured) = earlier {
            return Ok(measured);
        }
        let mut bench = self.bench(job, around)?;
        let kills = Service::of(&fixed.functions, None).kills();
        let holds = |functions: &Vec<FunctionService>| {
            self.objective.binding(&Service::of(functions, None), kills).margin <= 1.0
        };
        let play = |load: f64| bench.play(load).map(|played| played.functions);
        let measured: Option<Vec<Tried<_>>> = match begin {
            Begin { least: Some(least), .. } => self.search.near(least).tries_above(play, holds)?,
            Begin { guess: Some(guess), .. } if guess > 0.0 => {
                Some(self.search.near(guess).tries(play, holds)?)
            }
            Begin { .. } => Some(self.search.tries(play, holds)?),
        };
        around.watcher.keeps(&name, &resume::to_text(measured.as_deref()));
        Ok(measured)
    }

    fn search_name(&self, job: &Job<'_>, begin: Begin) -> String {
        let Job { world, contestant, over_commit, seed } = *job;
        let CapacityWorld { nodes, mib_per_core, without_largest, .. } = world;
        let settings = format!(
            "{} {} {nodes} {mib_per_core} {without_largest} {seed} {:?} {begin:?} {:?} {:?}",
            env!("CARGO_PKG_VERSION"),
            scenario_of(job).digest(),
            contestant.policy,
            self.objective,
            self.search,
        );
        let policy = &contestant.label;
        SearchName { world: &world.name, policy, over_commit, seed, settings }.text()
    }

    fn bench<'a>(&self, job: &Job<'a>, around: Around<'a>) -> Result<Bench<'a>, CapacityError> {
        let scenario = scenario_of(job);
        let policy = &job.contestant.policy;
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

/// The world's scenario with what the contestant sets in it.
fn scenario_of(job: &Job<'_>) -> Scenario {
    let Contestant { policy, settings, order, waits_for_warm, call_safeguards, .. } =
        job.contestant;
    let mut scenario = job.world.scenario.clone();
    scenario.platform.queue_order = *order;
    scenario.platform.waits_for_warm = *waits_for_warm;
    scenario.over_commit_cpu = job.over_commit;
    scenario.call_safeguards.clone_from(call_safeguards);
    if let Some(settings) = settings {
        scenario.policy_settings.insert(policy.clone(), settings.clone());
    }
    scenario
}

/// Whether each contest goes on after the first seed: incumbents that hold far less than the best of their kind do not.
fn contenders(firsts: &[Vec<CapacityRow>]) -> Vec<bool> {
    let held = |rows: &[CapacityRow]| rows.iter().map(|row| row.load_held).fold(0.0, f64::max);
    let is_rival = |role: Role| matches!(role, Role::Incumbent | Role::OrderedIncumbent);
    let contends = |rows: &Vec<CapacityRow>| {
        let Some(own) = rows.first().filter(|row| is_rival(row.role)) else { return true };
        let is_alike = |row: &&CapacityRow| row.world == own.world && row.role == own.role;
        let rivals = firsts.iter().flatten().filter(is_alike);
        let best = rivals.map(|row| row.load_held).fold(0.0, f64::max);
        held(rows) >= best * CONTENDS
    };
    firsts.iter().map(contends).collect()
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
