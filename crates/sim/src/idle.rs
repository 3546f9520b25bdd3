//! Instances that rest, in the order in which they fell idle: by function, to serve the next call, and by
//! node, to give way when it needs their room.
//!
//! A busy function takes the same instance up again and again, so its list is short and searched from
//! the end. A node's list is long and hardly ever read: it is kept as reminders, like events. Who is
//! taken up again leaves its entry behind, which is out of date from then on and is passed over.

use crate::instance::Instance;
use crate::slab::Slab;

/// Names one rest of one instance for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest(u64);

impl Rest {
    /// Held by an instance that does not rest.
    pub(crate) const NONE: Self = Self(u64::MAX);
    /// The first rest of a run.
    pub(crate) const FIRST: Self = Self(0);

    /// The one after this.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The idle instances of a function, last used last.
#[derive(Debug, Default)]
pub(crate) struct OfFunction {
    /// Instance and node.
    resting: Vec<(u32, u32)>,
}

impl OfFunction {
    pub(crate) fn len(&self) -> u32 {
        self.resting.len() as u32
    }

    /// The one that has been idle longest.
    pub(crate) fn first(&self) -> Option<u32> {
        self.resting.first().map(|&(instance, _)| instance)
    }

    /// The one that was used last.
    pub(crate) fn last(&self) -> Option<u32> {
        self.resting.last().map(|&(instance, _)| instance)
    }

    /// The nodes they are on, last used first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.resting.iter().rev().map(|&(_, node)| node)
    }

    pub(crate) fn push(&mut self, instance: u32, node: u32) {
        self.resting.push((instance, node));
    }

    /// Takes out the one on `node` that was used last.
    pub(crate) fn take_on(&mut self, node: u32) -> Option<u32> {
        let place = self.resting.iter().rposition(|&(_, on)| on == node)?;
        Some(self.resting.remove(place).0)
    }

    pub(crate) fn remove(&mut self, instance: u32) {
        if let Some(place) = self.resting.iter().position(|&(other, _)| other == instance) {
            self.resting.remove(place);
        }
    }
}

/// The idle instances on a node, longest idle first.
#[derive(Debug, Default)]
pub(crate) struct OnNode {
    /// Instances with the rests they were in when they came; up to date are those still in it.
    entries: Vec<(u32, Rest)>,
    /// Entries at the beginning that are known to be out of date.
    passed: usize,
    resting: usize,
}

impl OnNode {
    /// Out-of-date entries beyond the number of others at which it is time to tidy up.
    const SLACK: usize = 32;

    #[inline]
    pub(crate) fn push(&mut self, all: &Slab<Instance>, instance: u32, rest: Rest) {
        self.entries.push((instance, rest));
        self.resting += 1;
        if self.entries.len() > 2 * self.resting + Self::SLACK {
            self.tidy_up(all);
        }
    }

    #[inline(never)]
    fn tidy_up(&mut self, all: &Slab<Instance>) {
        self.entries.retain(|&entry| is_up_to_date(all, entry));
        self.passed = 0;
    }

    /// One of them rests no more.
    pub(crate) fn leave(&mut self) {
        self.resting -= 1;
    }

    /// The one that has been idle longest.
    pub(crate) fn first(&mut self, all: &Slab<Instance>) -> Option<u32> {
        while let Some(&entry) = self.entries.get(self.passed) {
            if is_up_to_date(all, entry) {
                return Some(entry.0);
            }
            self.passed += 1;
        }
        None
    }
}

impl OnNode {
    /// All of them, longest idle first.
    pub(crate) fn iter<'a>(&'a self, all: &'a Slab<Instance>) -> impl Iterator<Item = u32> + 'a {
        let entries = self.entries[self.passed..].iter();
        entries.filter(|entry| is_up_to_date(all, **entry)).map(|entry| entry.0)
    }
}

fn is_up_to_date(all: &Slab<Instance>, (instance, rest): (u32, Rest)) -> bool {
    all.get(instance).is_some_and(|state| state.rest == rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windfall_core::{Allocation, Timestamp};

    proptest! {
        #[test]
        fn the_longest_idle_of_a_node_is_found_however_often_others_come_and_go(
            moves in proptest::collection::vec(0u32..12, 0..400),
        ) {
            let mut all = Slab::default();
            for _ in 0..12 {
                all.insert(Instance::starting(0, 0, Allocation::ZERO, Timestamp::ZERO));
            }
            let (mut idle, mut list, mut rest) = (OnNode::default(), Vec::new(), Rest::FIRST);
            for instance in moves {
                if let Some(place) = list.iter().position(|&other| other == instance) {
                    list.remove(place);
                    all[instance].rest = Rest::NONE;
                    idle.leave();
                } else {
                    list.push(instance);
                    rest = rest.next();
                    all[instance].rest = rest;
                    idle.push(&all, instance, rest);
                    // It tidies up when one comes, not when one goes.
                    prop_assert!(idle.entries.len() <= 2 * list.len() + OnNode::SLACK);
                }
                prop_assert_eq!(idle.first(&all), list.first().copied());
            }
        }
    }
}
