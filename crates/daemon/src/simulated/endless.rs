//! A workload that never ends: when the generated hour is over, another one follows with other draws.

use std::sync::{Arc, Mutex, PoisonError};

use windfall_core::{Arrival, Duration, FunctionProfile, Seed, Timestamp, Workload};

use super::rerun::Memory;

/// Repeats a workload with another seed each time, and remembers the demand of the last arrivals.
pub(super) struct Endless {
    hour: Box<dyn Workload + Send>,
    seed: Seed,
    round: u64,
    memory: Arc<Mutex<Memory>>,
}

impl Endless {
    pub(super) fn new(
        hour: Box<dyn Workload + Send>,
        seed: Seed,
        memory: Arc<Mutex<Memory>>,
    ) -> Self {
        Self { hour, seed, round: 0, memory }
    }

    fn offset(&self) -> Duration {
        let length = self.hour.horizon().since(Timestamp::ZERO).as_nanos();
        Duration::from_nanos(length.saturating_mul(self.round))
    }
}

impl Workload for Endless {
    fn functions(&self) -> &[FunctionProfile] {
        self.hour.functions()
    }

    fn horizon(&self) -> Timestamp {
        Timestamp::MAX
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        // An hour without any call would be repeated without end.
        for _ in 0..2 {
            if let Some(mut arrival) = self.hour.next_arrival() {
                arrival.at += self.offset();
                self.memory.lock().unwrap_or_else(PoisonError::into_inner).arrives(&arrival);
                return Some(arrival);
            }
            self.round += 1;
            self.hour.restart(self.seed.member(self.round));
        }
        None
    }

    fn restart(&mut self, seed: Seed) {
        self.round = 0;
        self.seed = seed;
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).forget();
        self.hour.restart(seed);
    }
}
