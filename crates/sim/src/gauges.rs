//! What the cluster holds at this moment, and the exact time integral of it.

use windfall_core::{Allocation, IntervalRecord, Timestamp};

/// One level that goes up and down, in the order of [`Gauges::levels`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    /// Millicores that users reserve for all calls in the system.
    Demand,
    /// Millicores granted.
    GrantedCpu,
    /// Millicores that running calls hold below their reservation.
    Harvested,
    /// Millicores that running calls hold above their reservation.
    Lent,
    /// MiB granted.
    GrantedMemory,
    /// MiB held by instances without a call.
    IdleMemory,
    /// Calls on an instance.
    Running,
    /// Calls in a queue.
    Waiting,
    /// Instances, starting ones included.
    Instances,
    /// Millicores of nodes that are up.
    Capacity,
}

const GAUGES: usize = 10;

/// All levels with their integrals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    // Whole numbers, exact far beyond any cluster; as floats so that `touch` is a handful of instructions.
    levels: [f64; GAUGES],
    integrals: [f64; GAUGES],
    touched_at: Timestamp,
    interval_from: Timestamp,
    used_before: f64,
    /// Calls that arrived since the interval began.
    pub(crate) arrivals: u64,
    /// Instances started and stopped since the interval began.
    pub(crate) instance_changes: u64,
}

impl Gauges {
    /// Accounts for the time until `now`; must come before any change at `now`.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        let nanos = now.since(self.touched_at).as_nanos() as f64;
        if nanos > 0.0 {
            for (integral, level) in self.integrals.iter_mut().zip(self.levels) {
                *integral += level * nanos;
            }
            self.touched_at = now;
        }
    }

    pub(crate) fn add(&mut self, gauge: Gauge, amount: u32) {
        self.levels[gauge as usize] += f64::from(amount);
    }

    pub(crate) fn sub(&mut self, gauge: Gauge, amount: u32) {
        self.levels[gauge as usize] -= f64::from(amount);
    }

    pub(crate) fn level(&self, gauge: Gauge) -> f64 {
        self.levels[gauge as usize]
    }

    /// A call begins to hold `grant`.
    pub(crate) fn hold(&mut self, grant: Allocation, reservation: Allocation) {
        self.add(Gauge::GrantedCpu, grant.cpu.get());
        self.add(Gauge::GrantedMemory, grant.memory.get());
        self.add(Gauge::Harvested, reservation.cpu.saturating_sub(grant.cpu).get());
        self.add(Gauge::Lent, grant.cpu.saturating_sub(reservation.cpu).get());
    }

    /// A call no longer holds `grant`.
    pub(crate) fn release(&mut self, grant: Allocation, reservation: Allocation) {
        self.sub(Gauge::GrantedCpu, grant.cpu.get());
        self.sub(Gauge::GrantedMemory, grant.memory.get());
        self.sub(Gauge::Harvested, reservation.cpu.saturating_sub(grant.cpu).get());
        self.sub(Gauge::Lent, grant.cpu.saturating_sub(reservation.cpu).get());
    }

    /// Closes the interval at `now`; `used` is the millicore-nanoseconds used since the run began.
    pub(crate) fn close_interval(&mut self, now: Timestamp, used: f64) -> IntervalRecord {
        self.touch(now);
        let nanos = (now.since(self.interval_from).as_nanos() as f64).max(1.0);
        let mean = |gauge: Gauge| self.integrals[gauge as usize] / nanos;
        let record = IntervalRecord {
            from: self.interval_from,
            until: now,
            capacity_cores: mean(Gauge::Capacity) * 1e-3,
            demand_cores: mean(Gauge::Demand) * 1e-3,
            granted_cores: mean(Gauge::GrantedCpu) * 1e-3,
            used_cores: (used - self.used_before) / nanos * 1e-3,
            harvested_cores: mean(Gauge::Harvested) * 1e-3,
            lent_cores: mean(Gauge::Lent) * 1e-3,
            granted_mib: mean(Gauge::GrantedMemory),
            idle_mib: mean(Gauge::IdleMemory),
            running: mean(Gauge::Running),
            waiting: mean(Gauge::Waiting),
            instances: mean(Gauge::Instances),
            arrivals: self.arrivals,
            instance_changes: self.instance_changes,
        };
        self.integrals = [0.0; GAUGES];
        self.interval_from = now;
        self.used_before = used;
        self.arrivals = 0;
        self.instance_changes = 0;
        record
    }
}
