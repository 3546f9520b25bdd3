//! One run: one policy on one load and one seed, to the last call.

use windfall_control::{CallLoop, ControlLoop};
use windfall_core::{
    Allocation, CallRecord, Duration, Episodic, FunctionId, FunctionProfile, IntervalRecord, Needs,
    PlatformError, Seed, TelemetrySink, TickRecord, Timestamp, Workload,
};
use windfall_registry::checkpoint_policy::label;
use windfall_registry::{AssembleError, Assembled, assemble, call_safeguard};
use windfall_sim::{Cluster, Ledger, Settings, Simulator};
use windfall_telemetry::{FunctionCosts, RunDetail, RunLabel, RunMetrics, RunSummary};
use windfall_trace::{TraceError, offered_load};

use crate::cluster::{Reserved, size_cluster};
use crate::settings::Scenario;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Fatal: the workload could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Fatal: the name or file of the policy does not become one.
    #[error(transparent)]
    Policy(#[from] AssembleError),
    /// Fatal: the platform gave up.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// Fatal: a call was lost or counted twice. This is a defect of ours.
    #[error("the ledger does not balance: {0:?}")]
    Unbalanced(Ledger),
}

impl RunError {
    /// What to do about it, where there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Trace(error) => error.hint(),
            Self::Policy(error) => error.hint(),
            Self::Platform(_) | Self::Unbalanced(_) => None,
        }
    }
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// In which world.
    pub scenario: &'a Scenario,
    /// With which policy: a name, or the file of a checkpoint.
    pub policy: &'a str,
    /// At which load.
    pub load: f64,
    /// From which seed.
    pub seed: u64,
    /// Whether every change of a call's grant is kept for the journal.
    pub keep_steps: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// In one row.
    pub summary: RunSummary,
    /// For the report.
    pub detail: RunDetail,
    /// What each function held.
    pub costs: FunctionCosts,
    /// The machines it ran on.
    pub cluster: Cluster,
    /// Where every call went.
    pub ledger: Ledger,
    /// Arrivals and events handled.
    pub events: u64,
}

/// What users reserve over the whole of a workload; leaves it at its end.
pub fn reserved(workload: &mut dyn Workload) -> Reserved {
    let functions = workload.functions().iter();
    let largest =
        functions.fold(Allocation::ZERO, |largest, function| largest.max(function.reservation));
    let offered = offered_load(workload);
    Reserved {
        calls: offered.calls,
        cpu: offered.reserved_core_ns * 1e3,
        memory: offered.reserved_mib_ns,
        largest,
        span: offered.span,
    }
}

/// The simulator's settings for a scenario on `cluster`.
pub fn simulator_settings(scenario: &Scenario, cluster: Cluster) -> Settings {
    let platform = &scenario.platform;
    let cluster = Cluster {
        over_commit_cpu: scenario.over_commit_cpu,
        over_commit_memory: scenario.over_commit_memory,
        ..cluster
    };
    let most = Allocation::new((scenario.call_max_cores * 1e3) as u32, u32::MAX);
    Settings {
        cpu: scenario.cpu,
        ceiling: cluster.node.min(most),
        placement: platform.placement,
        scale_out: platform.scale_out,
        concurrency: platform.concurrency,
        keep_alive: platform.keep_alive,
        cold_starts: platform.cold_starts,
        queue_limit: platform.queue_limit,
        queue_order: platform.queue_order,
        waits_for_warm: platform.waits_for_warm,
        actuation_delay: platform.actuation_delay,
        sensors: platform.sensors,
        faults: platform.faults,
        cluster,
        ..Settings::new(cluster.nodes, cluster.node)
    }
}

/// The sink of all records, and a callback with the number of calls that have ended.
pub type Watching<'w> = (&'w mut dyn TelemetrySink, &'w mut (dyn FnMut(u64) + Send));

