//! Whether a node can take one more call where CPU is guaranteed by weight: not what is granted decides, but what the
//! running calls are expected to use together.
//!
//! ```text
//!   sum of means  +  z * sqrt(sum of variances)  <=  cores * over-commit          expected use fits
//!   sum of guarantees                            <=  cores * bound                nobody's guarantee is diluted further
//! ```
//!
//! With weights in proportion to reservations a call gets what it reserved whenever the demands of those that want to
//! run *now* fit the node, so the question is whose demand peaks together. Three calls that each use 2 cores half of the
//! time have means of 1 and variances of 1: with z = 1 they need 3 + sqrt(3) = 4.7 cores, where their reservations of 4
//! cores each would take 12. An empty node takes any call.
//!
//! The estimates are the policy's; four things are not:
//!
//! - A call without a usable estimate counts with its reservation.
//! - A function that was **harmed** counts with its reservation until it has recovered. A call is harmed if it ran more
//!   than 5 % longer than at its reservation because others had the CPU; a function, if more than 5 % of its last fifty or
//!   so calls were (three in a row); it has recovered below 1 %.
//! - The **caution**: `z` grows with every call that was harmed and shrinks with every one that was not, within a range, so
//!   that their share comes to what is allowed (`caution`).
//! - The **bound**: the guarantees on a node never add up to more than a declared multiple of its cores, whatever the
//!   policy expects. With a bound of 8 the worst case of a call is an eighth of its reservation.

mod caution;
mod machine_use;

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, CallClose, CallId, CallOutcome, CpuDemand, FunctionId, NodeId, NodeOffer,
    RunningCall, Timestamp,
};

use caution::Caution;
pub use caution::CautionSettings;
use machine_use::MachineUse;

/// Unless something else is said, a call was harmed if waiting for CPU made it longer by more than this share.
const HARM: f64 = 0.05;
/// What the last call counts in a function's share of harmed calls: fifty calls are remembered, roughly.
const NEWEST: f64 = 0.02;
/// Below this share of harmed calls a function has recovered.
const RECOVERED: f64 = 0.01;

/// What is expected of a node's running calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Predictor {
    /// The sum of what is expected of each call.
    #[default]
    Calls,
    /// Mean and standard deviations of what the whole node used of late.
    Machine {
        /// How many standard deviations.
        sigmas: f64,
    },
    /// The larger of the two.
    Larger {
        /// How many standard deviations.
        sigmas: f64,
    },
}

/// Settings of [`AdmissionBook`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionSettings {
    /// What is expected of running calls.
    pub predictor: Predictor,
    /// Standard deviations of the sum that are kept free.
    pub z: f64,
    /// The most CPU that may be guaranteed for each core.
    pub bound: f64,
    /// A call was harmed if waiting for CPU made it longer by more than this share of its run alone.
    pub harm_above: f64,
    /// Share of harmed calls above which a function counts with its reservation until it has recovered; 1 never does.
    pub harm_share: f64,
    /// How the deviations that are kept free follow the share of harmed calls; they stay as they are if nothing is said.
    pub caution: Option<CautionSettings>,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self {
            predictor: Predictor::Calls,
            z: 0.5,
            bound: 8.0,
            harm_above: HARM,
            harm_share: 0.05,
            caution: None,
        }
    }
}

/// What is kept of a running call.
#[derive(Clone, Copy, Debug)]
struct Entry {
    demand: CpuDemand,
    guarantee: f64,
    /// Core-seconds that looks have reported.
    reported: f64,
    /// Seconds by which CPU beyond its reservation has brought it forward.
    gained: f64,
    /// Whether it counts with its reservation whatever is expected of it.
    is_guarded: bool,
}

/// What runs on one node.
#[derive(Clone, Debug, Default)]
struct Node {
    calls: BTreeMap<CallId, Entry>,
    mean: f64,
    variance: f64,
    guaranteed: f64,
    machine: MachineUse,
}

impl Node {
    fn add(&mut self, demand: CpuDemand, sign: f64) {
        self.mean += sign * demand.mean_cores;
        self.variance += sign * demand.variance;
        // Sums of real numbers drift; what is empty holds exactly nothing.
        if self.calls.is_empty() {
            (self.mean, self.variance, self.guaranteed) = (0.0, 0.0, 0.0);
        }
    }
}

/// How a function's calls fared of late.
#[derive(Clone, Copy, Debug, Default)]
struct Harm {
    share: f64,
    is_guarded: bool,
}

/// All nodes, and the functions that were harmed.
#[derive(Clone, Debug, Default)]
pub struct AdmissionBook {
    settings: AdmissionSettings,
    nodes: Vec<Node>,
    /// Share of harmed calls of each function that had any, and whether it counts with its reservation.
    harmed: BTreeMap<FunctionId, Harm>,
    caution: Caution,
}

impl AdmissionBook {
    /// A book without any call.
    pub fn new(settings: AdmissionSettings) -> Self {
        Self { caution: Caution::new(settings.caution), settings, ..Self::default() }
    }

    /// Takes over what `before` counts, with this book's own settings. `before` counts nothing from then on.
    pub fn inherit(&mut self, before: &mut Self) {
        self.nodes = std::mem::take(&mut before.nodes);
        self.harmed = std::mem::take(&mut before.harmed);
    }

