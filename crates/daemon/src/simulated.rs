//! The simulator in real time: what the daemon manages where the machine permits nothing else, and what its tests run on.
//!
//! The daemon's clock is the simulator's clock. Between two ticks [`ManagedPlatform::collect`] lets simulated time catch
//! up with it, so calls end about when they would.

mod endless;
mod rerun;

use std::sync::{Arc, Mutex, PoisonError};

use windfall_core::{
    CallRecord, Capabilities, Duration, Episodic, FunctionProfile, Observation, Plan, Platform,
    PlatformError, Receipt, Seed, TelemetrySink, Timestamp, Workload,
};
use windfall_scenario::run::{reserved, simulator_settings};
use windfall_scenario::{Scenario, size_cluster};
use windfall_sim::Simulator;
use windfall_trace::TraceError;

use crate::managed_platform::{Invoker, ManagedPlatform, NodeBar, PlatformKind};
use crate::supervisor::PlatformParts;
use endless::Endless;
use rerun::{Memory, Rerun};

/// Which world is simulated.
#[derive(Clone, Debug)]
pub struct SimulatedWorld {
    /// Calls and platform; its first load sizes the cluster.
    pub scenario: Scenario,
    /// Everything random is drawn from it.
    pub seed: u64,
    /// Simulated seconds per second.
    pub speed: f64,
}

/// The simulator, paced by the caller's clock.
pub struct SimulatedPlatform {
    simulator: Simulator<'static>,
    ended: Arc<Mutex<Vec<CallRecord>>>,
    rerun: Arc<Rerun>,
    speed: f64,
    /// Millicore-nanoseconds used on each node by calls that have ended.
    used_by_ended: Vec<u64>,
    /// Millicore-nanoseconds used on each node when it was last asked, and when that was.
    used_before: Vec<u64>,
    asked_at: Timestamp,
}

/// Collects the calls that have ended.
struct Tap(Arc<Mutex<Vec<CallRecord>>>);

impl TelemetrySink for Tap {
    fn call(&mut self, call: &CallRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
    }
}

impl SimulatedPlatform {
    /// A cluster at rest whose calls are sized by the control among `parts`.
    pub fn start(world: &SimulatedWorld, parts: PlatformParts) -> Result<Self, TraceError> {
        let PlatformParts { calls: control, needs, by_weight } = parts;
        let seed = Seed::new(world.seed);
        let scenario = &world.scenario;
        let mut workload = scenario.trace.open(seed)?;
        let reserved = reserved(workload.as_mut());
        workload.restart(seed);
        let load = scenario.loads.first().copied().unwrap_or(0.8);
        let cluster = size_cluster(&reserved, load, scenario.node);
        let mut settings = simulator_settings(scenario, cluster);
        settings.keep_steps = true;
        settings.cpu_weights = by_weight;
        settings.tells_presence = needs.presence;
        settings.prewarm_evicts = !needs.presence;
        let memory = Arc::new(Mutex::new(Memory::default()));
        let workload = Endless::new(workload, seed, Arc::clone(&memory));
        let rerun = Arc::new(Rerun::new(workload.functions().to_vec(), memory));
        let ended = Arc::new(Mutex::new(Vec::new()));
        let nodes = settings.cluster.nodes as usize;
        let simulator = Simulator::new(settings, workload, control, Tap(Arc::clone(&ended)), seed);
        Ok(Self {
            simulator,
            ended,
            rerun,
            speed: world.speed,
            used_by_ended: vec![0; nodes],
            used_before: vec![0; nodes],
            asked_at: Timestamp::ZERO,
        })
    }

    /// The simulated time at `now`.
    fn simulated(&self, now: Timestamp) -> Timestamp {
        if self.speed == 1.0 {
            return now;
        }
        Timestamp::from_nanos((now.as_nanos() as f64 * self.speed) as u64)
    }

    /// Lets time pass until `now`; a clock that stands still or steps back changes nothing.
    fn advance(&mut self, now: Timestamp) -> Result<(), PlatformError> {
        let at = self.simulated(now).max(self.simulator.now());
        self.simulator.advance_to(at)
    }
}

impl Platform for SimulatedPlatform {
    fn functions(&self) -> &[FunctionProfile] {
        self.simulator.functions()
    }

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.simulator.capabilities();
        // A change that takes no time is still reported only with the next picture.
        let settles_within = capabilities.settles_within.max(Duration::from_secs(5));
        Capabilities { settles_within, ..capabilities }
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        self.advance(now)?;
        let at = self.simulator.now();
        let seen = self.simulator.observe(at)?;
        let age = seen.age();
        let taken_at = Timestamp::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        Ok(Observation { now, taken_at, ..seen })
    }

    fn submit(&mut self, _now: Timestamp, plan: &Plan) -> Receipt {
        let at = self.simulator.now();
        self.simulator.submit(at, plan)
    }
}

impl ManagedPlatform for SimulatedPlatform {
    fn kind(&self) -> PlatformKind {
        PlatformKind::Simulated
    }

    fn collect(&mut self, now: Timestamp, calls: &mut Vec<CallRecord>) {
        // Going back in time is the only error, and `advance` never asks for it.
        let _ = self.advance(now);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for call in ended.iter() {
            if let Some(used) = self.used_by_ended.get_mut(call.node.index()) {
                *used += call.cpu_used;
            }
        }
        calls.append(&mut ended);
    }

    fn nodes(&mut self, now: Timestamp) -> Vec<NodeBar> {
        let nanos = self.simulated(now).since(self.simulated(self.asked_at)).as_nanos_f64();
        self.asked_at = now;
        let levels = self.simulator.node_levels();
        let parts = levels.iter().zip(&self.used_by_ended).zip(&mut self.used_before);
        parts
            .map(|((level, ended), before)| {
                let used = ended + level.used_by_running;
                let since = used.saturating_sub(std::mem::replace(before, used));
                NodeBar {
                    is_up: level.is_up,
                    capacity_cores: level.capacity.cpu.cores(),
                    reserved_cores: level.reserved.cores(),
                    granted_cores: level.granted.cpu.cores(),
                    used_cores: since as f64 * 1e-3 / nanos.max(1.0),
                    harvested_cores: level.harvested.cores(),
                    lent_cores: level.lent.cores(),
                    held_back_cores: level.held_back.cores(),
                    granted_mib: level.granted.memory.mib(),
                    capacity_mib: level.capacity.memory.mib(),
                    calls: level.calls,
                }
            })
            .collect()
    }

    fn invoker(&self) -> Option<Arc<dyn Invoker>> {
        Some(Arc::clone(&self.rerun) as Arc<dyn Invoker>)
    }
}
