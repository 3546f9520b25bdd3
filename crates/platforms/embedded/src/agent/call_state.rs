//! One call as the agent keeps it.

use tokio::sync::oneshot;
use windfall_core::{
    Allocation, CallOutcome, CallPlan, CallRecord, CallView, CpuCeiling, Duration, Sensed, Start,
    Timestamp,
};
use windfall_sandbox::Sensors;

use super::message::Verdict;
use crate::pool::InstanceId;

/// What sensors showed at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Timestamp,
    pub(super) sensors: Sensors,
}

impl Reading {
    /// What happened between this reading and a later one to a call with `reserved` cores.
    pub(super) fn until(&self, later: &Self, reserved: f64) -> Sensed {
        let window = later.at.since(self.at);
        let seconds = window.as_secs_f64().max(1e-9);
        let used = later.sensors.cpu_time.saturating_sub(self.sensors.cpu_time).as_secs_f64();
        Sensed {
            window,
            cpu_used_cores: used / seconds,
            throttled_share: (self.throttled_until(later).as_secs_f64() / seconds).min(1.0),
            memory_mib: mib(later.sensors.memory_rss.max(1)),
            delayed_share: self.delayed_share(later, reserved),
        }
    }

    /// Share of the time in between by which waiting for CPU set the call back against its reservation.
    ///
    /// The kernel counts the time in which any task waited, and the threads of one call wait for each other: four of them,
    /// alone on two cores, wait all the time and lose nothing. What they used meanwhile is therefore taken off, 2 cores
    /// of 2 reserved ones here. A call of one thread that waits uses nothing meanwhile, and the kernel counts that
    /// apart: nobody of it ran. A call with 2 reserved cores that used 1.5 of them lost at most a quarter.
    pub(super) fn delayed_share(&self, later: &Self, reserved: f64) -> f64 {
        let seconds = later.at.since(self.at).as_secs_f64().max(1e-9);
        let used = later.sensors.cpu_time.saturating_sub(self.sensors.cpu_time).as_secs_f64();
        let used = used / seconds / reserved.max(1e-3);
        let waited = self.throttled_until(later).as_secs_f64() / seconds;
        let lost = match self.sensors.pressure.zip(later.sensors.pressure) {
            Some((before, after)) => {
                let nobody_ran = after.cpu_full.saturating_sub(before.cpu_full).as_secs_f64();
                (waited - used).max(nobody_ran / seconds)
            }
            None => waited,
        };
        lost.min(1.0 - used).max(0.0)
    }

    /// Time in between in which it could have used more CPU than it had: by quota, or by weight where the kernel counts
    /// that. The kernel adds up the time of all CPUs, so the sum can be longer than the window.
    pub(super) fn throttled_until(&self, later: &Self) -> Duration {
        let quota = later.sensors.throttled_time.saturating_sub(self.sensors.throttled_time);
        let pressure = match (self.sensors.pressure, later.sensors.pressure) {
            (Some(before), Some(after)) => after.cpu.saturating_sub(before.cpu),
            _ => std::time::Duration::ZERO,
        };
        crate::clock::duration(quota.max(pressure)).min(later.at.since(self.at))
    }
}

pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A change of what a running call holds, not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) asked: Allocation,
    /// Why the kernel did not do all of it.
    pub(super) refused: Option<String>,
}

/// One call from arrival to end.
pub(super) struct AgentCall {
    pub(super) view: CallView,
    /// Time from its message to the agent's first look at it. Waiting for room comes after that and is no lateness.
    pub(super) late: Duration,
    /// Whether it runs at a size that someone asked for, and no policy is asked about it.
    pub(super) has_own_size: bool,
    /// Whether it waited for the start of its instance.
    pub(super) is_cold: bool,
    /// Where to answer; nothing while the call runs.
    pub(super) reply: Option<oneshot::Sender<Verdict>>,
    /// An answer that came before anyone could take it.
    pub(super) verdict: Option<Verdict>,
    pub(super) plan: Option<CallPlan>,
    /// Whether the control has started it and waits for its close.
    pub(super) is_open: bool,
    pub(super) placed_at: Timestamp,
    /// Attempts so far; tells events of this one from those of an earlier one.
    pub(super) attempt: u32,
    pub(super) instance: Option<InstanceId>,
    pub(super) grant: Allocation,
    pub(super) ceiling: CpuCeiling,
    pub(super) look_after: Option<Duration>,
    /// Whether the control has asked for another look.
    pub(super) is_supervised: bool,
    pub(super) change: Option<Change>,
    /// When the function's code began to run.
    pub(super) runs_since: Option<Timestamp>,
    pub(super) begun: Option<Reading>,
    pub(super) looked: Option<Reading>,
    pub(super) sampled: Option<Reading>,
    pub(super) cpu_peak: f64,
    pub(super) memory_peak: f64,
    pub(super) record: CallRecord,
    /// Until when the amounts in the record are added up.
    pub(super) accounted: Timestamp,
}

