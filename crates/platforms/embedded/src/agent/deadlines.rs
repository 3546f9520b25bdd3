//! When something is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windfall_core::{CallId, Timestamp};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The control looks at a call for the time after so many looks.
    Look { call: CallId, attempt: u32, looks: u32 },
    /// The control looks at all calls if some of them still wait for CPU.
    NodeShort,
    /// A sample of the sensors of a call, for its outcome.
    Sample { call: CallId, attempt: u32 },
    /// A call that still waits is given up.
    GiveUp { call: CallId },
}

/// A heap of deadlines. What is no longer wanted stays until it is due and is ignored then.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Timestamp, Due)>>,
}

impl Deadlines {
    pub(super) fn push(&mut self, at: Timestamp, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next thing that is due by `now`.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, due))| due)
    }
}
