//! A cluster whose calls wait for a decision, one after the other.
//!
//! The simulator asks a policy for a size in the middle of an event. Here the answer must come from outside, so every
//! call is decided before the simulator reaches its arrival: the policy inside only looks the decision up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windfall_control::CallLoop;
use windfall_core::{
    Allocation, Arrival, CallDecision, CallId, CallOutcome, CallPolicy, CallSafeguardChain,
    CallView, Duration, Episodic, FunctionProfile, PolicyError, Seed, TelemetrySink, Timestamp,
    Workload,
};
use windfall_rl::Split;
use windfall_rl::random::Draw;
use windfall_sim::{Settings, Simulator};
use windfall_trace::{AzureLikeSettings, Source};

use super::SizingSettings;

/// A node of the cluster.
const NODE: Allocation = Allocation::new(16_000, 65_536);
/// Minutes out of which an episode's calls are taken.
const MINUTES: u64 = 20;
/// Calls that a function has on average in that time, many more than an episode needs.
const CALLS_PER_FUNCTION: f64 = 40.0;

/// The call that is to be decided.
pub(super) struct NextCall {
    pub(super) function: usize,
    pub(super) input: Option<f32>,
    pub(super) reservation: Allocation,
    pub(super) ceiling: Allocation,
    pub(super) waiting: u64,
}

/// Decisions on their way in, outcomes on their way out.
#[derive(Default)]
struct Desk {
    decisions: Vec<CallDecision>,
    outcomes: Vec<CallOutcome>,
    waiting: u64,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Desk>>);

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic elsewhere leaves plain numbers behind, which are as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policy inside the simulator.
struct LookedUp(Shared);

impl CallPolicy for LookedUp {
    fn name(&self) -> &str {
        "agent"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let mut desk = self.0.desk();
        desk.waiting = call.waiting;
        let decided = usize::try_from(call.id.0).ok().and_then(|id| desk.decisions.get(id));
        Ok(decided
            .cloned()
            .unwrap_or_else(|| CallDecision::exactly(call.reservation, "not decided")))
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        self.0.desk().outcomes.push(outcome.clone());
    }
}

/// The calls of an episode, in order.
struct Listed {
    functions: Vec<FunctionProfile>,
    arrivals: Arc<[Arrival]>,
    place: usize,
}

impl Workload for Listed {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn horizon(&self) -> Timestamp {
        self.arrivals.last().map_or(Timestamp::ZERO, |last| last.at)
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let next = self.arrivals.get(self.place).copied();
        self.place += 1;
        next
    }

    fn restart(&mut self, _: Seed) {
        self.place = 0;
    }
}

struct Silent;

impl TelemetrySink for Silent {}

/// A cluster in the middle of an episode.
pub(super) struct SizingWorld {
    arrivals: Arc<[Arrival]>,
    reservations: Vec<Allocation>,
    ceiling: Allocation,
    simulator: Simulator<'static>,
    shared: Shared,
}

impl SizingWorld {
    pub(super) fn new(settings: &SizingSettings, seed: Seed) -> Self {
        let (functions, arrivals) = draw_calls(settings, seed);
        let reservations: Vec<Allocation> = functions.iter().map(|it| it.reservation).collect();
        let nodes = nodes_for(&arrivals, &reservations, settings.load);
        let simulated = Settings::new(nodes, NODE);
        let shared = Shared::default();
        let control =
            CallLoop::new(Box::new(LookedUp(shared.clone())), CallSafeguardChain::default());
        let listed = Listed { functions, arrivals: arrivals.clone(), place: 0 };
        let simulator = Simulator::new(simulated, listed, control, Silent, seed.stream("world"));
        Self { arrivals, reservations, ceiling: simulated.ceiling, simulator, shared }
    }

    pub(super) fn functions(&self) -> usize {
        self.reservations.len()
    }

    /// The call to be decided; nothing after the last.
    pub(super) fn next_call(&self) -> Option<NextCall> {
        let desk = self.shared.desk();
        let arrival = self.arrivals.get(desk.decisions.len())?;
        let function = arrival.function.index();
        Some(NextCall {
            function,
            input: arrival.demand.input,
            reservation: self.reservations[function],
            ceiling: self.ceiling,
            waiting: desk.waiting,
        })
    }

    /// How long a call would run at the user's size.
    pub(super) fn baseline(&self, call: CallId) -> Duration {
        let arrival = usize::try_from(call.0).ok().and_then(|id| self.arrivals.get(id));
        arrival.map_or(Duration::ZERO, |arrival| {
            arrival.demand.run_time(self.reservations[arrival.function.index()].cpu)
        })
    }

    /// Decides the next call and lets time pass until the one after it; after the last one, until all have ended.
    ///
    /// # Panics
    ///
    /// Never: arrivals are in order, and the simulator refuses only to go back in time.
    pub(super) fn dispatch(&mut self, decision: CallDecision) -> Vec<CallOutcome> {
        let decided = {
            let mut desk = self.shared.desk();
            desk.decisions.push(decision);
            desk.decisions.len()
        };
        match self.arrivals.get(decided) {
            None => self.simulator.run_to_end(),
            Some(next) => {
                // Just before it, so that its own arrival is not handled yet.
                let until = Timestamp::from_nanos(next.at.as_nanos().saturating_sub(1));
                if until > self.simulator.now() {
                    self.simulator.advance_to(until).expect("arrivals are in order");
                }
            }
        }
        std::mem::take(&mut self.shared.desk().outcomes)
    }
}

/// Functions and calls of an episode. Each part of the world has its own hours and its own functions.
fn draw_calls(settings: &SizingSettings, seed: Seed) -> (Vec<FunctionProfile>, Arc<[Arrival]>) {
    let (part, hour) = match settings.split {
        Split::Training => ("training", 0.0),
        Split::Validation => ("validation", 8.0),
        Split::Test => ("test", 16.0),
    };
    let seed = seed.stream(part);
    let mut draw = Draw::new(seed.stream("hour"));
    let functions = settings.functions.max(1);
    let source = Source::AzureLike(AzureLikeSettings {
        functions,
        duration: Duration::from_mins(MINUTES),
        calls_per_hour: f64::from(functions) * CALLS_PER_FUNCTION * 60.0 / MINUTES as f64,
        start_hour: hour + 7.9 * draw.unit(),
        ..AzureLikeSettings::default()
    });
    let mut workload = source.open(seed).expect("these settings are allowed");
    let mut arrivals = Vec::with_capacity(settings.calls);
    workload.next_arrivals(settings.calls.max(2), &mut arrivals);
    while arrivals.len() < settings.calls.max(2) {
        let before = arrivals.len();
        workload.next_arrivals(settings.calls - before, &mut arrivals);
        if arrivals.len() == before {
            break;
        }
    }
    (workload.functions().to_vec(), arrivals.into())
}

/// Nodes on which what users reserve is `load` of what there is.
fn nodes_for(arrivals: &[Arrival], reservations: &[Allocation], load: f64) -> u32 {
    let reserved = |arrival: &Arrival| {
        let size = reservations[arrival.function.index()];
        size.cpu.cores() * arrival.demand.run_time(size.cpu).as_secs_f64()
    };
    let span = arrivals.last().map_or(1.0, |last| last.at.as_secs_f64()).max(1.0);
    let cores = arrivals.iter().map(reserved).sum::<f64>() / span / load;
    (cores / NODE.cpu.cores()).ceil().max(1.0) as u32
}
