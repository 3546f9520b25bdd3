//! Idle instances in the order in which they fell idle, as chains through the instances themselves: one
//! of each function, one of each node. An instance leaves both from wherever it stands, at the cost of
//! its two neighbours.
//!
//! ```text
//!   function 7:   12 ⇄ 31 ⇄ 4        first: longest idle, the next to go
//!   node 2:       12 ⇄ 9 ⇄ 4         last: last used, the next to serve
//! ```

use crate::instance::Instance;
use crate::slab::Slab;

/// The chain of all idle instances of a function.
pub(crate) type OfFunction = Chain<0>;
/// The chain of all idle instances on a node.
pub(crate) type OnNode = Chain<1>;

/// Past either end of a chain.
const NOBODY: u32 = u32::MAX;

/// The neighbours of an instance in one chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    before: u32,
    after: u32,
}

impl Links {
    pub(crate) const LOOSE: Self = Self { before: NOBODY, after: NOBODY };
}

/// Both ends of a chain; `WHICH` of its links an instance is chained with.
#[derive(Debug)]
pub(crate) struct Chain<const WHICH: usize> {
    first: u32,
    last: u32,
    len: u32,
}

impl<const WHICH: usize> Chain<WHICH> {
    pub(crate) const EMPTY: Self = Self { first: NOBODY, last: NOBODY, len: 0 };

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The one that has been idle longest.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NOBODY).then_some(self.first)
    }

    /// The one that was used last.
    pub(crate) fn last(&self) -> Option<u32> {
        (self.last != NOBODY).then_some(self.last)
    }

    /// Everyone, last used first.
    pub(crate) fn last_used_first(&self, all: &Slab<Instance>) -> impl Iterator<Item = u32> {
        let earlier = |&instance: &u32| {
            let before = all[instance].links[WHICH].before;
            (before != NOBODY).then_some(before)
        };
        std::iter::successors(self.last(), earlier)
    }

    pub(crate) fn push(&mut self, all: &mut Slab<Instance>, instance: u32) {
        all[instance].links[WHICH] = Links { before: self.last, after: NOBODY };
        match self.last() {
            Some(last) => all[last].links[WHICH].after = instance,
            None => self.first = instance,
        }
        self.last = instance;
        self.len += 1;
    }

    /// Takes out an instance that is in this chain.
    pub(crate) fn remove(&mut self, all: &mut Slab<Instance>, instance: u32) {
        let Links { before, after } = all[instance].links[WHICH];
        match before {
            NOBODY => self.first = after,
            before => all[before].links[WHICH].after = after,
        }
        match after {
            NOBODY => self.last = before,
            after => all[after].links[WHICH].before = before,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windfall_core::{Allocation, Timestamp};

    proptest! {
        #[test]
        fn a_chain_is_a_list_in_the_order_of_arrival(
            moves in proptest::collection::vec(0usize..12, 0..60),
        ) {
            let mut all = Slab::default();
            for _ in 0..12 {
                all.insert(Instance::starting(0, 0, Allocation::ZERO, Timestamp::ZERO));
            }
            let (mut chain, mut list) = (OnNode::EMPTY, Vec::new());
            for item in moves {
                let item = item as u32;
                match list.iter().position(|&other| other == item) {
                    Some(place) => {
                        list.remove(place);
                        chain.remove(&mut all, item);
                    }
                    None => {
                        list.push(item);
                        chain.push(&mut all, item);
                    }
                }
                let from_last: Vec<u32> = list.iter().rev().copied().collect();
                prop_assert_eq!(chain.last_used_first(&all).collect::<Vec<_>>(), from_last);
                prop_assert_eq!(chain.first(), list.first().copied());
                prop_assert_eq!(chain.len() as usize, list.len());
            }
        }
    }
}
