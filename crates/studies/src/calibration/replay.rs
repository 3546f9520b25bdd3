//! Recorded calls once more, on a simulated node.

use windfall_core::{
    Allocation, Arrival, CallRecord, Duration, FunctionId, FunctionProfile, Seed, TelemetrySink,
    Timestamp, Workload,
};
use windfall_scenario::{Run, RunError, Scenario};
use windfall_sim::{Cluster, CpuModel};

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

/// Replays `calls` under `policy` on one simulated node with the kernel's CPU; the records in the order of the calls,
/// nothing where a call did not end.
pub fn replay(
    models: &[(FunctionProfile, FunctionModel)],
    calls: &[ReplayCall],
    node: Allocation,
    policy: &str,
    seed: u64,
) -> Result<Vec<Option<CallRecord>>, RunError> {
    let mut scenario = Scenario {
        name: "replay".into(),
        cpu: CpuModel::kernel(),
        node,
        call_max_cores: node.cpu.cores(),
        ..Scenario::default()
    };
    // A change is written to the kernel within microseconds.
    scenario.platform.actuation_delay = Duration::ZERO;
    let run = Run { scenario: &scenario, policy, load: 1.0, seed, keep_steps: false };
    let cluster = Cluster { nodes: 1, node, over_commit_cpu: 1.0, over_commit_memory: 1.0 };
    let mut recorded = Recorded::new(models, calls);
    let mut kept = Kept::default();
    run.play_on_cluster(cluster, &mut recorded, (&mut kept, &mut |_| {}))?;
    let place = |record: &CallRecord| calls.iter().position(|call| call.at == record.arrived_at);
    let mut found = vec![None; calls.len()];
    for record in kept.0 {
        if let Some(place) = place(&record) {
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
