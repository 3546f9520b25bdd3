//! What happens next. Integer time; equal times leave in the order they were put in.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use windfall_core::Timestamp;

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
    /// This node is lost.
    NodeFails(u32),
    /// This node comes back.
    NodeReturns(u32),
}

/// Names one entry of the queue for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u64);

impl Token {
    /// Held by a subject that waits for nothing.
    pub(crate) const NONE: Self = Self(u64::MAX);
}

/// The pending events, soonest first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
}

/// Time and token in one number: a single comparison instead of two that the processor cannot predict.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    event: Event,
}

impl Entry {
    fn new(at: Timestamp, token: Token, event: Event) -> Self {
        Self { key: u128::from(at.as_nanos()) << 64 | u128::from(token.0), event }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_nanos((self.key >> 64) as u64)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl EventQueue {
    /// Puts `event` at `at` and returns the name of the entry.
    pub(crate) fn push(&mut self, at: Timestamp, event: Event) -> Token {
        let token = Token(self.pushed);
        self.pushed += 1;
        self.heap.push(Reverse(Entry::new(at, token, event)));
        token
    }

    /// When the next event is due; never, if there is none.
    pub(crate) fn next_at(&self) -> Timestamp {
        self.heap.peek().map_or(Timestamp::MAX, |Reverse(entry)| entry.at())
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, Token, Event)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at(), Token(entry.key as u64), entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
