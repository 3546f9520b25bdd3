//! What a frontier is drawn from: slow calls, and what instances hold.

use windfall_core::{
    CallEnd, CallRecord, Duration, IntervalRecord, TelemetrySink, TickRecord, Timestamp,
};
use windfall_telemetry::metrics::SLOWDOWN_FLOOR;

/// A call is slow if its bounded slowdown is above this: a cold start or a queue delayed it.
pub const SLOW: f64 = 1.1;

/// What one function contributes to a point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionShare {
    /// Calls that were measured.
    pub calls: u64,
    /// Those that were slow.
    pub slow: u64,
    /// Memory of its instances over time, from the numbers at ticks.
    pub mib_seconds: f64,
}

/// Counts slow calls and what instances hold, between the end of the warm-up and the horizon.
#[derive(Clone, Debug)]
pub struct InstanceMeasure {
    from: Timestamp,
    until: Timestamp,
    /// Memory of all instances, running calls and idle instances alike, over time.
    pub mib_seconds: f64,
    /// Instances over time.
    pub instance_seconds: f64,
    changes: u64,
    functions: Vec<FunctionShare>,
    last_tick: Timestamp,
}

impl InstanceMeasure {
    /// Measures calls that come between these two, and memory that is held between them.
    pub fn new(warm_up: Duration, horizon: Timestamp) -> Self {
        Self {
            from: Timestamp::ZERO + warm_up,
            until: horizon,
            mib_seconds: 0.0,
            instance_seconds: 0.0,
            changes: 0,
            functions: Vec::new(),
            last_tick: Timestamp::ZERO,
        }
    }

    fn function(&mut self, place: usize) -> &mut FunctionShare {
        if place >= self.functions.len() {
            self.functions.resize(place + 1, FunctionShare::default());
        }
        &mut self.functions[place]
    }

    /// Calls that were measured.
    pub fn calls(&self) -> u64 {
        self.functions.iter().map(|function| function.calls).sum()
    }

    /// Share of calls that were slow.
    pub fn slow_share(&self) -> f64 {
        let slow: u64 = self.functions.iter().map(|function| function.slow).sum();
        slow as f64 / self.calls().max(1) as f64
    }

    /// The same share of each function that was called, averaged over functions.
    pub fn slow_share_per_function(&self) -> f64 {
        let called = self.functions.iter().filter(|function| function.calls > 0);
        let shares = called.map(|function| function.slow as f64 / function.calls as f64);
        let (count, sum) = shares.fold((0u32, 0.0), |(count, sum), share| (count + 1, sum + share));
        sum / f64::from(count.max(1))
    }

    /// Instances started and stopped, per hour.
    pub fn changes_per_hour(&self) -> f64 {
        let hours = self.until.since(self.from).as_secs_f64() / 3600.0;
        self.changes as f64 / hours.max(1e-9)
    }

    /// What each function contributes.
    pub fn into_functions(self) -> Vec<FunctionShare> {
        self.functions
    }
}

impl TelemetrySink for InstanceMeasure {
    fn tick(&mut self, tick: &TickRecord) {
        let seen = &tick.observation;
        let seconds = seen.now.since(self.last_tick).as_secs_f64();
        self.last_tick = seen.now;
        if seen.now <= self.from || seen.now > self.until {
            return;
        }
        for view in &seen.functions {
            let instances = f64::from((view.ready + view.starting).get());
            let held = instances * view.idle_size().memory.mib();
            self.function(view.function.index()).mib_seconds += held * seconds;
        }
    }

    fn call(&mut self, call: &CallRecord) {
        if call.arrived_at < self.from || call.arrived_at > self.until {
            return;
        }
        // A call that got no answer never stops waiting.
        let answered = call.end == CallEnd::Completed;
        let slowdown = call.bounded_slowdown(SLOWDOWN_FLOOR);
        let is_slow = !answered || slowdown.is_some_and(|slowdown| slowdown > SLOW);
        let function = self.function(call.function.index());
        function.calls += 1;
        function.slow += u64::from(is_slow);
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        if interval.from < self.from || interval.until > self.until {
            return;
        }
        let seconds = interval.until.since(interval.from).as_secs_f64();
        self.mib_seconds += (interval.granted_mib + interval.idle_mib) * seconds;
        self.instance_seconds += interval.instances * seconds;
        self.changes += interval.instance_changes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_from_the_end_of_the_warm_up_to_the_horizon() {
        let minute = Duration::from_mins(1);
        let mut measure = InstanceMeasure::new(minute, Timestamp::ZERO + minute * 3);
        for start in 0..5u64 {
            let from = Timestamp::ZERO + minute * start;
            measure.interval(&IntervalRecord {
                from,
                until: from + minute,
                granted_mib: 100.0,
                idle_mib: 20.0,
                instances: 2.0,
                instance_changes: 3,
                ..IntervalRecord::default()
            });
        }
        assert!((measure.mib_seconds - 2.0 * 7200.0).abs() < 1e-6, "{}", measure.mib_seconds);
        assert!((measure.instance_seconds - 240.0).abs() < 1e-6, "{}", measure.instance_seconds);
        assert!((measure.changes_per_hour() - 180.0).abs() < 1e-9);
        assert_eq!((measure.slow_share(), measure.slow_share_per_function()), (0.0, 0.0));
    }
}
