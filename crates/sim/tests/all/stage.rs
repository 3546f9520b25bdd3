//! Small actors for the tests: scripted arrivals, a scripted control, a sink that keeps everything.

use windfall_core::{
    Allocation, Arrival, CallClose, CallControl, CallDecision, CallDemand, CallHints, CallOutcome,
    CallPlan, CallRecord, CallSafeguardChain, CallView, ColdStart, CpuCeiling, Duration,
    FunctionId, FunctionProfile, GrantChange, IntervalRecord, Look, Mebibytes, MilliCpu, NodeId,
    RunningCall, Seed, Start, TelemetrySink, Timestamp, Trigger, Workload,
};
use windfall_sim::{Settings, Simulator};

/// Arrivals from a list.
pub(crate) struct Script {
    pub(crate) functions: Vec<FunctionProfile>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) next: usize,
}

impl Script {
    pub(crate) fn new(functions: Vec<FunctionProfile>, mut arrivals: Vec<Arrival>) -> Self {
        arrivals.sort_by_key(|arrival| arrival.at);
        Self { functions, arrivals, next: 0 }
    }
}

impl Workload for Script {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn horizon(&self) -> Timestamp {
        self.arrivals.last().map_or(Timestamp::ZERO, |arrival| arrival.at)
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        self.next += 1;
        self.arrivals.get(self.next - 1).copied()
    }

    fn restart(&mut self, _seed: Seed) {
        self.next = 0;
    }
}

/// A function that reserves `cpu` millicores and `memory` MiB, with a cold start of exactly one second.
pub(crate) fn function(cpu: u32, memory: u32) -> FunctionProfile {
    FunctionProfile {
        name: "f".into(),
        application: "a".into(),
        trigger: Trigger::Http,
        runtime: "rust".into(),
        reservation: Allocation::new(cpu, memory),
        cold_start: ColdStart { median: Duration::from_secs(1), sigma: 0.0 },
    }
}

/// `core_seconds` of work on at most `cores`, using 10 MiB.
pub(crate) fn work(core_seconds: f64, cores: f64) -> CallDemand {
    CallDemand {
        work: (core_seconds * 1e12) as u64,
        fixed: Duration::ZERO,
        parallelism: MilliCpu::from_cores(cores).expect("a positive amount"),
        memory_base: Mebibytes::new(10),
        memory_peak: Mebibytes::new(10),
        rise: Duration::ZERO,
        jumps: false,
        cycles: 1,
        shape: 0,
        input: None,
    }
}

pub(crate) fn at(seconds: f64, function: u32, demand: CallDemand) -> Arrival {
    Arrival {
        at: Timestamp::ZERO + Duration::from_secs_f64(seconds),
        function: FunctionId(function),
        demand,
    }
}

/// What a look answers: the new grant and when to look again.
pub(crate) type OnLook = Box<dyn FnMut(&RunningCall) -> (Allocation, Option<Duration>) + Send>;

/// A control that grants what the test sets.
pub(crate) struct Scripted {
    /// The grant at dispatch; the reservation if nothing is said.
    pub(crate) grant: Option<Allocation>,
    /// The most CPU that calls may use, where the platform distinguishes it from the grant.
    pub(crate) ceiling: CpuCeiling,
    /// When to look first.
    pub(crate) look_after: Option<Duration>,
    pub(crate) on_look: OnLook,
    pub(crate) outcomes: Vec<CallOutcome>,
    /// Whether what a look takes from the reservation is held back for the call.
    pub(crate) holds_back: bool,
    /// Whether it says that it need not be asked.
    pub(crate) leaves_calls_alone: bool,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            grant: None,
            ceiling: CpuCeiling::AtGrant,
            look_after: None,
            on_look: Box::new(|running| (running.grant, None)),
            outcomes: Vec::new(),
            holds_back: false,
            leaves_calls_alone: false,
        }
    }
}

impl CallControl for Scripted {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let grant = self.grant.unwrap_or(call.reservation);
        let mut decision = CallDecision::exactly(grant, "script");
        decision.look_after = self.look_after;
        if self.ceiling == CpuCeiling::Unlimited {
            decision.cpu_ceiling = CpuCeiling::Unlimited;
        }
        CallSafeguardChain::default().at_dispatch(call, &decision).expect("an allocation")
    }

    fn start(&mut self, _: &CallView, plan: &CallPlan, _: NodeId, room: Allocation) -> Start {
        let (cpu_ceiling, look_after) = (plan.cpu_ceiling(), plan.look_after());
        Start { grant: plan.grant().min(room), cpu_ceiling, look_after }
    }

    fn look(&mut self, running: &RunningCall, _: &mut Vec<GrantChange>) -> Look {
        let (grant, look_after) = (self.on_look)(running);
        let taken = running.reservation.cpu.saturating_sub(grant.cpu);
        let held_back = if self.holds_back { taken } else { MilliCpu::ZERO };
        let cpu_ceiling = self.ceiling;
        Look { grant, cpu_ceiling, look_after, held_back, amendments: Vec::new(), why: "script" }
    }

    fn close(&mut self, end: CallClose<'_>, _: &mut Vec<GrantChange>) {
        if let CallClose::Measured(outcome) = end {
            self.outcomes.push(outcome.clone());
        }
    }

    fn hints(&self) -> CallHints {
        CallHints { leaves_calls_alone: self.leaves_calls_alone, ..CallHints::default() }
    }
}

/// Everything that happened.
#[derive(Default)]
pub(crate) struct Everything {
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) intervals: Vec<IntervalRecord>,
}

impl TelemetrySink for Everything {
    fn call(&mut self, call: &CallRecord) {
        self.calls.push(call.clone());
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        self.intervals.push(*interval);
    }
}

/// Plays `script` to the end and returns what happened, calls in order of arrival.
pub(crate) fn play(settings: Settings, script: Script, control: Scripted) -> Everything {
    let mut seen = Everything::default();
    let mut simulator = Simulator::new(settings, script, control, &mut seen, Seed::new(1));
    simulator.run_to_end();
    let ledger = simulator.ledger();
    assert!(ledger.balances(), "{ledger:?}");
    assert_eq!(ledger.waiting + ledger.running, 0);
    drop(simulator);
    seen.calls.sort_by_key(|call| call.id);
    seen
}

/// Seconds since the run began.
pub(crate) fn secs(at: Timestamp) -> f64 {
    at.as_secs_f64()
}
