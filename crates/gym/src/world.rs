//! Functions on shared nodes, tick by tick.
//!
//! ```text
//!   decision ─► safeguards (limits, capacity) ─► plan ─► simulator runs 5 s ─► observation and service level
//! ```
//!
//! Instances serve one call at a time and hold their size from start to stop. A node may promise more CPU than
//! it has (twice as much by default); then shares decide, and neighbours slow each other down. Memory is
//! never promised twice. A change of size takes a second, a new instance its cold start.

use windfall_control::ControlLoop;
use windfall_control::RestoreReservations;
use windfall_control::safeguards::{Bound, Bounds, Capacity, Limits};
use windfall_core::{
    Allocation, CallClose, CallControl, CallDecision, CallPlan, CallSafeguardChain, CallView,
    CpuCeiling, Decision, Duration, Episodic, FunctionId, GrantChange, Look, MilliCpu, NodeId,
    Observation, Platform, RunningCall, SafeguardChain, Seed, Setting, Start, Target, Timestamp,
};
use windfall_sim::{Placement, ScaleOut, Settings, Simulator};

use crate::meter::{MeterSink, ServiceLevel, Tally};
use crate::moves::{Deployment, Range};
use crate::profile::ServiceProfile;
use crate::reward::Earned;
use crate::traffic::{FunctionSetup, Shared, Traffic};

/// Calls per second of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// In the last tick.
    pub now: f64,
    /// In the tick before it.
    pub before: f64,
}

/// What a world is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorldSettings {
    /// Time between decisions.
    pub tick: Duration,
    /// Number of nodes.
    pub nodes: u32,
    /// What each has.
    pub node: Allocation,
    /// How much CPU a node may promise for each core it has.
    pub over_commit: f64,
    /// How long a change of size takes.
    pub actuation_delay: Duration,
    /// Calls of one function that may wait; more are turned away.
    pub queue_limit: u32,
    /// Least and most of each knob.
    pub range: Range,
    /// Instances at the beginning.
    pub first_instances: u32,
    /// Ticks that pass before the first decision.
    pub warm_up: u32,
    /// Whether an observation lists single calls, which few policies ask for.
    pub tells_presence: bool,
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            tick: Duration::from_secs(5),
            nodes: 1,
            // Eight cores as in the course.
            node: Allocation::new(8000, 16_384),
            over_commit: 2.0,
            actuation_delay: Duration::from_secs(1),
            queue_limit: 200,
            range: Range::default(),
            first_instances: 2,
            warm_up: 2,
            tells_presence: false,
        }
    }
}

impl WorldSettings {
    /// As many nodes as `setups` need at a mean load of `load`, each no larger than it must be: six cores of
    /// work at a load of 0.5 are two nodes of six cores.
    pub fn sized_for(self, setups: &[FunctionSetup], load: f64) -> Self {
        let cores = setups.iter().map(FunctionSetup::mean_cores).sum::<f64>() / load;
        let nodes = (cores / self.node.cpu.cores()).ceil().max(1.0);
        let each = (1000.0 * cores / nodes).ceil().max(1000.0) as u32;
        let node = Allocation::new(each.min(self.node.cpu.get()), self.node.memory.get());
        Self { nodes: nodes as u32, node, ..self }
    }

    fn simulated(&self) -> Settings {
        let mut settings = Settings::new(self.nodes, self.node);
        settings.cluster.over_commit_cpu = self.over_commit;
        settings.ceiling = Allocation::new(self.range.cpu.1, self.range.memory.1);
        settings.placement = Placement::LeastLoaded;
        settings.scale_out = ScaleOut::OnTick;
        settings.keep_alive = Duration::MAX;
        settings.queue_limit = Some(self.queue_limit);
        settings.actuation_delay = self.actuation_delay;
        settings.tells_presence = self.tells_presence;
        // Nobody reads intervals here.
        settings.interval = Duration::from_mins(100_000);
        settings
    }

