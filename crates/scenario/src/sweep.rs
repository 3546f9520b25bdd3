//! Every policy on every load and seed, in parallel. Results come in a fixed order, whatever the number
//! of threads, and each run draws from its own seed only: one thread and eight give the same bytes.

use rayon::prelude::*;
use windfall_core::{Arrival, FunctionProfile, Seed, TelemetrySink, Timestamp, Workload};
use windfall_registry::Assembled;
use windfall_telemetry::{FunctionCosts, RunDetail, RunSummary};
use windfall_trace::TraceError;

use crate::cluster::Reserved;
use crate::run::{NoJournal, Run, RunError, RunOutput, reserved};
use crate::settings::Scenario;

/// All runs of a scenario.
pub struct Sweep<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Threads to use at most.
    pub threads: usize,
}

/// What came of a sweep, in order of load, policy, seed.
#[derive(Clone, Debug, Default)]
pub struct SweepResult {
    /// One row per run.
    pub rows: Vec<RunSummary>,
    /// For the report.
    pub details: Vec<RunDetail>,
    /// What each function held, for intervals over functions.
    pub costs: Vec<FunctionCosts>,
}

/// Who watches a sweep. Called from several threads.
pub trait Watcher: Sync {
    /// A workload of so many calls will be played so many times.
    fn begins(&self, _calls: u64, _runs: u64) {}
    /// This many more calls have ended.
    fn calls(&self, _more: u64) {}
    /// A run is over.
    fn run_ends(&self, _run: &Run<'_>) {}
    /// Where the journal of a run goes; nowhere, if nothing is said.
    fn journal(&self, _run: &Run<'_>) -> Result<Option<Box<dyn Journal>>, std::io::Error> {
        Ok(None)
    }
    /// Whether all runs should end soon; asked every few thousand calls at least.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Policies that the caller brings, by name. They come before those of the registry.
pub trait OwnPolicies: Sync {
    /// A fresh policy for one run; nothing if the name is not one of these.
    fn assemble(&self, name: &str, seed: u64) -> Option<Assembled>;
}

/// A caller without policies of its own.
pub struct RegistryOnly;

impl OwnPolicies for RegistryOnly {
    fn assemble(&self, _: &str, _: u64) -> Option<Assembled> {
        None
    }
}

impl dyn Watcher + '_ {
    /// A workload that ends when the watcher says so.
    pub fn stoppable(&self, workload: Box<dyn Workload + Send>) -> Stoppable<'_> {
        Stoppable { workload, watcher: self }
    }
}

/// A workload that ends early if its watcher says so.
pub struct Stoppable<'a> {
    workload: Box<dyn Workload + Send>,
    watcher: &'a dyn Watcher,
}

impl Workload for Stoppable<'_> {
    fn functions(&self) -> &[FunctionProfile] {
        self.workload.functions()
    }

    fn horizon(&self) -> Timestamp {
        self.workload.horizon()
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        if self.watcher.is_stopped() { None } else { self.workload.next_arrival() }
    }

    fn next_arrivals(&mut self, most: usize, into: &mut Vec<Arrival>) {
        if !self.watcher.is_stopped() {
            self.workload.next_arrivals(most, into);
        }
    }

    fn restart(&mut self, seed: Seed) {
        self.workload.restart(seed);
    }
}

/// A journal that can be closed.
pub trait Journal: TelemetrySink {
    /// Writes what is still to be written, or returns what went wrong on the way.
    fn close(self: Box<Self>) -> std::io::Result<()>;
}

/// Why a sweep was given up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// Fatal: a run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Fatal: a journal could not be written.
    #[error("the journal of {policy} at load {load}, seed {seed} could not be written: {source}")]
    Journal {
        /// Which policy.
        policy: String,
        /// At which load.
        load: f64,
        /// From which seed.
        seed: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// Fatal: the threads could not be started.
    #[error("{threads} threads could not be started: {problem}")]
    Threads {
        /// How many.
        threads: usize,
        /// What the system says.
        problem: String,
    },
    /// Fatal: the watcher stopped it.
    #[error("the runs were stopped")]
    Stopped,
}

impl From<TraceError> for SweepError {
    fn from(error: TraceError) -> Self {
        Self::Run(error.into())
    }
}

