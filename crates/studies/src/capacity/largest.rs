//! A workload without its largest functions: those for which users reserve the most core-seconds.

use windfall_core::{Arrival, FunctionProfile, Seed, Timestamp, Workload};

/// Leaves out the calls of some functions; the others keep their ids and draws.
pub(super) struct WithoutLargest {
    inner: Box<dyn Workload + Send>,
    is_left_out: Vec<bool>,
}

impl WithoutLargest {
    /// `inner` without its `count` largest functions; starts over from `seed`.
    pub(super) fn new(mut inner: Box<dyn Workload + Send>, count: usize, seed: Seed) -> Self {
        let cpu: Vec<_> = inner.functions().iter().map(|one| one.reservation.cpu).collect();
        let mut reserved = vec![0.0; cpu.len()];
        while let Some(Arrival { function, demand, .. }) = inner.next_arrival() {
            let cpu = cpu[function.index()];
            reserved[function.index()] += demand.run_time(cpu).as_secs_f64() * cpu.cores();
        }
        inner.restart(seed);
        let mut places: Vec<usize> = (0..reserved.len()).collect();
        places.sort_by(|&a, &b| reserved[b].total_cmp(&reserved[a]));
        let mut is_left_out = vec![false; reserved.len()];
        places.iter().take(count).for_each(|&place| is_left_out[place] = true);
        Self { inner, is_left_out }
    }
}

impl Workload for WithoutLargest {
    fn functions(&self) -> &[FunctionProfile] {
        self.inner.functions()
    }

    fn horizon(&self) -> Timestamp {
        self.inner.horizon()
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            let arrival = self.inner.next_arrival()?;
            if !self.is_left_out[arrival.function.index()] {
                return Some(arrival);
            }
        }
    }

    fn restart(&mut self, seed: Seed) {
        self.inner.restart(seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_trace::{AzureLikeSettings, Source};

    #[test]
    fn the_largest_functions_have_no_calls_and_the_others_keep_theirs() {
        let settings = AzureLikeSettings {
            functions: 10,
            calls_per_hour: 2000.0,
            ..AzureLikeSettings::default()
        };
        let open = || Source::AzureLike(settings.clone()).open(Seed::new(1)).expect("generated");
        let count = |workload: &mut dyn Workload| {
            let mut calls = vec![0; 10];
            while let Some(arrival) = workload.next_arrival() {
                calls[arrival.function.index()] += 1;
            }
            calls
        };
        let all = count(open().as_mut());
        let some = count(&mut WithoutLargest::new(open(), 3, Seed::new(1)));
        let left_out = all.iter().zip(&some).filter(|(all, some)| all != some);
        assert!(left_out.clone().all(|(_, some)| *some == 0));
        assert!((1..=3).contains(&left_out.count()), "{all:?} {some:?}");
    }
}
