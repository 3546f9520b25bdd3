//! What FaaSRM's safeguard allows a function's next call, from the peaks of its last ones. Kept here
//! because a policy may choose inside the range that a safeguard enforces.
//!
//! ```text
//!   nothing finished yet, or the last call was killed          {user}           calibration
//!   peak <= 90 % of user, peak >= 90 % of what it had          {user}           usage spike: calibrate again
//!   peak <= 90 % of user                                       [recent peak + a level .. user]
//!   peak >  90 % of user                                       [recent peak + a level .. ceiling]
//! ```
//!
//! `peak` is that of the most recently started call that has finished; the recent peak is the highest
//! since the last calibration. CPU and memory are judged independently; a kill concerns both.

use crate::call::CallOutcome;
use crate::time::Timestamp;
use crate::units::Allocation;
use crate::workload::FunctionId;

/// The knobs of the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakSettings {
    /// Share of an allocation from which use counts as close to it.
    pub threshold: f64,
    /// The grid of sizes: the least is the first level above the recent peak.
    ///
    /// | recent peak | step 1000m | step 100m |
    /// | ----------- | ---------- | --------- |
    /// | 0.73 cores  | 1000m      | 800m      |
    /// | 2.00 cores  | 3000m      | 2100m     |
    pub level: Allocation,
}

impl Default for PeakSettings {
    /// FaaSRM's threshold on a grid of 100m and 32 MiB.
    fn default() -> Self {
        Self { threshold: 0.9, level: Allocation::new(100, 32) }
    }
}

/// What is known of one resource of one function, in whole units of that resource.
#[derive(Clone, Copy, Debug, Default)]
struct Peaks {
    /// Of the most recently started call that has finished.
    latest: f64,
    /// The highest since the last calibration.
    recent: f64,
    /// Whether the latest one came close to what it had.
    is_spike: bool,
}

impl Peaks {
    /// Takes in a peak of a call that had `had` out of the `user`'s allocation.
    fn take(&mut self, peak: f64, had: u32, user: u32, threshold: f64, is_latest: bool) {
        self.recent = self.recent.max(peak);
        if !is_latest {
            return;
        }
        self.latest = peak;
        let is_over_provisioned = peak <= threshold * f64::from(user);
        self.is_spike = is_over_provisioned && peak >= threshold * f64::from(had);
        if self.is_spike {
            self.recent = 0.0;
        }
    }

    fn range(&self, threshold: f64, level: u32, user: u32, ceiling: u32) -> (u32, u32) {
        if self.is_spike {
            return (user, user);
        }
        let is_over_provisioned = self.latest <= threshold * f64::from(user);
        let most = if is_over_provisioned { user } else { ceiling.max(user) };
        let level = level.max(1);
        let below = (self.recent / f64::from(level)).floor() as u32;
        (below.saturating_add(1).saturating_mul(level).min(most), most)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// When the most recently started call that has finished started.
    started_at: Timestamp,
    was_killed: bool,
    cpu: Peaks,
    memory: Peaks,
}

/// The ranges of all functions.
#[derive(Clone, Debug, Default)]
pub struct PeakRange {
    settings: PeakSettings,
    functions: Vec<Option<History>>,
}

impl PeakRange {
    /// Ranges with these settings; every function begins with its user's allocation.
    pub fn new(settings: PeakSettings) -> Self {
        Self { settings, functions: Vec::new() }
    }

    /// Takes in a finished attempt.
    pub fn observe(&mut self, outcome: &CallOutcome) {
        let place = outcome.function.index();
        if place >= self.functions.len() {
            self.functions.resize(place + 1, None);
        }
        let history = self.functions[place].get_or_insert_default();
        let is_latest = outcome.started_at >= history.started_at;
        if is_latest {
            history.started_at = outcome.started_at;
            history.was_killed = outcome.was_killed;
        }
        // Where the grant changed on the way, the larger one is what could have hidden a peak.
        let had = outcome.first_grant.max(outcome.last_grant);
        let user = outcome.reservation;
        let threshold = self.settings.threshold;
        let cpu_peak = outcome.cpu_peak_cores * 1e3;
        history.cpu.take(cpu_peak, had.cpu.get(), user.cpu.get(), threshold, is_latest);
        let memory_peak = outcome.memory_peak_mib;
        history.memory.take(memory_peak, had.memory.get(), user.memory.get(), threshold, is_latest);
        if is_latest && outcome.was_killed {
            history.cpu.recent = 0.0;
            history.memory.recent = 0.0;
        }
    }