impl AgentCall {
    pub(super) fn new(
        view: CallView,
        late: Duration,
        has_own_size: bool,
        reply: oneshot::Sender<Verdict>,
    ) -> Self {
        let record = CallRecord {
            id: view.id,
            function: view.function,
            arrived_at: view.arrived_at,
            input: view.input,
            reservation: view.reservation,
            wanted: view.reservation.into(),
            ..CallRecord::default()
        };
        Self {
            view,
            late,
            has_own_size,
            is_cold: false,
            reply: Some(reply),
            verdict: None,
            plan: None,
            is_open: false,
            placed_at: Timestamp::ZERO,
            attempt: 0,
            instance: None,
            grant: Allocation::ZERO,
            ceiling: CpuCeiling::AtGrant,
            look_after: None,
            is_supervised: false,
            change: None,
            runs_since: None,
            begun: None,
            looked: None,
            sampled: None,
            cpu_peak: 0.0,
            memory_peak: 0.0,
            record,
            accounted: Timestamp::ZERO,
        }
    }

    /// An attempt begins with `start`.
    pub(super) fn begin(&mut self, now: Timestamp, start: Start) {
        self.attempt += 1;
        self.placed_at = now;
        (self.grant, self.ceiling) = (start.grant, start.cpu_ceiling);
        self.look_after = start.look_after;
        self.is_supervised = start.look_after.is_some();
        (self.change, self.runs_since) = (None, None);
        (self.begun, self.looked, self.sampled) = (None, None, None);
        (self.cpu_peak, self.memory_peak) = (0.0, 0.0);
        self.accounted = now;
        self.record.attempts = self.record.attempts.saturating_add(1);
        if self.attempt == 1 {
            self.record.first_grant = start.grant;
            self.record.cpu_ceiling = start.cpu_ceiling;
            (self.record.lowest_grant, self.record.highest_grant) = (start.grant, start.grant);
        }
    }

    /// It holds `grant` from now on.
    pub(super) fn hold(&mut self, now: Timestamp, grant: Allocation) {
        self.account(now);
        self.grant = grant;
        self.record.lowest_grant = self.record.lowest_grant.min(grant);
        self.record.highest_grant = self.record.highest_grant.max(grant);
        self.record.changes += 1;
    }

    /// Adds up what was granted until `now`.
    pub(super) fn account(&mut self, now: Timestamp) {
        let passed = now.since(self.accounted).as_nanos();
        self.accounted = now;
        let add = |sum: &mut u64, amount: u32| {
            *sum = sum.saturating_add(u64::from(amount).saturating_mul(passed));
        };
        add(&mut self.record.cpu_granted, self.grant.cpu.get());
        add(&mut self.record.memory_granted, self.grant.memory.get());
    }

    /// Puts the largest use of an attempt on record.
    pub(super) fn note_peaks(&mut self, outcome: &CallOutcome) {
        let seen = self.record.seen.get_or_insert_default();
        seen.cpu_cores = seen.cpu_cores.max(outcome.cpu_peak_cores as f32);
        seen.memory_mib = seen.memory_mib.max(outcome.memory_peak_mib as f32);
    }

    /// Takes note of a sample between looks.
    pub(super) fn note(&mut self, reading: &Reading) {
        let Some(before) = self.sampled.replace(*reading) else { return };
        let sensed = before.until(reading, self.view.reservation.cpu.cores());
        // Two readings a moment apart say nothing about use.
        if sensed.window >= Duration::from_millis(1) {
            self.cpu_peak = self.cpu_peak.max(sensed.cpu_used_cores);
        }
        self.memory_peak = self.memory_peak.max(sensed.memory_mib);
        let memory = (sensed.memory_mib * sensed.window.as_nanos_f64()) as u64;
        self.record.memory_used = self.record.memory_used.saturating_add(memory);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windfall_sandbox::Pressure;

    use super::*;

    /// After 100 ms in which so many milliseconds of CPU were used, some waited and nobody ran.
    fn delayed(used: u64, some: u64, full: u64, reserved: f64) -> f64 {
        let [used, cpu, cpu_full] = [used, some, full].map(Duration::from_millis);
        let pressure = |cpu, cpu_full| Some(Pressure { cpu, cpu_full, ..Pressure::default() });
        let begun =
            Sensors { pressure: pressure(Duration::ZERO, Duration::ZERO), ..Sensors::default() };
        let ended = Sensors { cpu_time: used, pressure: pressure(cpu, cpu_full), ..begun };
        let begun = Reading { at: Timestamp::from_secs(1), sensors: begun };
        let at = Timestamp::from_secs(1) + windfall_core::Duration::from_millis(100);
        begun.delayed_share(&Reading { at, sensors: ended }, reserved)
    }

    #[test]
    fn threads_of_one_call_that_wait_for_each_other_delay_nobody() {
        // Four threads have two cores for 40 ms, and the call waits for a store for 60.
        assert_eq!(delayed(80, 40, 0, 2.0), 0.0);
        // Beside a call like it for 80 ms: it had one core of two.
        assert!((delayed(80, 80, 0, 2.0) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn one_thread_that_waits_loses_all_of_that_time() {
        assert!((delayed(60, 30, 30, 2.0) - 0.3).abs() < 1e-9);
        // At most what its use leaves of the reservation.
        assert!((delayed(90, 30, 30, 1.0) - 0.1).abs() < 1e-9);
    }
}
