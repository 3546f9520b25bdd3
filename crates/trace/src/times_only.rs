//! A workload whose calls need only time.
//!
//! For studies of instances only: when they start and stop, and what memory they hold in between. A call of 300 ms
//! takes 300 ms, alone or beside nine others, and an instance holds the measured median memory of its function,
//! regardless of the user's reservation.

use windfall_core::statistics::Interval;
use windfall_core::{
    Arrival, CallDemand, Duration, FunctionProfile, Mebibytes, MilliCpu, Seed, Timestamp, Workload,
};

/// The least and the most that an instance holds, MiB.
const INSTANCE_MIB: Interval = Interval { low: 32.0, high: 2048.0 };

/// The calls of another workload, with all needs except time removed.
pub(crate) struct TimesOnly<W> {
    inner: W,
    memory_mib: Vec<Option<f64>>,
    profiles: Vec<FunctionProfile>,
    /// CPU reservations in the other workload, at which run times are computed.
    sizes: Vec<MilliCpu>,
}

impl<W: Workload> TimesOnly<W> {
    /// Wraps `inner`; an instance holds `memory_mib`, or the reservation if that is unknown.
    pub(crate) fn new(inner: W, memory_mib: Vec<Option<f64>>) -> Self {
        let mut workload = Self { inner, memory_mib, profiles: Vec::new(), sizes: Vec::new() };
        workload.strip_profiles();
        workload
    }

    fn strip_profiles(&mut self) {
        self.profiles = self.inner.functions().to_vec();
        self.sizes = self.profiles.iter().map(|profile| profile.reservation.cpu).collect();
        for (place, profile) in self.profiles.iter_mut().enumerate() {
            let reserved = profile.reservation.memory.mib();
            let known = self.memory_mib.get(place).copied().flatten().unwrap_or(reserved);
            let held = known.clamp(INSTANCE_MIB.low, INSTANCE_MIB.high).round();
            profile.reservation.memory = Mebibytes::new(held as u32);
        }
    }
}

impl<W: Workload> Workload for TimesOnly<W> {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn horizon(&self) -> Timestamp {
        self.inner.horizon()
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let Arrival { at, function, demand } = self.inner.next_arrival()?;
        let demand = CallDemand {
            work: 0,
            fixed: demand.run_time(self.sizes[function.index()]),
            parallelism: MilliCpu::new(1),
            memory_base: Mebibytes::new(1),
            memory_peak: Mebibytes::new(1),
            rise: Duration::ZERO,
            jumps: false,
            cycles: 1,
            ..demand
        };
        Some(Arrival { at, function, demand })
    }

    fn restart(&mut self, seed: Seed) {
        self.inner.restart(seed);
        self.strip_profiles();
    }
}
