//! The largest desired count within the last `scale-down-delay`.
//!
//! ```text
//!  desired  5   3   4   2      only counts that can still be the maximum are kept:
//!  kept     5 ─ 4 ─ 2          3 is dropped when 4 arrives (larger and newer)
//! ```
//!
//! Time is divided into slots of the 2 s between decisions. With a delay of 6 s there are three slots: a 5 in slot 0
//! is the maximum in slots 0, 1 and 2; in slot 3 it is 4.

use std::collections::VecDeque;

/// A sliding maximum over slots of time.
#[derive(Clone, Debug)]
pub struct DelayWindow {
    slots: u64,
    slot_seconds: u64,
    /// Descending values with ascending slots.
    maxima: VecDeque<(u64, i32)>,
}

impl DelayWindow {
    /// Creates a window of `delay_seconds`, divided into slots of `slot_seconds`, rounded up.
    pub fn new(delay_seconds: u32, slot_seconds: u32) -> Self {
        let slot_seconds = u64::from(slot_seconds.max(1));
        let slots = u64::from(delay_seconds).div_ceil(slot_seconds).max(1);
        Self { slots, slot_seconds, maxima: VecDeque::new() }
    }

    /// Records `value` at `second` and returns the maximum of the window.
    pub fn record(&mut self, second: u64, value: i32) -> i32 {
        let slot = second / self.slot_seconds;
        while self.maxima.back().is_some_and(|(_, smaller)| value >= *smaller) {
            self.maxima.pop_back();
        }
        while self.maxima.front().is_some_and(|(old, _)| slot.saturating_sub(*old) >= self.slots) {
            self.maxima.pop_front();
        }
        // Of several values in one slot the largest is kept; what remains at the back is larger.
        if self.maxima.back().is_none_or(|(last, _)| *last != slot) {
            self.maxima.push_back((slot, value));
        }
        self.maxima.front().map_or(value, |(_, largest)| *largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_number() {
        let mut window = DelayWindow::new(6, 2);
        let seen: Vec<i32> = [5, 3, 4, 2]
            .iter()
            .zip(0..)
            .map(|(value, slot)| window.record(slot * 2, *value))
            .collect();
        assert_eq!(seen, [5, 5, 5, 4]);
    }

    #[test]
    fn of_two_values_in_one_slot_the_larger_is_kept() {
        let mut window = DelayWindow::new(2, 2);
        assert_eq!(window.record(4, 7), 7);
        assert_eq!(window.record(5, 3), 7);
        assert_eq!(window.record(6, 3), 3);
    }
}
