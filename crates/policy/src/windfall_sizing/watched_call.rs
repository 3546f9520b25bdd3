//! State of one running call between looks.

use windfall_core::RunningCall;

use super::usage_level::UsageLevel;

/// Throttled share of a window above which a call counts as saturated.
const SATURATED: f64 = 0.02;

/// One running call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchedCall {
    /// CPU use in the current phase.
    pub(super) level: UsageLevel,
    /// Highest settled use in any phase so far, cores; zero before the first.
    pub(super) settled: f64,
    /// CPU at the start, cores.
    pub(super) first: f64,
    /// Whether the call has been trimmed.
    pub(super) was_trimmed: bool,
    /// Seconds throttled as sampled at looks, and the part of them before the first trim.
    pub(super) throttled: f64,
    pub(super) throttled_first: f64,
    /// Largest grant at which the call was throttled, cores.
    pub(super) throttled_at: f64,
    /// Memory at the last look, MiB, and its largest growth between two looks.
    pub(super) memory: f64,
    pub(super) jump: f64,
}

impl WatchedCall {
    pub(super) fn new(running: &RunningCall) -> Self {
        Self { first: running.grant.cpu.cores(), jump: 1.0, ..Self::default() }
    }

    /// Adds a window. Returns whether the call was throttled in it.
    pub(super) fn record(&mut self, running: &RunningCall) -> bool {
        let (sensed, grant) = (&running.sensed, running.grant.cpu.cores());
        let seconds = sensed.window.as_secs_f64();
        if self.memory > 0.0 {
            self.jump = self.jump.max(sensed.memory_mib / self.memory);
        }
        self.memory = sensed.memory_mib;
        if sensed.throttled_share > SATURATED {
            let throttled = sensed.throttled_share * seconds;
            self.throttled += throttled;
            if !self.was_trimmed {
                self.throttled_first += throttled;
            }
            self.throttled_at = self.throttled_at.max(grant);
            return true;
        }
        self.level.record(sensed.cpu_used_cores, seconds);
        if self.level.is_settled() {
            self.settled = self.settled.max(self.level.cores());
        }
        false
    }
}