    fn safeguards(&self) -> SafeguardChain {
        let amounts = |(least, most)| (Bound::Amount(least), Bound::Amount(most));
        let bounds = Bounds {
            // A function that has left keeps nothing.
            instances: (0, self.range.instances.1),
            cpu: amounts(self.range.cpu),
            memory: amounts(self.range.memory),
            concurrency: (1, 1),
        };
        let limits = Limits { bounds, ..Limits::default() };
        SafeguardChain::new(vec![Box::new(limits), Box::new(Capacity::default())])
    }
}

/// A world with its functions.
pub struct World {
    settings: WorldSettings,
    shared: Shared,
    simulator: Simulator<'static>,
    control: ControlLoop,
    seen: Observation,
    service_level: Vec<ServiceLevel>,
    deployments: Vec<Deployment>,
    /// Which way the number of instances went in the last tick: -1, 0 or 1.
    turned: Vec<i32>,
    is_reversal: Vec<bool>,
    rates: Vec<Rates>,
    memory_peaks: Vec<f64>,
    /// The most memory that a call of each function was seen with.
    memory_highest: Vec<f64>,
    core_seconds: Vec<f64>,
    amendments: u64,
    ticks: u64,
}

impl World {
    /// A world that has warmed up: every function at its reservation, with its first instances.
    ///
    /// # Panics
    ///
    /// Never: the simulator refuses only to go back in time.
    pub fn new(settings: WorldSettings, setups: Vec<FunctionSetup>, seed: Seed) -> Self {
        let count = setups.len();
        let deployments: Vec<Deployment> =
            setups.iter().map(|setup| first_deployment(&settings, setup)).collect();
        let shared = Shared::new(setups);
        let traffic = Traffic::new(shared.clone(), Timestamp::MAX);
        let sink = MeterSink(shared.clone());
        let simulator = Simulator::new(settings.simulated(), traffic, SizedByTicks, sink, seed);
        let control = ControlLoop::new(Box::new(RestoreReservations), settings.safeguards());
        let mut world = Self {
            settings,
            shared,
            simulator,
            control,
            seen: Observation::default(),
            service_level: vec![ServiceLevel { preserved: 1.0, ..ServiceLevel::default() }; count],
            deployments,
            turned: vec![0; count],
            is_reversal: vec![false; count],
            rates: vec![Rates::default(); count],
            memory_peaks: vec![0.0; count],
            memory_highest: vec![0.0; count],
            core_seconds: vec![0.0; count],
            amendments: 0,
            ticks: 0,
        };
        world.look();
        for _ in 0..settings.warm_up {
            world.act(&Decision::default());
        }
        world.turned.fill(0);
        world.core_seconds.fill(0.0);
        world.amendments = 0;
        world.ticks = 0;
        world
    }

    /// Carries out `decision` through the safeguards and lets one tick pass. Functions without a target
    /// stay as they are.
    pub fn act(&mut self, decision: &Decision) {
        let full = self.completed(decision);
        let seen = std::mem::take(&mut self.seen);
        let tick = self.control.carry_out(&mut self.simulator, seen, full);
        self.amendments += tick.plan.amendments().len() as u64;
        let mut before = std::mem::take(&mut self.deployments);
        self.deployments.clone_from(&before);
        for target in tick.accepted() {
            let deployment = &mut self.deployments[target.function.index()];
            deployment.instances =
                target.instances.value().map_or(deployment.instances, |count| count.get());
            deployment.cpu = target.cpu.value().map_or(deployment.cpu, |cpu| cpu.get());
            deployment.memory =
                target.memory.value().map_or(deployment.memory, |memory| memory.get());
        }
        for (index, old) in before.drain(..).enumerate() {
            let went = self.deployments[index].instances.cmp(&old.instances) as i32;
            self.is_reversal[index] = went * self.turned[index] < 0;
            self.turned[index] = went;
        }
        self.ticks += 1;
        let until = self.simulator.now() + self.settings.tick;
        self.simulator.advance_to(until).expect("a tick goes forward");
        self.look();
    }

