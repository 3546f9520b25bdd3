//! What the cluster holds at this moment, and the exact time integral of it.

use windfall_core::{Allocation, IntervalRecord, Timestamp};

/// One level that goes up and down, in the order of [`Gauges::levels`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    /// Millicores that users reserve for all calls in the system.
    Demand,
    /// Millicores granted, those of starts ahead of any call among them.
    GrantedCpu,
    /// Millicores granted to starts ahead of any call.
    StartingCpu,
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

const GAUGES: usize = 11;

/// All levels with their integrals.
///
/// A level that rises by `d` at time `t` adds `d * (end - t)` to the integral until `end`. So it is enough
/// to keep the sum of `d * t`: a change touches its own gauge alone, and time may pass for nothing.
/// Integers, exact whatever the cluster: 100 TiB over a day are 9e21 MiB-nanoseconds, more than a `u64`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    levels: [i64; GAUGES],
    /// Sums of changes times when they came, counted from the interval's beginning.
    moments: [i128; GAUGES],
    /// Nanoseconds from the interval's beginning to now.
    since: i64,
    interval_from: Timestamp,
    used_before: f64,
    held_back_before: u128,
    /// Calls that arrived since the interval began.
    pub(crate) arrivals: u64,
    /// Instances started and stopped since the interval began.
    pub(crate) instance_changes: u64,
}

impl Gauges {
    /// Changes come at `now` from here on.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        self.since = now.since(self.interval_from).as_nanos() as i64;
    }

    #[inline]
    fn change(&mut self, gauge: Gauge, by: i64) {
        self.levels[gauge as usize] += by;
        self.moments[gauge as usize] += i128::from(by) * i128::from(self.since);
    }

    #[inline]
    pub(crate) fn add(&mut self, gauge: Gauge, amount: u32) {
        self.change(gauge, i64::from(amount));
    }

    #[inline]
    pub(crate) fn sub(&mut self, gauge: Gauge, amount: u32) {
        self.change(gauge, -i64::from(amount));
    }

    pub(crate) fn level(&self, gauge: Gauge) -> f64 {
        self.levels[gauge as usize] as f64
    }

    /// A call begins to hold `grant`.
    #[inline]
    pub(crate) fn hold(&mut self, grant: Allocation, reservation: Allocation) {
        self.hold_times(1, grant, reservation);
    }

    /// A call no longer holds `grant`.
    #[inline]
    pub(crate) fn release(&mut self, grant: Allocation, reservation: Allocation) {
        self.hold_times(-1, grant, reservation);
    }

    #[inline(always)]
    fn hold_times(&mut self, times: i64, grant: Allocation, reservation: Allocation) {
        self.change(Gauge::GrantedCpu, times * i64::from(grant.cpu.get()));
        self.change(Gauge::GrantedMemory, times * i64::from(grant.memory.get()));
        if grant.cpu < reservation.cpu {
            let harvested = (reservation.cpu - grant.cpu).get();
            self.change(Gauge::Harvested, times * i64::from(harvested));
        } else if grant.cpu > reservation.cpu {
            let lent = (grant.cpu - reservation.cpu).get();
            self.change(Gauge::Lent, times * i64::from(lent));
        }
    }

    /// Closes the interval at `now`; `used` and `held_back` are the millicore-nanoseconds used, and held
    /// back from new calls, since the run began.
    pub(crate) fn close_interval(
        &mut self,
        now: Timestamp,
        used: f64,
        held_back: u128,
    ) -> IntervalRecord {
        let length = now.since(self.interval_from).as_nanos();
        let nanos = (length as f64).max(1.0);
        let mean = |gauge: Gauge| {
            let until_now = i128::from(self.levels[gauge as usize]) * i128::from(length);
            (until_now - self.moments[gauge as usize]) as f64 / nanos
        };
        let record = IntervalRecord {
            from: self.interval_from,
            until: now,
            capacity_cores: mean(Gauge::Capacity) * 1e-3,
            demand_cores: mean(Gauge::Demand) * 1e-3,
            granted_cores: mean(Gauge::GrantedCpu) * 1e-3,
            starting_cores: mean(Gauge::StartingCpu) * 1e-3,
            held_back_cores: (held_back - self.held_back_before) as f64 / nanos * 1e-3,
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
        self.moments = [0; GAUGES];
        self.interval_from = now;
        self.since = 0;
        self.used_before = used;
        self.held_back_before = held_back;
        self.arrivals = 0;
        self.instance_changes = 0;
        record
    }
}
