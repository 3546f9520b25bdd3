//! Single calls on request, by the law of run time: a simulated call has a demand, so what it takes at another size is
//! known exactly.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use windfall_core::{Arrival, CallDemand, FunctionId, FunctionProfile};

use crate::managed_platform::{Invocation, InvokeError, Invoked, Invoker};

/// Arrivals that can be run again.
const REMEMBERED: usize = 65_536;

/// The demand of the last arrivals, by their number.
#[derive(Default)]
pub(super) struct Memory {
    first: u64,
    calls: VecDeque<(FunctionId, CallDemand)>,
}

impl Memory {
    pub(super) fn arrives(&mut self, arrival: &Arrival) {
        if self.calls.len() == REMEMBERED {
            self.calls.pop_front();
            self.first += 1;
        }
        self.calls.push_back((arrival.function, arrival.demand));
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn call(&self, number: u64) -> Option<(FunctionId, CallDemand)> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.calls.get(place).copied()
    }

    /// The demand of the last arrival of `function`.
    fn latest(&self, function: FunctionId) -> Option<CallDemand> {
        self.calls.iter().rev().find(|(of, _)| *of == function).map(|(_, demand)| *demand)
    }
}

/// Runs calls by the law.
pub(super) struct Rerun {
    functions: Vec<FunctionProfile>,
    memory: Arc<Mutex<Memory>>,
}

impl Rerun {
    pub(super) fn new(functions: Vec<FunctionProfile>, memory: Arc<Mutex<Memory>>) -> Self {
        Self { functions, memory }
    }

    fn demand(&self, invocation: &Invocation, id: FunctionId) -> Result<CallDemand, InvokeError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match invocation.replay {
            Some(number) => (memory.call(number))
                .filter(|(function, _)| *function == id)
                .map(|(_, demand)| demand)
                .ok_or(InvokeError::UnknownCall(number)),
            None => memory.latest(id).ok_or_else(|| {
                InvokeError::Platform("the generated load has not called it yet".to_owned())
            }),
        }
    }
}

impl Invoker for Rerun {
    fn invoke(&self, invocation: &Invocation) -> Result<Invoked, InvokeError> {
        let unknown = || InvokeError::UnknownFunction(invocation.function.clone());
        let named = |profile: &FunctionProfile| profile.name == invocation.function;
        let place = self.functions.iter().position(named).ok_or_else(unknown)?;
        let profile = &self.functions[place];
        let demand = self.demand(invocation, FunctionId(place as u32))?;
        let size = invocation.size.unwrap_or(profile.reservation);
        let killed = demand.crosses(size.memory);
        let run = demand.run_time(size.cpu);
        let is_killed = killed.is_some_and(|at| at < run);
        Ok(Invoked {
            function: invocation.function.clone(),
            size,
            run_ms: killed.filter(|_| is_killed).unwrap_or(run).as_millis_f64(),
            cold_start_ms: 0.0,
            own_size_ms: Some(demand.run_time(profile.reservation.cpu).as_millis_f64()),
            end: if is_killed { "out-of-memory" } else { "completed" }.to_owned(),
            answer: None,
            note: "computed by the simulator's law of run time; no function ran".to_owned(),
        })
    }
}
