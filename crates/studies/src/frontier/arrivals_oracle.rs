//! What it costs never to wait if every arrival is known: the reference below which nobody gets without
//! letting calls queue.
//!
//! Calls are packed onto the lowest instance with a free place, instances start one cold start ahead of
//! need, and one is kept over a gap only if the gap is shorter than a cold start. Memory counts from the
//! start request. A call every minute of 1 s and a cold start of 1 s: 2 of 60 seconds are held.

use serde::Serialize;
use windfall_core::{Duration, Timestamp, Workload};

/// What the oracle holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OracleCost {
    /// Memory over time.
    pub mib_seconds: f64,
    /// Instances over time.
    pub instance_seconds: f64,
    /// The time that was measured.
    pub seconds: f64,
    /// Calls that came in it.
    pub calls: u64,
}

/// One instance of the oracle.
#[derive(Clone, Debug, Default)]
struct Instance {
    /// Ends of the calls it serves.
    ends: Vec<Timestamp>,
    /// Until when it is busy.
    busy_until: Timestamp,
    /// From when it is held without a break.
    held_from: Timestamp,
}

/// One function of the oracle.
struct Function {
    instances: Vec<Instance>,
    cold: Duration,
    memory_mib: f64,
}

/// What lies between the end of the warm-up and the horizon.
struct Window {
    from: Timestamp,
    until: Timestamp,
    cost: OracleCost,
}

impl Window {
    fn hold(&mut self, from: Timestamp, until: Timestamp, memory_mib: f64) {
        let (from, until) = (from.max(self.from), until.min(self.until));
        if from < until {
            let seconds = until.since(from).as_secs_f64();
            self.cost.mib_seconds += seconds * memory_mib;
            self.cost.instance_seconds += seconds;
        }
    }
}

/// What the oracle holds for `workload` with so many calls per instance, after the warm-up.
pub fn cost(workload: &mut dyn Workload, concurrency: u32, warm_up: Duration) -> OracleCost {
    let from = Timestamp::ZERO + warm_up;
    let mut window = Window { from, until: workload.horizon(), cost: OracleCost::default() };
    window.cost.seconds = window.until.since(from).as_secs_f64();
    let sizes: Vec<_> = workload.functions().iter().map(|function| function.reservation).collect();
    let mut functions: Vec<Function> = workload
        .functions()
        .iter()
        .map(|profile| Function {
            instances: Vec::new(),
            cold: profile.cold_start.median,
            memory_mib: profile.reservation.memory.mib(),
        })
        .collect();
    while let Some(arrival) = workload.next_arrival() {
        let place = arrival.function.index();
        let end = arrival.at + arrival.demand.run_time(sizes[place].cpu);
        functions[place].serve(arrival.at, end, concurrency as usize, &mut window);
        window.cost.calls += u64::from(arrival.at >= from);
    }
    for function in &functions {
        for instance in &function.instances {
            window.hold(instance.held_from, instance.busy_until, function.memory_mib);
        }
    }
    window.cost
}

impl Function {
    fn serve(&mut self, at: Timestamp, end: Timestamp, places: usize, window: &mut Window) {
        let has_room = |instance: &mut Instance| {
            instance.ends.retain(|other| *other > at);
            instance.ends.len() < places
        };
        let free = self.instances.iter_mut().position(has_room);
        let start = Timestamp::from_nanos(at.as_nanos().saturating_sub(self.cold.as_nanos()));
        let place = free.unwrap_or_else(|| {
            self.instances.push(Instance {
                held_from: start,
                busy_until: at,
                ..Instance::default()
            });
            self.instances.len() - 1
        });
        let instance = &mut self.instances[place];
        if at.since(instance.busy_until) > self.cold && instance.busy_until < at {
            window.hold(instance.held_from, instance.busy_until, self.memory_mib);
            instance.held_from = start;
        }
        instance.busy_until = instance.busy_until.max(end);
        instance.ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_a_minute_is_held_for_its_run_and_its_cold_start() {
        let second = |s: f64| Timestamp::ZERO + Duration::from_secs_f64(s);
        let mut window =
            Window { from: second(0.0), until: second(1e6), cost: OracleCost::default() };
        let mut function =
            Function { instances: Vec::new(), cold: Duration::from_secs(1), memory_mib: 100.0 };
        for minute in 1..=10 {
            let at = 60.0 * f64::from(minute);
            function.serve(second(at), second(at + 1.0), 1, &mut window);
        }
        // A second call half a second after the first needs an instance of its own, or a second place.
        function.serve(second(600.5), second(601.5), 1, &mut window);
        assert_eq!(function.instances.len(), 2);
        assert!((window.cost.mib_seconds - 9.0 * 200.0).abs() < 1e-6, "nine gaps are over");
    }
}
