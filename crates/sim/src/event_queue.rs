//! What happens next. Integer time; equal times leave in the order they were put in.
//!
//! Three distances. What is due within the stretch of 8 ms under way, or was put in later for a moment
//! before its end, lies in a sorted list that is rarely more than a few entries long. What comes within the
//! next 1,023 stretches, some 8 s, is filed by stretch and sorted only when its stretch has come. The rest,
//! a few long calls and the ends of keep-alives, waits in a heap.
//!
//! ```text
//!   now ▕ soon: list ▕ wheel: 8 ms │ 8 ms │ 8 ms │ … │ 8 ms ▕ far: heap  ──►
//! ```
//!
//! An entry is one number, so that "sooner" is one comparison and moving it is one copy:
//!
//! ```text
//!   127            70 69          32 31   28 27             0
//!  ┌─────────────────┬──────────────┬───────┬───────────────┐
//!  │  time, 58 bits  │ token, 38    │ kind  │    subject    │
//!  └─────────────────┴──────────────┴───────┴───────────────┘
//!    9.1 years of ns   274 billion     16      268 million
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windfall_core::Timestamp;

use crate::wheel::{SLOTS, Wheel};

/// What can happen. Each event is a reminder: if its token is no longer the one its subject holds, the
/// subject has changed its mind and nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The call in this slot ends or outgrows its memory.
    CallTurns(u32),
    /// The call in this slot is looked at.
    Look(u32),
    /// A change of the grant of the call in this slot takes effect.
    Resize(u32),
    /// A change of size of this function's instances takes effect.
    InstancesResize(u32),
    /// The instance in this slot can serve.
    InstanceReady(u32),
    /// The calls of the instance in this slot together outgrow its memory.
    InstanceOutgrows(u32),
    /// Idle instances of this function have reached the end of their keep-alive.
    KeepAliveEnds(u32),
    /// A stretch of some call ends on this contended node.
    ShareChanges(u32),
    /// This node has been short of CPU for a moment.
    NodeShort(u32),
    /// This node is lost.
    NodeFails(u32),
    /// This node comes back.
    NodeReturns(u32),
}

/// Identifies one entry of the queue; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u64);

impl Token {
    /// Held by a subject that waits for nothing.
    pub(crate) const NONE: Self = Self(u64::MAX);
}

impl Default for Token {
    fn default() -> Self {
        Self::NONE
    }
}

/// The pending events, soonest first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    /// Everything up to the end of the stretch under way, soonest last; empty only if there is nothing at
    /// all.
    soon: Vec<Entry>,
    /// Everything in the stretches that follow, as far as the wheel reaches.
    wheel: Wheel,
    /// Everything later.
    far: BinaryHeap<Reverse<Entry>>,
    /// The stretch under way: time over 2^23 ns.
    stretch: u64,
    len: usize,
    pushed: u64,
}

/// Time, token, kind and subject, in this order from the highest bit.
type Entry = u128;

const SUBJECT_BITS: u32 = 28;
const EVENT_BITS: u32 = SUBJECT_BITS + 4;
const TOKEN_BITS: u32 = 38;
const TIME_SHIFT: u32 = EVENT_BITS + TOKEN_BITS;
/// Nothing that is simulated lasts nine years; what would happen later never does.
const LAST: u64 = u64::MAX >> (64 - (128 - TIME_SHIFT));
/// A stretch is 2^23 ns: 8.4 ms.
const STRETCH_SHIFT: u32 = TIME_SHIFT + 23;

impl Event {
    fn code(self) -> u32 {
        let (kind, subject) = match self {
            Self::CallTurns(call) => (0, call),
            Self::Look(call) => (1, call),
            Self::Resize(call) => (2, call),
            Self::InstanceReady(instance) => (3, instance),
            Self::InstanceOutgrows(instance) => (4, instance),
            Self::KeepAliveEnds(function) => (5, function),
            Self::ShareChanges(node) => (6, node),
            Self::NodeShort(node) => (10, node),
            Self::NodeFails(node) => (7, node),
            Self::NodeReturns(node) => (8, node),
            Self::InstancesResize(function) => (9, function),
        };
        debug_assert!(subject < 1 << SUBJECT_BITS, "{self:?}");
        kind << SUBJECT_BITS | subject
    }

    fn from_code(code: u32) -> Self {
        let subject = code & ((1 << SUBJECT_BITS) - 1);
        match code >> SUBJECT_BITS {
            0 => Self::CallTurns(subject),
            1 => Self::Look(subject),
            2 => Self::Resize(subject),
            3 => Self::InstanceReady(subject),
            4 => Self::InstanceOutgrows(subject),
            5 => Self::KeepAliveEnds(subject),
            6 => Self::ShareChanges(subject),
            10 => Self::NodeShort(subject),
            7 => Self::NodeFails(subject),
            8 => Self::NodeReturns(subject),
            _ => Self::InstancesResize(subject),
        }
    }
}