    /// The decision with a number of instances for every function: what could not be stopped in one tick
    /// because it was busy is stopped in the next.
    fn completed(&self, decision: &Decision) -> Decision {
        let mut targets: Vec<Target> = (0u32..)
            .zip(&self.deployments)
            .map(|(index, deployment)| Target {
                instances: Setting::Set(f64::from(deployment.instances)),
                ..Target::keep(FunctionId(index))
            })
            .collect();
        for proposed in &decision.targets {
            if let Some(target) = targets.get_mut(proposed.function.index()) {
                let instances = match proposed.instances {
                    Setting::Keep => target.instances,
                    set @ Setting::Set(_) => set,
                };
                *target = Target { instances, keep_alive: Setting::Keep, ..proposed.clone() };
            }
        }
        Decision { targets, reason: decision.reason.clone() }
    }

    fn look(&mut self) {
        let now = self.simulator.now();
        self.seen = self.simulator.observe(now).expect("the simulator answers about its own time");
        let window = self.seen.window.as_secs_f64();
        let mut board = self.shared.board();
        for (index, view) in self.seen.functions.iter().enumerate() {
            self.service_level[index] = board.meter.take(index, self.seen.now);
            let rate = if window > 0.0 { f64::from(view.arrivals) / window } else { 0.0 };
            self.rates[index] = Rates { now: rate, before: self.rates[index].now };
            if view.memory_peak_mib > 0.0 {
                self.memory_peaks[index] = view.memory_peak_mib;
                self.memory_highest[index] = self.memory_highest[index].max(view.memory_peak_mib);
            }
            let standing = f64::from((view.ready + view.starting).get());
            self.core_seconds[index] += standing * view.allocation.cpu.cores() * window;
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &WorldSettings {
        &self.settings
    }

    /// Number of functions, absent ones included.
    pub fn count(&self) -> usize {
        self.deployments.len()
    }

    /// What can be seen now.
    pub fn seen(&self) -> &Observation {
        &self.seen
    }

    /// The service level of `function` in the last tick.
    pub fn service_level(&self, function: usize) -> ServiceLevel {
        self.service_level[function]
    }

    /// What `function` is to have.
    pub fn deployment(&self, function: usize) -> Deployment {
        self.deployments[function]
    }

    /// Which way the number of instances went in the last tick.
    pub fn turned(&self, function: usize) -> i32 {
        self.turned[function]
    }

    /// How often `function` was called lately.
    pub fn rates(&self, function: usize) -> Rates {
        self.rates[function]
    }

    /// Instances of `function` that stand or start.
    pub fn standing(&self, function: usize) -> u32 {
        let view = &self.seen.functions[function];
        (view.ready + view.starting).get()
    }

    /// Less memory than this nobody should give `function`: a tenth above the most that a call was seen with,
    /// 137 MiB after one of 125. A call that finds less is killed, which is no price to learn by paying it.
    pub fn memory_floor(&self, function: usize) -> f64 {
        1.1 * self.memory_highest[function]
    }

    /// What the last tick of `function` is to be paid for.
    pub fn earned(&self, function: usize) -> Earned {
        let view = &self.seen.functions[function];
        let standing = self.standing(function);
        let held = f64::from(standing) * view.allocation.cpu.cores();
        let share = |used: f64, of: f64| if of > 0.0 { (used / of).min(1.0) } else { 0.0 };
        let memory = view.allocation.memory.mib();
        let memory_used = if standing > 0 { self.memory_peaks[function] } else { 0.0 };
        Earned {
            preserved: self.service_level[function].preserved,
            cpu_utilisation: share(view.cpu_used_cores, held),
            memory_utilisation: share(memory_used, memory),
            is_without_instances: standing == 0 && (view.arrivals > 0 || view.queued > 0),
            is_reversal: self.is_reversal[function],
        }
    }

    /// CPU and memory that may still be promised, millicores and MiB.
    pub fn room(&self) -> (i64, i64) {
        let cluster = &self.seen.cluster;
        let mut room = ((cluster.capacity_cores * 1000.0) as i64, cluster.capacity_mib as i64);
        for deployment in &self.deployments {
            room.0 -= i64::from(deployment.instances) * i64::from(deployment.cpu);
            room.1 -= i64::from(deployment.instances) * i64::from(deployment.memory);
        }
        room
    }

    /// A function as it is set up. The future it knows is for the oracle alone.
    pub fn setup(&self, function: usize) -> FunctionSetup {
        self.shared.board().setups[function].clone()
    }

    /// Whether `function` is there.
    pub fn is_active(&self, function: usize) -> bool {
        self.shared.board().setups[function].is_active
    }

    /// A function joins: it is called from now on and gets its first instances.
    pub fn join(&mut self, function: usize) {
        self.change(function, |setup| setup.is_active = true);
        self.deployments[function] = first_deployment(&self.settings, &self.setup(function));
    }

    /// A function leaves: nobody calls it any more and its instances go when they are idle.
    pub fn leave(&mut self, function: usize) {
        self.change(function, |setup| setup.is_active = false);
        self.deployments[function].instances = 0;
    }

    /// A function is deployed anew: other code, other load.
    pub fn replace(&mut self, function: usize, profile: ServiceProfile, rate: f64) {
        self.change(function, |setup| (setup.profile, setup.rate) = (profile, rate));
        self.shared.board().meter.set_objective(function, profile.slo_ms);
        self.memory_highest[function] = 0.0;
    }

    /// A function's load is multiplied.
    pub fn scale_load(&mut self, function: usize, factor: f64) {
        self.change(function, |setup| setup.rate *= factor);
    }

    fn change(&mut self, function: usize, change: impl FnOnce(&mut FunctionSetup)) {
        let mut board = self.shared.board();
        change(&mut board.setups[function]);
        board.changes += 1;
    }

    /// The objective of `function` is another one from now on.
    pub fn set_objective(&mut self, function: usize, slo_ms: f64) {
        self.shared.board().meter.set_objective(function, slo_ms);
    }

    /// From now on every latency is kept.
    pub fn keep_latencies(&mut self) {
        let mut board = self.shared.board();
        board.meter.keep();
        board.chain.forget();
    }

    /// End-to-end latencies of chains since latencies are kept, milliseconds.
    pub fn chain_latencies(&self) -> Vec<f32> {
        self.shared.board().chain.latencies_ms().to_vec()
    }

    /// The same, and stories that are not over yet at their age.
    pub fn chain_latencies_with_open(&self) -> Vec<f32> {
        let board = self.shared.board();
        let mut all = board.chain.latencies_ms().to_vec();
        all.extend(board.chain.ages_ms(self.seen.now));
        all
    }

    /// Latencies of `function` since they are kept.
    pub fn tally(&self, function: usize) -> Tally {
        self.shared.board().meter.tally(function, self.seen.now)
    }

    /// Core-seconds `function` has held since the warm-up.
    pub fn core_seconds(&self, function: usize) -> f64 {
        self.core_seconds[function]
    }

    /// Places where a safeguard stepped in since the warm-up.
    pub fn amendments(&self) -> u64 {
        self.amendments
    }

    /// Ticks since the warm-up.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }
}

fn first_deployment(settings: &WorldSettings, setup: &FunctionSetup) -> Deployment {
    let instances = if setup.is_active { settings.first_instances } else { 0 };
    let reservation = setup.profile.reservation();
    Deployment { instances, cpu: reservation.cpu.get(), memory: reservation.memory.get() }
}

/// Where instances are sized by ticks, the simulator never asks about a call.
struct SizedByTicks;

impl CallControl for SizedByTicks {
    fn size(&mut self, call: &CallView) -> CallPlan {
        CallSafeguardChain::default()
            .at_dispatch(call, &CallDecision::exactly(call.reservation, "sized by ticks"))
            .expect("an allocation is never nonsense")
    }

    fn start(&mut self, call: &CallView, _: &CallPlan, _: NodeId, _: Allocation) -> Start {
        Start { grant: call.reservation, cpu_ceiling: CpuCeiling::AtGrant, look_after: None }
    }

    fn look(&mut self, running: &RunningCall, _: &mut Vec<GrantChange>) -> Look {
        Look {
            grant: running.grant,
            cpu_ceiling: CpuCeiling::AtGrant,
            look_after: None,
            held_back: MilliCpu::ZERO,
            amendments: Vec::new(),
            why: "as it is",
        }
    }

    fn close(&mut self, _: CallClose<'_>, _: &mut Vec<GrantChange>) {}
}
