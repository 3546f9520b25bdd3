//! Frontiers: every policy with one parameter swept, on the same calls, and how far one lies from the others.
//!
//! ```text
//!   slow   │ x  incumbents, one curve each          any policy looks good on one axis; what counts is the
//!   share  │  x   o  ours                           whole curve: memory at equal slow share, slow share
//!          │   o x                                  at equal memory, against the lower envelope of all
//!          │     o  x                               incumbents together
//!          └────────────► MiB-seconds
//! ```

pub mod alone;
pub mod arrivals_oracle;
pub mod bootstrap;
pub mod envelope;
pub mod measure;
pub mod minute_oracle;
pub mod numbers;
pub mod pages;
pub mod parameters;
pub mod ratios;
pub mod tables;
pub mod texts;
mod trades;
pub mod worlds;

use rayon::prelude::*;
use serde::Serialize;
use windfall_core::statistics::mean;
use windfall_core::{Allocation, Seed};
use windfall_scenario::cluster::size_cluster;
use windfall_scenario::run::{Run, RunError, Watching, reserved};
use windfall_scenario::settings::Scenario;
use windfall_sim::{Cluster, Placement};
use windfall_trace::Needs;

pub use windfall_core::statistics::Interval;

use self::arrivals_oracle::OracleCost;
use self::measure::{FunctionShare, InstanceMeasure};
use self::parameters::Family;

/// Which trade is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Slow calls against what instances hold, on one node that takes everything or one memory pool.
    Scaling,
    /// p99 slowdown against core-seconds, on a cluster of this load.
    Sizing {
        /// What users reserve over what there is.
        load: f64,
    },
    /// Both decision points at once: slow calls against memory, and cores and p99 beside them, of pairs of a
    /// sizing and a scaling policy on a cluster of this load.
    Together {
        /// What users reserve over what there is.
        load: f64,
    },
}

impl Question {
    /// The load of the cluster; nothing where it takes everything.
    pub fn load(self) -> Option<f64> {
        match self {
            Self::Scaling => None,
            Self::Sizing { load } | Self::Together { load } => Some(load),
        }
    }

    /// What calls need in a world that is made for this question: where only instances are counted, calls
    /// need time and nothing else.
    pub fn needs(self) -> Needs {
        match self {
            Self::Scaling => Needs::TimesOnly,
            Self::Sizing { .. } | Self::Together { .. } => Needs::Modelled,
        }
    }

    /// Where calls go in such a world. Where instances are counted a call finds an idle one on whichever node it
    /// stands, as it does behind Knative's activator: what is held there is held for it.
    pub fn placement(self) -> Placement {
        match self {
            Self::Scaling | Self::Sizing { .. } => Placement::default(),
            Self::Together { .. } => Placement::WarmFirst,
        }
    }
}

/// What is swept.
#[derive(Clone, Debug)]
pub struct Frontier<'a> {
    /// Which trade.
    pub question: Question,
    /// In which world; its policies, loads and clusters are not used.
    pub scenario: &'a Scenario,
    /// Which policies with which parameters.
    pub families: Vec<Family>,
    /// The memory of the cluster as a multiple of what the arrivals oracle holds on average; no limit if
    /// nothing is said.
    pub pool: Option<f64>,
}

/// One policy at one setting of its parameter, on one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrontierPoint {
    /// The policy, with what tells families of one policy apart.
    pub policy: String,
    /// The value of its parameter. Scripts know it by the shorter name.
    #[serde(rename = "dial")]
    pub parameter: f64,
    /// The seed.
    pub seed: u64,
    /// Whether it is one of those that the others are judged by.
    pub is_incumbent: bool,
    /// Calls that were measured.
    pub calls: u64,
    /// Share of calls whose bounded slowdown is above 1.1.
    pub slow_share: f64,
    /// The same share of each function, averaged over functions.
    pub slow_share_per_function: f64,
    /// p99 of the bounded slowdown.
    pub bounded_slowdown_p99: f64,
    /// Memory of all instances from start request to stop, over time.
    pub mib_seconds: f64,
    /// Instances over time.
    pub instance_seconds: f64,
    /// Instances started and stopped, per hour.
    pub changes_per_hour: f64,
    /// p99 of the slowdown.
    pub slowdown_p99: f64,
    /// CPU held by running calls, over time.
    pub core_seconds: f64,
    /// What each function contributes.
    #[serde(skip)]
    pub functions: Vec<FunctionShare>,
}

/// What the arrivals oracle holds on one seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OraclePoint {
    /// The seed.
    pub seed: u64,
    /// What it costs never to wait, with all arrivals known.
    #[serde(flatten)]
    pub cost: OracleCost,
}

/// Everything a sweep found, in order of seeds, families and parameters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FrontierResult {
    /// One for each run.
    pub points: Vec<FrontierPoint>,
    /// One for each seed.
    pub oracle: Vec<OraclePoint>,
}

