//! Recorded calls once more, on a simulated node.

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, Arrival, CallRecord, Duration, FunctionId, FunctionProfile, QueueOrder, Seed,
    TelemetrySink, Timestamp, Workload,
};
use windfall_scenario::{Run, RunError, Scenario};
use windfall_sim::{Cluster, CpuModel, KernelCpu};

use super::FunctionModel;

/// One call to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayCall {
    /// When it came. No two calls come at the same moment.
    pub at: Timestamp,
    /// Its function's place among the models.
    pub function: FunctionId,
    /// Its input size.
    pub input: Option<f32>,
}

/// What calls are replayed under.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayUnder<'a> {
    /// The policy.
    pub policy: &'a str,
    /// Its settings, if they are not the usual ones.
    pub settings: Option<&'a toml::Table>,
    /// Safeguards around its calls beside its own.
    pub call_safeguards: &'a [String],
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
    /// Which of the waiting calls starts first.
    pub order: QueueOrder,
    /// Whether short calls wait for a warm instance while they are on time.
    pub waits_for_warm: bool,
    /// Whether rounds of work and wait are followed one by one where calls compete, which matters on few cores.
    pub follows_rounds: bool,
    /// Draws what is random.
    pub seed: u64,
}

impl<'a> ReplayUnder<'a> {
    /// A policy as it is, first come first served, without over-commit.
    pub fn policy(policy: &'a str, seed: u64) -> Self {
        let (settings, order) = (None, QueueOrder::FirstCome);
        let (call_safeguards, over_commit, follows_rounds) = (&[][..], 1.0, false);
        Self {
            policy,
            settings,
            call_safeguards,
            over_commit,
            order,
            waits_for_warm: false,
            follows_rounds,
            seed,
        }
    }
}

/// Replays `calls` on one simulated node with the kernel's CPU; the records in the order of the calls, nothing where a
/// call did not end.
pub fn replay(
    models: &[(FunctionProfile, FunctionModel)],
    calls: &[ReplayCall],
    node: Allocation,
    under: &ReplayUnder<'_>,
) -> Result<Vec<Option<CallRecord>>, RunError> {
    let ReplayUnder { policy, seed, over_commit, follows_rounds, .. } = *under;
    let mut scenario = Scenario {
        name: "replay".into(),
        cpu: CpuModel::Kernel(KernelCpu { follows_rounds, ..KernelCpu::default() }),
        node,
        call_max_cores: node.cpu.cores(),
        over_commit_cpu: over_commit,
        call_safeguards: under.call_safeguards.to_vec(),
        ..Scenario::default()
    };
    scenario.platform.queue_order = under.order;
    scenario.platform.waits_for_warm = under.waits_for_warm;
    if let Some(settings) = under.settings {
        scenario.policy_settings.insert(policy.to_owned(), settings.clone());
    }
    // A change is written to the kernel within microseconds.
    scenario.platform.actuation_delay = Duration::ZERO;
    let run = Run { scenario: &scenario, policy, load: 1.0, seed, keep_steps: false };
    let cluster = Cluster { nodes: 1, node, over_commit_cpu: over_commit, over_commit_memory: 1.0 };
    let mut recorded = Recorded::new(models, calls);
    let mut kept = Kept::default();
    run.play_on_cluster(cluster, &mut recorded, (&mut kept, &mut |_| {}))?;
    let places: BTreeMap<Timestamp, usize> =
        calls.iter().enumerate().map(|(place, call)| (call.at, place)).collect();
    let mut found = vec![None; calls.len()];
    for record in kept.0 {
        if let Some(&place) = places.get(&record.arrived_at) {
            found[place] = Some(record);
        }
    }
    Ok(found)
}

/// The calls as a workload.
struct Recorded {
    functions: Vec<FunctionProfile>,
    arrivals: Vec<Arrival>,
    next: usize,
}

impl Recorded {
    fn new(models: &[(FunctionProfile, FunctionModel)], calls: &[ReplayCall]) -> Self {
        let arrival = |call: &ReplayCall| {
            let (_, model) = models.get(call.function.index())?;
            Some(Arrival { at: call.at, function: call.function, demand: model.demand(call.input) })
        };
        let mut arrivals: Vec<Arrival> = calls.iter().filter_map(arrival).collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        let functions = models.iter().map(|(profile, _)| profile.clone()).collect();
        Self { functions, arrivals, next: 0 }
    }
}

impl Workload for Recorded {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn horizon(&self) -> Timestamp {
        self.arrivals.last().map_or(Timestamp::ZERO, |last| last.at)
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.get(self.next).copied();
        self.next += 1;
        arrival
    }

    /// Recorded calls are the same for every seed.
    fn restart(&mut self, _seed: Seed) {
        self.next = 0;
    }
}

#[derive(Default)]
struct Kept(Vec<CallRecord>);

impl TelemetrySink for Kept {
    fn call(&mut self, call: &CallRecord) {
        self.0.push(call.clone());
    }
}
