//! Peak range: between what and what one call may be sized, by the rules of FaaSRM's safeguard.
//!
//! Per function and per resource, from the finished call that *started* last (its peak and its grant)
//! and from the recent peak, the highest since the last calibration:
//!
//! ```text
//!   no finished call, or it was killed                     { user }                 calibrates
//!   peak / user <= 0.9   peak / grant >= 0.9  a spike      { user }                 calibrates
//!                        otherwise            over         [ min(next, user) .. user ]
//!   peak / user >  0.9                        under        [ min(next, ceiling) .. ceiling ]
//!
//!   next = (floor(recent peak / level) + 1) x level
//! ```
//!
//! Reserved 4 cores, recent peak 1.23 cores, levels of 0.1: the next call gets between 1.3 and 4 cores.
//! A call that calibrates runs at the user's size; where it ends, the recent peak begins anew.

use serde::{Deserialize, Serialize};
use windfall_core::{Allocation, CallId, CallOutcome, FunctionId, Timestamp};

use crate::per_function::PerFunction;

/// Settings of [`PeakRanges`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeakRangeSettings {
    /// Share of the reservation, and of the grant, from which a call counts as needing all of it.
    pub threshold: f64,
    /// One level of CPU, cores; 1 in the paper.
    pub level_cpu_cores: f64,
    /// One level of memory, MiB; 64 in the paper.
    pub level_memory_mib: f64,
}

impl Default for PeakRangeSettings {
    fn default() -> Self {
        Self { threshold: 0.9, level_cpu_cores: 0.1, level_memory_mib: 16.0 }
    }
}

/// The two resources that are sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// CPU, in cores.
    Cpu,
    /// Memory, in MiB.
    Memory,
}

impl Sizing {
    /// This resource of `allocation` as a number.
    pub fn of(self, allocation: Allocation) -> f64 {
        match self {
            Self::Cpu => allocation.cpu.cores(),
            Self::Memory => allocation.memory.mib(),
        }
    }

    fn peak(self, outcome: &CallOutcome) -> f64 {
        let peak = match self {
            Self::Cpu => outcome.cpu_peak_cores,
            Self::Memory => outcome.memory_peak_mib,
        };
        // `max` prefers a number to NaN, so nonsense counts as nothing used.
        peak.max(0.0)
    }
}

/// Grants this close to the reservation are the user's size: a wish in cores is rounded up to whole
/// millicores and may end one above it.
const ROUNDING: f64 = 0.0015;

/// The finished call that started last.
#[derive(Clone, Copy, Debug)]
struct LastStarted {
    started_at: Timestamp,
    id: CallId,
    peak: f64,
    grant: f64,
    was_killed: bool,
}

/// One resource of one function.
#[derive(Clone, Copy, Debug)]
struct Track {
    last: Option<LastStarted>,
    recent_peak: f64,
    /// A call at the user's size that started no earlier than this is a calibration.
    calibrates_from: Option<Timestamp>,
}

impl Default for Track {
    fn default() -> Self {
        Self { last: None, recent_peak: 0.0, calibrates_from: Some(Timestamp::ZERO) }
    }
}

impl Track {
    fn observe(&mut self, resource: Sizing, outcome: &CallOutcome, threshold: f64) {
        let (peak, grant) = (resource.peak(outcome), resource.of(outcome.last_grant));
        let user = resource.of(outcome.reservation);
        let is_calibration = !outcome.was_killed
            && (grant - user).abs() <= ROUNDING
            && self.calibrates_from.is_some_and(|from| outcome.started_at >= from);
        if is_calibration {
            self.recent_peak = peak;
            self.calibrates_from = None;
        } else {
            self.recent_peak = self.recent_peak.max(peak);
        }
        let place = (outcome.started_at, outcome.id);
        if self.last.is_some_and(|last| (last.started_at, last.id) > place) {
            return;
        }
        let last = LastStarted {
            started_at: outcome.started_at,
            id: outcome.id,
            peak,
            grant,
            was_killed: outcome.was_killed,
        };
        self.last = Some(last);
        if last.was_killed || last.is_spike(user, threshold) {
            self.calibrates_from = Some(outcome.ended_at);
        }
    }
}

impl LastStarted {
    fn is_spike(&self, user: f64, threshold: f64) -> bool {
        self.peak <= threshold * user && self.peak >= threshold * self.grant
    }
}

/// The allowed ranges of all functions.
#[derive(Clone, Debug, Default)]
pub struct PeakRanges {
    settings: PeakRangeSettings,
    cpu: PerFunction<Track>,
    memory: PerFunction<Track>,
}

impl PeakRanges {
    /// Ranges of functions that have not been seen yet.
    pub fn new(settings: PeakRangeSettings) -> Self {
        Self { settings, cpu: PerFunction::default(), memory: PerFunction::default() }
    }

    /// Learns from an attempt that has ended.
    pub fn observe(&mut self, outcome: &CallOutcome) {
        let threshold = self.settings.threshold;
        self.cpu.state(outcome.function).observe(Sizing::Cpu, outcome, threshold);
        self.memory.state(outcome.function).observe(Sizing::Memory, outcome, threshold);
    }