    /// Least and most that the next call of `function` may get, resource by resource.
    pub fn range(
        &self,
        function: FunctionId,
        user: Allocation,
        ceiling: Allocation,
    ) -> (Allocation, Allocation) {
        let history = self.functions.get(function.index()).copied().flatten();
        let Some(history) = history.filter(|history| !history.was_killed) else {
            return (user, user);
        };
        let PeakSettings { threshold, level } = self.settings;
        let (user_cpu, most_cpu) = (user.cpu.get(), ceiling.cpu.get());
        let cpu = history.cpu.range(threshold, level.cpu.get(), user_cpu, most_cpu);
        let (user_memory, most_memory) = (user.memory.get(), ceiling.memory.get());
        let memory = history.memory.range(threshold, level.memory.get(), user_memory, most_memory);
        (Allocation::new(cpu.0, memory.0), Allocation::new(cpu.1, memory.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{CallId, NodeId};

    const USER: Allocation = Allocation::new(2000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);

    fn outcome(second: u64, had: Allocation, cores: f64, mib: f64) -> CallOutcome {
        CallOutcome {
            id: CallId(second),
            function: FunctionId(1),
            node: NodeId(0),
            input: None,
            reservation: USER,
            first_grant: had,
            last_grant: had,
            arrived_at: Timestamp::from_secs(second),
            started_at: Timestamp::from_secs(second),
            ended_at: Timestamp::from_secs(second + 1),
            was_killed: false,
            cpu_peak_cores: cores,
            memory_peak_mib: mib,
            cpu_mean_cores: cores,
            throttled: crate::time::Duration::ZERO,
            delayed: crate::time::Duration::ZERO,
        }
    }

    fn next(ranges: &PeakRange) -> (Allocation, Allocation) {
        ranges.range(FunctionId(1), USER, CEILING)
    }

    #[test]
    fn the_published_cases_in_order() {
        let mut ranges = PeakRange::default();
        assert_eq!(next(&ranges), (USER, USER), "nothing finished yet");

        ranges.observe(&outcome(1, USER, 0.73, 100.0));
        assert_eq!(next(&ranges), (Allocation::new(800, 128), USER), "over-provisioned");

        let small = Allocation::new(800, 512);
        ranges.observe(&outcome(2, small, 0.75, 60.0));
        assert_eq!(next(&ranges).0.cpu, USER.cpu, "0.75 of 0.8 is a spike");
        assert_eq!(next(&ranges).0.memory.get(), 128, "memory is judged on its own");

        ranges.observe(&outcome(3, USER, 1.2, 60.0));
        assert_eq!(next(&ranges).0.cpu.get(), 1300, "calibrated anew");

        ranges.observe(&outcome(4, USER, 1.95, 60.0));
        let (least, most) = next(&ranges);
        assert_eq!((least.cpu.get(), most.cpu.get()), (2000, 8000), "under-provisioned");
    }

    #[test]
    fn a_kill_brings_the_users_size_once() {
        let mut ranges = PeakRange::default();
        ranges.observe(&outcome(1, USER, 0.5, 100.0));
        let killed = Allocation::new(600, 128);
        ranges.observe(&CallOutcome { was_killed: true, ..outcome(2, killed, 0.3, 128.0) });
        assert_eq!(next(&ranges), (USER, USER));
        ranges.observe(&outcome(3, USER, 0.4, 200.0));
        assert_eq!(next(&ranges), (Allocation::new(500, 224), USER));
    }

    #[test]
    fn a_call_that_started_earlier_only_raises_the_peak() {
        let mut ranges = PeakRange::default();
        ranges.observe(&outcome(5, USER, 0.5, 100.0));
        // It would have been a spike had it been the latest.
        ranges.observe(&outcome(4, Allocation::new(1000, 512), 0.95, 100.0));
        assert_eq!(next(&ranges).0.cpu.get(), 1000);
    }
}
