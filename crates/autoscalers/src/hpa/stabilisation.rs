//! Recommendations of the recent past, which hold a change back.
//!
//! ```text
//!  without behavior: the largest of the wish and all not older than the window (exactly as old counts)
//!  with behavior:    lo = least of the wish and those younger than the up window
//!                    hi = largest of the wish and those younger than the down window (exactly as old: no)
//!                    current, raised to lo if lower, then lowered to hi if higher
//! ```
//!
//! Current 5, wishes of the last minutes 8, 4, 7, and now 3 with a down window that covers all of them:
//! hi = 8, lo = 3 (up window 0), so 5 stays. When the 8 and the 7 have left the window, hi = 4 and 4 it is.

use super::spec::{Behavior, ControllerSettings};

/// Remembered wishes. Which of the expired ones is overwritten cannot be seen from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Recommendations {
    past: Vec<(i64, i32)>,
}

impl Recommendations {
    /// The first sync remembers what it found.
    pub(super) fn begin(&mut self, now_ms: i64, replicas: i32) {
        if self.past.is_empty() {
            self.past.push((now_ms, replicas));
        }
    }

    /// The wish, lifted by the recent past; and remembers it.
    pub(super) fn without_behavior(
        &mut self,
        now_ms: i64,
        wish: i32,
        settings: &ControllerSettings,
    ) -> i32 {
        let cutoff = now_ms.saturating_sub(settings.downscale_stabilization_ms);
        self.past.retain(|(at, _)| *at >= cutoff);
        let stabilised = self.past.iter().map(|(_, past)| *past).fold(wish, i32::max);
        self.past.push((now_ms, wish));
        stabilised
    }

    /// The count between the two windows; and remembers the wish.
    pub(super) fn with_behavior(
        &mut self,
        now_ms: i64,
        current: i32,
        wish: i32,
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
        let lo = younger(up).fold(wish, i32::min);
        let hi = younger(down).fold(wish, i32::max);
        let longest = up.max(down);
        self.past.retain(|(at, _)| *at > now_ms.saturating_sub(longest));
        self.past.push((now_ms, wish));
        current.max(lo).min(hi)
    }
}