    /// The least and the most of `resource` that the next call of `function` may get.
    ///
    /// A ceiling below the reservation counts as the reservation.
    pub fn range(
        &self,
        function: FunctionId,
        resource: Sizing,
        reservation: Allocation,
        ceiling: Allocation,
    ) -> (f64, f64) {
        let (tracks, level) = match resource {
            Sizing::Cpu => (&self.cpu, self.settings.level_cpu_cores),
            Sizing::Memory => (&self.memory, self.settings.level_memory_mib),
        };
        let threshold = self.settings.threshold;
        let cap = resource.of(ceiling);
        let user = resource.of(reservation).min(cap);
        let Some(track) = tracks.known(function) else {
            return (user, user);
        };
        let Some(last) = track.last.filter(|last| !last.was_killed) else {
            return (user, user);
        };
        if last.is_spike(user, threshold) {
            return (user, user);
        }
        let next = ((track.recent_peak / level).floor() + 1.0) * level;
        let top = if last.peak <= threshold * user { user } else { cap };
        (next.min(top), top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::outcome;
    use windfall_core::Mebibytes;

    const USER: Allocation = Allocation::new(4000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);
    const WHO: FunctionId = FunctionId(0);

    /// The `number`-th call: starts at that second, runs for one.
    fn call(number: u64, granted: u32, peak: f64) -> CallOutcome {
        CallOutcome {
            id: CallId(number),
            started_at: Timestamp::from_secs(number),
            ended_at: Timestamp::from_secs(number + 1),
            ..outcome(USER, Allocation::new(granted, 512), peak, 100.0)
        }
    }

    /// The CPU range after `calls`, on the paper's levels of one core.
    fn after(calls: &[CallOutcome]) -> (f64, f64) {
        let settings = PeakRangeSettings { level_cpu_cores: 1.0, ..PeakRangeSettings::default() };
        let mut ranges = PeakRanges::new(settings);
        calls.iter().for_each(|call| ranges.observe(call));
        ranges.range(WHO, Sizing::Cpu, USER, CEILING)
    }

    #[test]
    fn nothing_seen_means_the_users_size() {
        assert_eq!(after(&[]), (4.0, 4.0));
    }

    #[test]
    fn over_provisioned_goes_from_the_next_level_to_the_user() {
        assert_eq!(after(&[call(0, 4000, 1.2)]), (2.0, 4.0));
        // A whole number is rounded up too: floor(2) + 1.
        assert_eq!(after(&[call(0, 4000, 2.0)]), (3.0, 4.0));
        // 3.6 is 0.9 of the user, still over-provisioned, but it touches its grant of 4: a spike.
        assert_eq!(after(&[call(0, 4000, 3.6)]), (4.0, 4.0));
    }

    #[test]
    fn under_provisioned_goes_from_the_next_level_to_the_ceiling() {
        assert_eq!(after(&[call(0, 4000, 3.7)]), (4.0, 8.0));
        assert_eq!(after(&[call(0, 4000, 3.7), call(1, 6000, 5.5)]), (6.0, 8.0));
        assert_eq!(after(&[call(0, 4000, 3.7), call(1, 8000, 8.0)]), (8.0, 8.0));
    }

    #[test]
    fn a_spike_restores_the_user_and_starts_the_recent_peak_anew() {
        let spike = [call(0, 4000, 1.2), call(1, 2000, 1.9)];
        assert_eq!(after(&spike), (4.0, 4.0));
        // The calibration at the user's size peaks at 0.5: the spike of 1.9 is forgotten.
        assert_eq!(after(&[&spike[..], &[call(2, 4000, 0.5)]].concat()), (1.0, 4.0));
        // A call that is no calibration does not forget: it started before the spike was seen.
        let early = CallOutcome { id: CallId(9), ..call(1, 4000, 0.5) };
        assert_eq!(after(&[&spike[..], &[early]].concat()), (2.0, 4.0));
    }

    #[test]
    fn the_recent_peak_is_the_highest_since_calibration() {
        assert_eq!(
            after(&[call(0, 4000, 1.2), call(1, 4000, 2.4), call(2, 4000, 0.3)]),
            (3.0, 4.0)
        );
    }

    #[test]
    fn the_call_that_started_last_decides_not_the_one_that_ended_last() {
        let long = CallOutcome { ended_at: Timestamp::from_secs(50), ..call(1, 2000, 1.9) };
        assert_eq!(after(&[call(0, 4000, 1.2), call(2, 4000, 1.0), long]), (2.0, 4.0));
    }

    #[test]
    fn a_killed_call_restores_the_user() {
        let killed = CallOutcome { was_killed: true, ..call(1, 2000, 1.0) };
        assert_eq!(after(&[call(0, 4000, 1.2), killed.clone()]), (4.0, 4.0));
        // Its retry runs at the user's size under the same number and calibrates.
        let retry = CallOutcome { started_at: killed.ended_at, ..call(1, 4000, 0.2) };
        assert_eq!(after(&[call(0, 4000, 1.2), killed, retry]), (1.0, 4.0));
    }

    #[test]
    fn resources_are_judged_apart() {
        let mut ranges = PeakRanges::default();
        let outcome = CallOutcome { memory_peak_mib: 500.0, ..call(0, 4000, 1.23) };
        ranges.observe(&outcome);
        let (low, high) = ranges.range(WHO, Sizing::Cpu, USER, CEILING);
        assert!((low - 1.3).abs() < 1e-12 && high == 4.0);
        assert_eq!(ranges.range(WHO, Sizing::Memory, USER, CEILING), (512.0, 1024.0));
    }

    #[test]
    fn extremes_stay_in_order() {
        let tiny = Allocation::new(1, 1);
        for peak in [0.0, 1e9, f64::NAN, f64::INFINITY] {
            let mut ranges = PeakRanges::default();
            ranges
                .observe(&CallOutcome { memory_peak_mib: peak, ..outcome(tiny, tiny, peak, 0.0) });
            for resource in [Sizing::Cpu, Sizing::Memory] {
                for ceiling in [CEILING, Allocation { memory: Mebibytes::new(1), ..tiny }] {
                    let (low, high) = ranges.range(WHO, resource, tiny, ceiling);
                    assert!(0.0 <= low && low <= high && high <= resource.of(ceiling), "{peak}");
                }
            }
        }
    }
}