impl Run<'_> {
    /// Plays the run. `journal` sees everything, `progress` the number of calls that have ended.
    pub fn play(
        &self,
        reserved: &Reserved,
        workload: &mut dyn Workload,
        journal: &mut dyn TelemetrySink,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<RunOutput, RunError> {
        self.play_assembled(self.assemble()?, reserved, workload, (journal, progress))
    }

    /// Plays the run with a policy that was built elsewhere, for instance one that is still learning.
    pub fn play_assembled(
        &self,
        assembled: Assembled,
        reserved: &Reserved,
        workload: &mut dyn Workload,
        watching: Watching<'_>,
    ) -> Result<RunOutput, RunError> {
        let cluster = size_cluster(reserved, self.load, self.scenario.node);
        self.play_on(cluster, assembled, workload, watching)
    }

    /// Plays the run on machines that are given, with the policy it names.
    pub fn play_on_cluster(
        &self,
        cluster: Cluster,
        workload: &mut dyn Workload,
        watching: Watching<'_>,
    ) -> Result<RunOutput, RunError> {
        self.play_on(cluster, self.assemble()?, workload, watching)
    }

    /// Plays the run on machines that are given, with a policy that was built elsewhere; the name is only a
    /// label then.
    pub fn play_on(
        &self,
        cluster: Cluster,
        mut assembled: Assembled,
        workload: &mut dyn Workload,
        (journal, progress): Watching<'_>,
    ) -> Result<RunOutput, RunError> {
        let settings = self.settings_for(cluster, &mut assembled);
        let names: Vec<String> =
            workload.functions().iter().map(|function| function.name.clone()).collect();
        let mut sink = Everyone {
            metrics: RunMetrics::new(Timestamp::ZERO + self.scenario.warm_up),
            journal,
            progress,
            ended: 0,
        };
        sink.functions(FunctionId(0), workload.functions());
        let seed = Seed::new(self.seed);
        let ticks = assembled.tick.take().map(|policy| {
            let safeguards = std::mem::take(&mut assembled.tick_safeguards);
            ControlLoop::new(policy, safeguards)
        });
        let control = self.call_loop(assembled)?;
        let mut simulator = Simulator::new(settings, workload, control, &mut sink, seed);
        match ticks {
            None => simulator.run_to_end(),
            Some(control) => run_with_ticks(&mut simulator, control, self.scenario.tick)?,
        }
        let (ledger, events) = (simulator.ledger(), simulator.events());
        drop(simulator);
        if !ledger.balances() {
            return Err(RunError::Unbalanced(ledger));
        }
        let label = self.label();
        let summary = sink.metrics.summary(&label);
        let detail = sink.metrics.detail(&label, &names);
        let costs = sink.metrics.function_costs();
        Ok(RunOutput { summary, detail, costs, cluster, ledger, events })
    }

    /// Plays the run on machines that are given until its last call, or until `stop` says that what came of it is
    /// known. Records go to `sink` alone; ticks are left out. With a policy of the caller's `own`, the name is only
    /// a label.
    pub fn play_until(
        &self,
        own: Option<Assembled>,
        cluster: Cluster,
        workload: &mut dyn Workload,
        sink: &mut dyn TelemetrySink,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), RunError> {
        let mut assembled = own.map_or_else(|| self.assemble(), Ok)?;
        let settings = self.settings_for(cluster, &mut assembled);
        sink.functions(FunctionId(0), workload.functions());
        let control = self.call_loop(assembled)?;
        let seed = Seed::new(self.seed);
        let mut simulator = Simulator::new(settings, workload, control, sink, seed);
        while simulator.run_some(1 << 12) {
            if stop() {
                return Ok(());
            }
        }
        let ledger = simulator.ledger();
        if ledger.balances() { Ok(()) } else { Err(RunError::Unbalanced(ledger)) }
    }

    /// The simulator's settings for a policy on `cluster`.
    fn settings_for(&self, cluster: Cluster, assembled: &mut Assembled) -> Settings {
        let mut settings = simulator_settings(self.scenario, cluster);
        settings.foresight = assembled.foresight;
        settings.cpu_weights = assembled.by_weight;
        if assembled.ticks_resize_only && settings.sizes_calls() {
            assembled.tick = None;
        }
        settings.keep_steps = self.keep_steps;
        let Needs { presence } = assembled.needs();
        settings.tells_presence = presence;
        settings.prewarm_evicts = !presence;
        settings
    }

    /// The loop that sizes calls, with the scenario's safeguards around the policy's own.
    fn call_loop(&self, mut assembled: Assembled) -> Result<CallLoop, RunError> {
        let rules = self.scenario.call_safeguards.iter().filter_map(|name| call_safeguard(name));
        assembled.call_safeguards.extend(rules);
        let control = assembled.call_loop();
        Ok(match self.shadow()? {
            Some(shadow) => control.with_shadow(shadow.call),
            None => control,
        })
    }

    /// What tells this run from others.
    pub fn label(&self) -> RunLabel {
        RunLabel { policy: label(self.policy).to_owned(), load: self.load, seed: self.seed }
    }

    fn assemble(&self) -> Result<Assembled, RunError> {
        self.assemble_policy(self.policy)
    }

    fn shadow(&self) -> Result<Option<Assembled>, RunError> {
        self.scenario.shadow.as_deref().map(|name| self.assemble_policy(name)).transpose()
    }

    fn assemble_policy(&self, name: &str) -> Result<Assembled, RunError> {
        let seed = Seed::new(self.seed).stream("policy");
        Ok(assemble(name, &self.scenario.policy_settings, seed)?)
    }
}

/// Lets ticks happen every `every` until the last call has ended.
fn run_with_ticks(
    simulator: &mut Simulator<'_>,
    mut control: ControlLoop,
    every: Duration,
) -> Result<(), PlatformError> {
    let mut at = Timestamp::ZERO;
    while !simulator.is_over() {
        at += every;
        simulator.advance_to(at)?;
        let tick = control.tick(at, simulator);
        simulator.sink().tick(&tick);
    }
    simulator.finish_intervals();
    Ok(())
}

/// Tells metrics, journal and progress.
struct Everyone<'a> {
    metrics: RunMetrics,
    journal: &'a mut dyn TelemetrySink,
    progress: &'a mut (dyn FnMut(u64) + Send),
    ended: u64,
}

impl TelemetrySink for Everyone<'_> {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        self.journal.functions(first, functions);
    }

    fn tick(&mut self, tick: &TickRecord) {
        self.metrics.tick(tick);
        self.journal.tick(tick);
    }

    fn call(&mut self, call: &CallRecord) {
        self.metrics.call(call);
        self.journal.call(call);
        self.ended += 1;
        if self.ended.is_multiple_of(1 << 14) {
            (self.progress)(self.ended);
        }
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        self.metrics.interval(interval);
        self.journal.interval(interval);
    }
}

/// A sink for runs that keep no journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl TelemetrySink for NoJournal {}