    /// How full the node would be with a call that is expected to use `demand`, if it may take it.
    pub fn admit(
        &self,
        offer: &NodeOffer,
        function: FunctionId,
        reservation: Allocation,
        demand: Option<CpuDemand>,
    ) -> Option<f64> {
        let demand = self.counted(function, reservation, demand).0;
        let AdmissionSettings { predictor, z, bound, .. } = self.settings;
        let z = z + self.caution.now();
        let empty = Node::default();
        let node = self.nodes.get(offer.node.index()).unwrap_or(&empty);
        let guaranteed = node.guaranteed + reservation.cpu.cores();
        if !node.calls.is_empty() && guaranteed > bound * offer.cores + 1e-9 {
            return None;
        }
        let calls = || {
            let deviation = (node.variance + demand.variance).max(0.0).sqrt();
            node.mean + demand.mean_cores + z * deviation
        };
        let machine = |sigmas: f64| node.machine.predicted(sigmas) + demand.mean_cores;
        let used = match predictor {
            Predictor::Calls => calls(),
            Predictor::Machine { sigmas } => machine(sigmas),
            Predictor::Larger { sigmas } => calls().max(machine(sigmas)),
        };
        let full = used / (offer.cores * offer.over_commit).max(1e-9);
        (full <= 1.0 || node.calls.is_empty()).then_some(full)
    }

    /// What counts for a call, and whether that is its reservation for its own good.
    fn counted(
        &self,
        function: FunctionId,
        reservation: Allocation,
        demand: Option<CpuDemand>,
    ) -> (CpuDemand, bool) {
        let reserved = CpuDemand::constant(reservation.cpu.cores());
        let is_guarded = self.is_guarded(function);
        (demand.filter(|demand| !is_guarded && demand.is_valid()).unwrap_or(reserved), is_guarded)
    }

    fn node(&mut self, node: NodeId) -> &mut Node {
        if node.index() >= self.nodes.len() {
            self.nodes.resize_with(node.index() + 1, Node::default);
        }
        &mut self.nodes[node.index()]
    }

    /// A call starts.
    pub fn start(&mut self, start: StartedCall) {
        let StartedCall { node, call, function, reservation, demand, now } = start;
        let (demand, is_guarded) = self.counted(function, reservation, demand);
        let guarantee = reservation.cpu.cores();
        let node = self.node(node);
        node.calls
            .insert(call, Entry { demand, guarantee, reported: 0.0, gained: 0.0, is_guarded });
        node.guaranteed += guarantee;
        node.machine.start(now, guarantee);
        node.add(demand, 1.0);
    }

    /// A look at a running call: what it used, and what is expected of it from now on.
    pub fn look(&mut self, running: &RunningCall, demand: Option<CpuDemand>) {
        let node = self.node(running.node);
        let Some(entry) = node.calls.get_mut(&running.id) else { return };
        if !running.sensed.is_lost() {
            let used = running.sensed.cpu_used_cores * running.sensed.window.as_secs_f64();
            entry.reported += used;
            let beyond = running.sensed.cpu_used_cores / entry.guarantee.max(1e-3) - 1.0;
            entry.gained += beyond.max(0.0) * running.sensed.window.as_secs_f64();
            node.machine.used(running.now, used);
        }
        let Some(demand) = demand.filter(|demand| !entry.is_guarded && demand.is_valid()) else {
            return;
        };
        let before = std::mem::replace(&mut entry.demand, demand);
        node.add(before, -1.0);
        node.add(demand, 1.0);
    }

    /// A call is gone.
    pub fn end(&mut self, end: &CallClose<'_>) {
        let node = self.node(end.node());
        let Some(entry) = node.calls.remove(&end.call()) else { return };
        node.guaranteed -= entry.guarantee;
        node.add(entry.demand, -1.0);
        if let CallClose::Measured(outcome) = end {
            let used = outcome.cpu_mean_cores * outcome.run().as_secs_f64();
            node.machine.used(outcome.ended_at, (used - entry.reported).max(0.0));
            // What a call gained beyond its reservation makes up for what it lost.
            self.caution.note(self.is_harmed(outcome, entry.gained));
            self.note_harm(outcome);
        }
    }

    fn note_harm(&mut self, outcome: &CallOutcome) {
        let was_harmed = self.is_harmed(outcome, 0.0);
        if !was_harmed && !self.harmed.contains_key(&outcome.function) {
            return;
        }
        let harm = self.harmed.entry(outcome.function).or_default();
        harm.share += NEWEST * (f64::from(was_harmed) - harm.share);
        harm.is_guarded = match harm.is_guarded {
            true => harm.share > RECOVERED,
            false => harm.share > self.settings.harm_share,
        };
        if !harm.is_guarded && harm.share < 1e-4 {
            self.harmed.remove(&outcome.function);
        }
    }

    /// Whether waiting for CPU made a call longer than at its reservation, after it had `gained` so many seconds.
    fn is_harmed(&self, outcome: &CallOutcome, gained: f64) -> bool {
        let lost = outcome.delayed.as_secs_f64() - gained;
        lost > self.settings.harm_above * (outcome.run().as_secs_f64() - lost).max(1e-9)
    }

    /// Guarantees of the calls on a node, cores.
    pub fn guaranteed(&self, node: NodeId) -> f64 {
        self.nodes.get(node.index()).map_or(0.0, |node| node.guaranteed)
    }

    /// Whether a function counts with its reservation because it was harmed.
    pub fn is_guarded(&self, function: FunctionId) -> bool {
        self.harmed.get(&function).is_some_and(|harm| harm.is_guarded)
    }

    /// Whether no call runs anywhere.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.calls.is_empty())
    }
}

/// A call that begins to count on a node.
#[derive(Clone, Copy, Debug)]
pub struct StartedCall {
    /// Where.
    pub node: NodeId,
    /// Which call.
    pub call: CallId,
    /// Of which function.
    pub function: FunctionId,
    /// What the user reserves.
    pub reservation: Allocation,
    /// What it is expected to use.
    pub demand: Option<CpuDemand>,
    /// When.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;
