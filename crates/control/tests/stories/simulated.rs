//! The same on the simulator, with its own faults: lost telemetry, lost nodes, full nodes, slow changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windfall_control::safeguards::{Limits, RateOfChange, StaleObservation};
use windfall_control::{CallLoop, ControlLoop};
use windfall_core::conformance::Audited;
use windfall_core::{
    Allocation, Arrival, CallDecision, CallDemand, CallPolicy, CallSafeguardChain, CallView,
    ColdStart, Duration, Episodic, FunctionId, FunctionProfile, Mebibytes, MilliCpu, Outcome,
    PlanId, PolicyError, SafeguardChain, Seed, TelemetrySink, Timestamp, Trigger, Workload,
};
use windfall_sim::{Faults, ScaleOut, Settings, Simulator};

use crate::dice::Dice;
use crate::flap_reference::{FlapReference, SharedFlap};
use crate::whims::Whims;

const STORIES: u64 = 200;
const TICK: Duration = Duration::from_secs(2);
const BUSY_TICKS: u64 = 20;

/// Calls of three functions, one every 700 ms in turn.
struct Calls {
    functions: Vec<FunctionProfile>,
    next: u64,
}

impl Calls {
    fn new() -> Self {
        let function = |id: u32| FunctionProfile {
            name: format!("function-{id}"),
            application: "story".to_owned(),
            trigger: Trigger::Http,
            runtime: "rust".to_owned(),
            reservation: Allocation::new(500 + 250 * id, 128 + 64 * id),
            cold_start: ColdStart { median: Duration::from_millis(300), sigma: 0.0 },
        };
        Self { functions: (0..3).map(function).collect(), next: 0 }
    }
}

impl Workload for Calls {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }
    fn horizon(&self) -> Timestamp {
        Timestamp::from_secs(60)
    }
    fn next_arrival(&mut self) -> Option<Arrival> {
        let at = Timestamp::ZERO + Duration::from_millis(700) * self.next;
        self.next += 1;
        let demand = CallDemand {
            work: 400_000_000_000,
            fixed: Duration::ZERO,
            parallelism: MilliCpu::new(1000),
            memory_base: Mebibytes::new(20),
            memory_peak: Mebibytes::new(20),
            rise: Duration::ZERO,
            jumps: false,
            cycles: 1,
            shape: 0,
            input: None,
        };
        let function = FunctionId((self.next % 3) as u32);
        (at <= self.horizon()).then_some(Arrival { at, function, demand })
    }
    fn restart(&mut self, _seed: Seed) {
        self.next = 0;
    }
}

/// Gives every call what its user reserves.
struct Reserved;

impl CallPolicy for Reserved {
    fn name(&self) -> &str {
        "reserved"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision::exactly(call.reservation, "as reserved"))
    }
}

struct NoSink;

impl TelemetrySink for NoSink {}

/// A tight cluster on which one thing or another goes wrong.
fn settings(dice: &mut Dice) -> Settings {
    let memory = 700 + dice.below(3000) as u32;
    let mut settings = Settings::new(1 + dice.below(2) as u32, Allocation::new(4000, memory));
    settings.scale_out = match dice.below(3) {
        0 => ScaleOut::PerCall,
        1 => ScaleOut::OnMiss,
        _ => ScaleOut::OnTick,
    };
    settings.concurrency = 1 + dice.below(3) as u32;
    settings.actuation_delay = Duration::from_millis(500 * dice.below(7));
    settings.faults = Faults {
        node_loss_every: dice.chance(30).then(|| Duration::from_secs(30)),
        node_away: Duration::from_secs(4),
        telemetry_loss: if dice.chance(50) { 0.3 } else { 0.0 },
        slow_actuation: 0.2,
    };
    settings
}

/// What was seen over all stories.
#[derive(Default)]
struct Tally {
    accepted: u64,
    not_whole: u64,
}

/// The usual rules, with a flap budget that the test can read.
fn guarded_by(flap: &SharedFlap) -> SafeguardChain {
    SafeguardChain::new(vec![
        Box::new(StaleObservation::default()),
        Box::new(Limits::default()),
        Box::new(RateOfChange::default()),
        Box::new(flap.clone()),
    ])
}

fn play(number: u64, tally: &mut Tally) {
    let mut dice = Dice::new(number);
    let settings = settings(&mut dice);
    let calls = CallLoop::new(Box::new(Reserved), CallSafeguardChain::default());
    let mut simulator = Simulator::new(settings, Calls::new(), calls, NoSink, Seed::new(number));
    let mut platform = Audited::new(&mut simulator);
    let (flap, mut reference) = (SharedFlap::default(), FlapReference::default());
    let is_silent = Arc::new(AtomicBool::new(false));
    let policy = Box::new(Whims::new(number, &is_silent));
    let mut control = ControlLoop::new(policy, guarded_by(&flap));
    // The last outcome of each function that was not all that was asked for, and the tick it was reported at.
    let mut faults: BTreeMap<FunctionId, u64> = BTreeMap::new();
    // The newest change of each function's size: what older ones came to was replaced since.
    let mut newest: BTreeMap<FunctionId, PlanId> = BTreeMap::new();
    for tick in 0..BUSY_TICKS + 40 {
        is_silent.store(tick >= BUSY_TICKS, Ordering::Relaxed);
        let inner = platform.inner();
        inner.advance_to(inner.now() + TICK).expect("time goes forward");
        let now = inner.now();
        let record = control.tick(now, &mut platform);
        assert_eq!(record.error, None);
        reference.follow(&record);
        for settled in &record.observation.settled {
            if newest.get(&settled.function) != Some(&settled.plan) {
                continue;
            }
            let own = record.observation.function(settled.function).expect("shown").reservation;
            match settled.outcome {
                Outcome::Partly { in_force, .. } if !own.fits(in_force) => {
                    tally.not_whole += 1;
                    faults.insert(settled.function, tick);
                }
                Outcome::Applied | Outcome::Partly { .. } => {
                    faults.remove(&settled.function);
                }
                Outcome::Failed(_) => {}
            }
        }
        let resized = record.accepted().filter(|target| target.is_resize());
        newest.extend(resized.map(|target| (target.function, record.plan.id())));
        // What has no room stays in doubt and is asked for again; once there is room, nothing is below its own.
        for (function, since) in &faults {
            let view = record.observation.function(*function).expect("it is always shown");
            let is_whole = view.reservation.fits(view.allocation);
            let is_old = !record.observation.age().is_zero();
            assert!(
                is_whole || is_old || tick < since + 2,
                "story {number}, tick {tick}: {view:?}"
            );
        }
    }
    (0..3).for_each(|id| reference.check(&flap, FunctionId(id), number));
    let open: Vec<_> = platform.open().iter().collect();
    assert!(open.is_empty() || !faults.is_empty(), "story {number}: {open:?}");
    tally.accepted += platform.accepted();
}

#[test]
fn the_simulator_keeps_the_same_promises() {
    let mut tally = Tally::default();
    (0..STORIES).for_each(|number| play(number, &mut tally));
    assert!(
        tally.accepted > 5000 && tally.not_whole > 50,
        "{} {}",
        tally.accepted,
        tally.not_whole
    );
}
