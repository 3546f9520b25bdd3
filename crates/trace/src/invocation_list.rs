//! A workload that replays a list of calls with known starts and run times.

use rand_xoshiro::Xoshiro256PlusPlus;
use windfall_core::{Arrival, FunctionId, FunctionProfile, Seed, Timestamp, Workload};

use crate::azure_2021::Call;
use crate::demand_model::{CallModel, FunctionFacts, ModelledFunction, model_function};

/// Replays calls in order of start; needs that the list does not record are drawn.
pub(crate) struct InvocationList {
    facts: Vec<FunctionFacts>,
    calls: Vec<Call>,
    horizon: Timestamp,
    /// Of each function's run times.
    spreads: Vec<LogSpread>,
    profiles: Vec<FunctionProfile>,
    functions: Vec<(CallModel, Xoshiro256PlusPlus)>,
    next: usize,
}

impl InvocationList {
    /// Creates a workload. `calls` must be in order of start and refer to functions by their index in `facts`.
    pub(crate) fn new(
        facts: Vec<FunctionFacts>,
        calls: Vec<Call>,
        horizon: Timestamp,
        seed: Seed,
    ) -> Self {
        let spreads = spreads_of(facts.len(), &calls);
        let (profiles, functions) = (Vec::new(), Vec::new());
        let mut list = Self { facts, calls, horizon, spreads, profiles, functions, next: 0 };
        list.restart(seed);
        list
    }
}

/// Logarithms of the run times of a function.
#[derive(Clone, Copy)]
struct LogSpread {
    mean: f64,
    deviation: f64,
}

/// Sums of logarithms, from which mean and deviation follow in one pass over the calls.
#[derive(Clone, Copy, Default)]
struct LogSums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl LogSums {
    fn spread(self) -> LogSpread {
        let count = self.count.max(1.0);
        let mean = self.sum / count;
        LogSpread { mean, deviation: (self.squares / count - mean * mean).max(0.0).sqrt() }
    }
}

fn spreads_of(functions: usize, calls: &[Call]) -> Vec<LogSpread> {
    let mut sums = vec![LogSums::default(); functions];
    for call in calls {
        let log = (call.run_ns.max(1) as f64).ln();
        let own = &mut sums[call.function as usize];
        own.count += 1.0;
        own.sum += log;
        own.squares += log * log;
    }
    sums.into_iter().map(LogSums::spread).collect()
}

impl Workload for InvocationList {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn horizon(&self) -> Timestamp {
        self.horizon
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let call = *self.calls.get(self.next)?;
        self.next += 1;
        let (model, rng) = &mut self.functions[call.function as usize];
        let LogSpread { mean, deviation: spread } = self.spreads[call.function as usize];
        let log = (call.run_ns.max(1) as f64).ln();
        let score = if spread > 1e-9 { (log - mean) / spread } else { 0.0 };
        Some(Arrival {
            at: Timestamp::from_nanos(call.start_ns),
            function: FunctionId(call.function),
            demand: model.draw_given(call.run_ns, score as f32, rng),
        })
    }

    fn restart(&mut self, seed: Seed) {
        self.profiles.clear();
        self.functions.clear();
        for facts in &self.facts {
            let ModelledFunction { profile, model, demand } = model_function(facts, seed);
            self.profiles.push(profile);
            self.functions.push((model, demand));
        }
        self.next = 0;
    }
}
