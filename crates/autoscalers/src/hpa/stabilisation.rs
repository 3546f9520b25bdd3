//! Stabilisation: recent recommendations limit a change.
//!
//! ```text
//!  without behavior: max of the desired count and all recommendations not older than the window (inclusive)
//!  with behavior:    lo = min of the desired count and those younger than the up window
//!                    hi = max of the desired count and those younger than the down window (exclusive)
//!                    current, raised to lo if lower, then lowered to hi if higher
//! ```
//!
//! Current 5, recommendations of the last minutes 8, 4, 7, and now 3 with a down window that covers all of them:
//! hi = 8, lo = 3 (up window 0), so the count stays at 5. When the 8 and the 7 have left the window, hi = 4 and the
//! count becomes 4.

use super::spec::{Behavior, ControllerSettings};

/// Recent recommendations. Which expired entry upstream overwrites has no visible effect.
#[derive(Clone, Debug, Default)]
pub(super) struct Recommendations {
    past: Vec<(i64, i32)>,
}

impl Recommendations {
    /// Records the current count at the first sync.
    pub(super) fn begin(&mut self, now_ms: i64, replicas: i32) {
        if self.past.is_empty() {
            self.past.push((now_ms, replicas));
        }
    }

    /// Raises the desired count to the recent maximum, and records it.
    pub(super) fn without_behavior(
        &mut self,
        now_ms: i64,
        desired: i32,
        settings: &ControllerSettings,
    ) -> i32 {
        let cutoff = now_ms.saturating_sub(settings.downscale_stabilization_ms);
        self.past.retain(|(at, _)| *at >= cutoff);
        let stabilised = self.past.iter().map(|(_, past)| *past).fold(desired, i32::max);
        self.past.push((now_ms, desired));
        stabilised
    }

    /// Limits the current count by both windows, and records the desired count.
    pub(super) fn with_behavior(
        &mut self,
        now_ms: i64,
        current: i32,
        desired: i32,
        behavior: &Behavior,
        settings: &ControllerSettings,
    ) -> i32 {
        let ms = |seconds: u32| i64::from(seconds) * 1000;
        let up = ms(behavior.scale_up.stabilization_window_seconds.unwrap_or(0));
        let down = behavior.scale_down.stabilization_window_seconds.map(ms);
        // The controller's window counts in whole seconds here.
        let down = down.unwrap_or(settings.downscale_stabilization_ms / 1000 * 1000);
        let younger = |window: i64| {
            self.past
                .iter()
                .filter(move |(at, _)| *at > now_ms.saturating_sub(window))
                .map(|(_, past)| *past)
        };
        let lo = younger(up).fold(desired, i32::min);
        let hi = younger(down).fold(desired, i32::max);
        let longest = up.max(down);
        self.past.retain(|(at, _)| *at > now_ms.saturating_sub(longest));
        self.past.push((now_ms, desired));
        current.max(lo).min(hi)
    }
}