impl FrontierResult {
    /// What the arrivals oracle holds, averaged over the seeds; never zero.
    pub fn mean_of_oracle(&self, of: fn(&OracleCost) -> f64) -> f64 {
        let costs = self.oracle.iter().map(|point| of(&point.cost));
        mean(costs).unwrap_or(0.0).max(f64::MIN_POSITIVE)
    }
}

/// Who watches a sweep. Called from several threads.
pub trait FrontierWatcher: Sync {
    /// So many runs will be made.
    fn begins(&self, _runs: usize) {}
    /// One of them is over.
    fn run_ends(&self, _point: &FrontierPoint) {}
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl FrontierWatcher for Unwatched {}

impl Frontier<'_> {
    /// Makes all runs on at most `threads` threads; the results do not depend on it.
    pub fn sweep_on(
        &self,
        threads: usize,
        watcher: &dyn FrontierWatcher,
    ) -> Result<FrontierResult, RunError> {
        match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool.install(|| self.sweep(watcher)),
            // Without threads of its own the sweep still runs.
            Err(_) => self.sweep(watcher),
        }
    }

    /// Makes all runs, in parallel and in a fixed order.
    pub fn sweep(&self, watcher: &dyn FrontierWatcher) -> Result<FrontierResult, RunError> {
        let seeds = &self.scenario.seeds;
        let runs: Vec<(u64, &Family, f64)> = seeds
            .iter()
            .flat_map(|&seed| {
                self.families.iter().flat_map(move |family| {
                    family.values.iter().map(move |&value| (seed, family, value))
                })
            })
            .collect();
        watcher.begins(runs.len());
        let oracle: Vec<OraclePoint> =
            seeds.par_iter().map(|&seed| self.oracle(seed)).collect::<Result<_, RunError>>()?;
        let points = runs
            .par_iter()
            .with_max_len(1)
            .map(|&(seed, family, value)| {
                let known = oracle.iter().find(|point| point.seed == seed);
                let point = self.point(seed, family, value, known)?;
                watcher.run_ends(&point);
                Ok(point)
            })
            .collect::<Result<_, RunError>>()?;
        Ok(FrontierResult { points, oracle })
    }

    fn oracle(&self, seed: u64) -> Result<OraclePoint, RunError> {
        let mut workload = self.scenario.trace.open(Seed::new(seed))?;
        let concurrency = self.scenario.platform.concurrency;
        let cost = arrivals_oracle::cost(workload.as_mut(), concurrency, self.scenario.warm_up);
        Ok(OraclePoint { seed, cost })
    }

    /// One node that takes everything, or one with the memory of the pool.
    fn cluster(&self, oracle: Option<&OraclePoint>) -> Cluster {
        let held = oracle.map_or(0.0, |point| point.cost.mib_seconds / point.cost.seconds.max(1.0));
        let memory = self.pool.map_or(f64::from(u32::MAX), |factor| (factor * held).ceil());
        Cluster {
            nodes: 1,
            node: Allocation::new(u32::MAX, memory.min(f64::from(u32::MAX)) as u32),
            over_commit_cpu: 1.0,
            over_commit_memory: 1.0,
        }
    }

    fn point(
        &self,
        seed: u64,
        family: &Family,
        value: f64,
        oracle: Option<&OraclePoint>,
    ) -> Result<FrontierPoint, RunError> {
        let scenario = family.at(value, self.scenario);
        let mut workload = scenario.trace.open(Seed::new(seed))?;
        let load = self.question.load();
        let run = Run {
            scenario: &scenario,
            policy: &family.policy,
            load: load.unwrap_or(1.0),
            seed,
            keep_steps: false,
        };
        let mut measure = InstanceMeasure::new(scenario.warm_up, workload.horizon());
        let cluster = match load {
            Some(load) => {
                let mut whole = scenario.trace.open(Seed::new(seed))?;
                size_cluster(&reserved(whole.as_mut()), load, scenario.node)
            }
            None => self.cluster(oracle),
        };
        let mut unseen = |_| {};
        let watching: Watching<'_> = (&mut measure, &mut unseen);
        let output = if family.policy == minute_oracle::NAME {
            let assembled = minute_oracle::assemble(&scenario, seed)?;
            run.play_on(cluster, assembled, workload.as_mut(), watching)?
        } else {
            run.play_on_cluster(cluster, workload.as_mut(), watching)?
        };
        Ok(FrontierPoint {
            policy: family.label.clone(),
            parameter: value,
            seed,
            is_incumbent: family.is_incumbent,
            calls: measure.calls(),
            slow_share: measure.slow_share(),
            slow_share_per_function: measure.slow_share_per_function(),
            bounded_slowdown_p99: output.summary.bounded_slowdown_p99,
            mib_seconds: measure.mib_seconds,
            instance_seconds: measure.instance_seconds,
            changes_per_hour: measure.changes_per_hour(),
            slowdown_p99: output.summary.slowdown_p99,
            core_seconds: output.summary.core_seconds_granted,
            functions: measure.into_functions(),
        })
    }
}