impl SweepError {
    /// What to do about it, where there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Run(error) => error.hint(),
            Self::Journal { .. } => Some("check the permissions and the free space"),
            Self::Threads { .. } => Some("ask for fewer with --threads"),
            Self::Stopped => None,
        }
    }
}

impl Sweep<'_> {
    /// Plays everything.
    pub fn play(&self, watcher: &dyn Watcher) -> Result<SweepResult, SweepError> {
        self.play_with(watcher, &RegistryOnly)
    }

    /// Plays everything, with policies of the caller's own beside those of the registry.
    pub fn play_with(
        &self,
        watcher: &dyn Watcher,
        own: &dyn OwnPolicies,
    ) -> Result<SweepResult, SweepError> {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(self.threads).build().map_err(|error| {
                SweepError::Threads { threads: self.threads, problem: error.to_string() }
            })?;
        pool.install(|| self.play_here(watcher, own))
    }

    fn play_here(
        &self,
        watcher: &dyn Watcher,
        own: &dyn OwnPolicies,
    ) -> Result<SweepResult, SweepError> {
        let runs = self.runs();
        // What users reserve is a matter of the seed alone; it is measured once for each.
        let measured: Vec<(u64, Reserved)> = self
            .scenario
            .seeds
            .par_iter()
            .map(|&seed| Ok((seed, self.measure(seed, runs.len(), watcher)?)))
            .collect::<Result<_, SweepError>>()?;
        let of_seed = |seed: u64| {
            measured.iter().find(|(other, _)| *other == seed).map(|(_, reserved)| *reserved)
        };
        let outputs: Vec<RunOutput> = runs
            .par_iter()
            .with_max_len(1)
            .map(|run| {
                let reserved = of_seed(run.seed).expect("every seed was measured");
                self.play_one(run, &reserved, watcher, own)
            })
            .collect::<Result<_, _>>()?;
        let mut result = SweepResult::default();
        for output in outputs {
            result.rows.push(output.summary);
            result.details.push(output.detail);
            result.costs.push(output.costs);
        }
        Ok(result)
    }

    fn runs(&self) -> Vec<Run<'_>> {
        let Scenario { loads, policies, seeds, .. } = self.scenario;
        let mut runs = Vec::new();
        for &load in loads {
            for policy in policies {
                for &seed in seeds {
                    let scenario = self.scenario;
                    runs.push(Run { scenario, policy, load, seed, keep_steps: false });
                }
            }
        }
        runs
    }

    fn measure(
        &self,
        seed: u64,
        runs: usize,
        watcher: &dyn Watcher,
    ) -> Result<Reserved, SweepError> {
        let workload = self.scenario.trace.open(Seed::new(seed))?;
        let reserved = reserved(&mut watcher.stoppable(workload));
        watcher.begins(reserved.calls, (runs / self.scenario.seeds.len().max(1)) as u64);
        Ok(reserved)
    }

    fn play_one(
        &self,
        run: &Run<'_>,
        reserved: &Reserved,
        watcher: &dyn Watcher,
        own: &dyn OwnPolicies,
    ) -> Result<RunOutput, SweepError> {
        let mut workload = watcher.stoppable(self.scenario.trace.open(Seed::new(run.seed))?);
        let failed = |source| SweepError::Journal {
            policy: run.policy.to_owned(),
            load: run.load,
            seed: run.seed,
            source,
        };
        let mut journal = watcher.journal(run).map_err(failed)?;
        let mut nothing = NoJournal;
        let mut reported = 0;
        let mut progress = |ended: u64| {
            watcher.calls(ended - reported);
            reported = ended;
        };
        let run = &Run { keep_steps: journal.is_some(), ..*run };
        let sink: &mut dyn TelemetrySink = match &mut journal {
            Some(journal) => journal.as_mut(),
            None => &mut nothing,
        };
        let output = match own.assemble(run.policy, run.seed) {
            Some(policy) => {
                run.play_assembled(policy, reserved, &mut workload, (sink, &mut progress))?
            }
            None => run.play(reserved, &mut workload, sink, &mut progress)?,
        };
        if watcher.is_stopped() {
            return Err(SweepError::Stopped);
        }
        watcher.calls(output.ledger.arrived - reported);
        if let Some(journal) = journal {
            journal.close().map_err(failed)?;
        }
        watcher.run_ends(run);
        Ok(output)
    }
}
