//! What is known of one running call, from look to look.

use windfall_core::RunningCall;

use super::usage_level::UsageLevel;

/// Throttled share of a window from which a call wants more than it has.
const SATURATED: f64 = 0.02;

/// One running call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchedCall {
    /// What it uses in this stretch.
    pub(super) level: UsageLevel,
    /// The highest use it settled at in any stretch so far, cores; zero before the first.
    pub(super) settled: f64,
    /// What it started with, cores.
    pub(super) first: f64,
    /// Whether anything was taken from it yet.
    pub(super) was_trimmed: bool,
    /// Seconds throttled that looks have told of, and those of them before the first trim.
    pub(super) throttled: f64,
    pub(super) throttled_first: f64,
    /// The largest grant at which it was throttled, cores.
    pub(super) throttled_at: f64,
    /// Memory at the last look, MiB, and its largest growth between two looks.
    pub(super) memory: f64,
    pub(super) jump: f64,
}

impl WatchedCall {
    pub(super) fn new(running: &RunningCall) -> Self {
        Self { first: running.grant.cpu.cores(), jump: 1.0, ..Self::default() }
    }

    /// Takes in a window; tells whether the call wanted more than it had.
    pub(super) fn see(&mut self, running: &RunningCall) -> bool {
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
        self.level.see(sensed.cpu_used_cores, seconds);
        if self.level.is_settled() {
            self.settled = self.settled.max(self.level.cores());
        }
        false
    }
}