fn time_of(entry: Entry) -> Timestamp {
    Timestamp::from_nanos((entry >> TIME_SHIFT) as u64)
}

fn stretch_of(entry: Entry) -> u64 {
    (entry >> STRETCH_SHIFT) as u64
}

impl EventQueue {
    /// Puts `event` at `at` and returns the name of the entry.
    #[inline]
    pub(crate) fn push(&mut self, at: Timestamp, event: Event) -> Token {
        let token = self.pushed;
        assert!(token < 1 << TOKEN_BITS, "a run has at most 274 billion events");
        self.pushed += 1;
        let at = u128::from(at.as_nanos().min(LAST)) << TIME_SHIFT;
        let entry = at | u128::from(token << EVENT_BITS | u64::from(event.code()));
        let stretch = stretch_of(entry);
        if self.len == 0 {
            self.stretch = stretch;
        }
        self.len += 1;
        self.file(stretch, entry);
        Token(token)
    }

    #[inline]
    fn file(&mut self, stretch: u64, entry: Entry) {
        if stretch <= self.stretch {
            let place = self.soon.partition_point(|&other| other > entry);
            self.soon.insert(place, entry);
        } else if stretch < self.stretch + SLOTS {
            self.wheel.file(stretch, entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// When the next event is due; never, if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Timestamp {
        self.soon.last().map_or(Timestamp::MAX, |&entry| time_of(entry))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, Token, Event)> {
        let entry = self.soon.pop()?;
        self.len -= 1;
        if self.soon.is_empty() && self.len > 0 {
            self.turn();
        }
        let token = (entry >> EVENT_BITS) as u64 & ((1 << TOKEN_BITS) - 1);
        Some((time_of(entry), Token(token), Event::from_code(entry as u32)))
    }

    /// Goes on to the next stretch in which anything happens.
    fn turn(&mut self) {
        let next_far = self.far.peek().map(|&Reverse(entry)| stretch_of(entry));
        self.stretch = match self.wheel.ahead(self.stretch) {
            // Whatever is far lies beyond everything on the wheel.
            Some(ahead) => self.stretch + ahead,
            None => next_far.unwrap_or(self.stretch),
        };
        let soon = &mut self.soon;
        self.wheel.take(self.stretch, |entry| soon.push(entry));
        if soon.len() > 1 {
            soon.sort_unstable_by(|a, b| b.cmp(a));
        }
        while let Some(&Reverse(entry)) = self.far.peek()
            && stretch_of(entry) < self.stretch + SLOTS
        {
            self.far.pop();
            self.file(stretch_of(entry), entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_leave_in_insertion_order() {
        let mut queue = EventQueue::default();
        let (early, late) = (Timestamp::from_secs(1), Timestamp::from_secs(2));
        queue.push(late, Event::Look(0));
        queue.push(early, Event::Look(9));
        queue.push(early, Event::CallTurns(3));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, _, event)| event).collect();
        assert_eq!(order, [Event::Look(9), Event::CallTurns(3), Event::Look(0)]);
    }

    #[test]
    fn an_event_far_beyond_any_run_comes_last() {
        let mut queue = EventQueue::default();
        queue.push(Timestamp::from_nanos(u64::MAX - 1), Event::KeepAliveEnds(1));
        queue.push(Timestamp::from_secs(1 << 27), Event::NodeReturns((1 << 28) - 1));
        assert_eq!(queue.pop().map(|(_, _, event)| event), Some(Event::NodeReturns((1 << 28) - 1)));
        assert!(queue.next_at() > Timestamp::from_secs(1 << 28));
    }

    proptest! {
        #[test]
        fn events_leave_by_time_and_then_in_the_order_they_came(
            moves in proptest::collection::vec(
                proptest::option::of((0u64..20, 0u64..40).prop_map(|(far, near)| near << far)),
                0..300,
            ),
        ) {
            let (mut queue, mut list) = (EventQueue::default(), Vec::new());
            for (order, push) in (0u32..).zip(moves) {
                if let Some(at) = push {
                    // From nanoseconds to minutes, in powers of two and times eight thousand.
                    let at = Timestamp::from_nanos(at << 13);
                    let token = queue.push(at, Event::Look(order));
                    list.push((at, token, Event::Look(order)));
                } else {
                    // The first of the soonest: a stable sort would put it in front.
                    let next = list.iter().enumerate().min_by_key(|(_, (at, ..))| *at);
                    let next = next.map(|(place, _)| place);
                    prop_assert_eq!(queue.pop(), next.map(|place| list.remove(place)));
                }
                prop_assert_eq!(queue.len(), list.len());
            }
        }
    }
}
