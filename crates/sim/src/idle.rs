//! Instances that rest: by function and node, to serve the next call, and by age, to give way to others.
//!
//! A call starts on the node that the walk has chosen, in the instance that was used last there. So the
//! idle instances of a function form a stack on each node, linked through the instances themselves:
//!
//! ```text
//!   function ─► node 3: top ─► used last ─► used before ─► longest idle ◄─ bottom
//!            └► node 7: top ─► ...
//! ```
//!
//! A busy function puts the same instance down and takes it up again a few nanoseconds of our time later:
//! both touch the stack and the instance, and move nothing.

use crate::instance::Instance;
use crate::slab::Slab;

/// Names one rest of one instance for ever; who rests longer has the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// No instance.
const NOBODY: u32 = u32::MAX;

/// The neighbours of a resting instance in its stack. Nobody is above the top, whatever its link says: who
/// takes the top up has no business with the one below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    above: u32,
    below: u32,
}

impl Neighbours {
    pub(crate) const NONE: Self = Self { above: NOBODY, below: NOBODY };
}

/// The idle instances of a function on one node. An empty stack has no top, and a bottom without meaning.
#[derive(Clone, Copy, Debug)]
struct Stack {
    node: u32,
    top: u32,
    bottom: u32,
}

/// The idle instances of a function.
#[derive(Debug, Default)]
pub(crate) struct OfFunction {
    /// One for each node on which an instance has rested and was not stopped since.
    stacks: Vec<Stack>,
    len: u32,
}

impl OfFunction {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    fn filled(&self) -> impl Iterator<Item = &Stack> {
        self.stacks.iter().filter(|stack| stack.top != NOBODY)
    }

    /// The one that has been idle longest.
    pub(crate) fn first(&self, all: &Slab<Instance>) -> Option<u32> {
        self.filled().map(|stack| stack.bottom).min_by_key(|&bottom| all[bottom].rest)
    }

    /// The one that was used last.
    pub(crate) fn last(&self, all: &Slab<Instance>) -> Option<u32> {
        self.last_where(all, |_| true)
    }

    /// The one that was used last among those on nodes that are `fit`.
    pub(crate) fn last_where(
        &self,
        all: &Slab<Instance>,
        fit: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let tops = self.filled().filter(|stack| fit(stack.node)).map(|stack| stack.top);
        tops.max_by_key(|&top| all[top].rest)
    }

    #[inline]
    pub(crate) fn push(&mut self, all: &mut Slab<Instance>, instance: u32, node: u32) {
        self.len += 1;
        let Some(stack) = self.stacks.iter_mut().find(|stack| stack.node == node) else {
            all[instance].neighbours = Neighbours::NONE;
            return self.stacks.push(Stack { node, top: instance, bottom: instance });
        };
        let below = std::mem::replace(&mut stack.top, instance);
        all[instance].neighbours.below = below;
        if below == NOBODY {
            stack.bottom = instance;
        } else {
            all[below].neighbours.above = instance;
        }
    }

    /// Takes out the one on `node` that was used last.
    #[inline]
    pub(crate) fn take_on(&mut self, all: &Slab<Instance>, node: u32) -> Option<u32> {
        let stack = self.stacks.iter_mut().find(|stack| stack.node == node)?;
        let top = Some(stack.top).filter(|&top| top != NOBODY)?;
        stack.top = all[top].neighbours.below;
        self.len -= 1;
        Some(top)
    }

    /// Takes out one of them that goes for good.
    pub(crate) fn remove(&mut self, all: &mut Slab<Instance>, instance: u32) {
        let Instance { node, neighbours: Neighbours { above, below }, .. } = all[instance];
        let Some(place) = self.stacks.iter().position(|stack| stack.node == node) else { return };
        let stack = &mut self.stacks[place];
        let (is_top, is_bottom) = (stack.top == instance, stack.bottom == instance);
        self.len -= 1;
        match (is_top, is_bottom) {
            (true, true) => _ = self.stacks.swap_remove(place),
            (true, false) => stack.top = below,
            (false, true) => {
                stack.bottom = above;
                all[above].neighbours.below = NOBODY;
            }
            (false, false) => {
                all[above].neighbours.below = below;
                all[below].neighbours.above = above;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windfall_core::{Allocation, Timestamp};

    proptest! {
        #[test]
        fn first_last_and_next_are_those_of_a_plain_list(
            moves in proptest::collection::vec((0u32..12, any::<bool>()), 0..400),
        ) {
            let mut all = Slab::default();
            for instance in 0..12 {
                all.insert(Instance::starting(0, instance % 3, Allocation::ZERO, Timestamp::ZERO));
            }
            let (mut idle, mut list, mut rest) = (OfFunction::default(), Vec::new(), Rest::FIRST);
            for (instance, is_stopped) in moves {
                let node = instance % 3;
                if let Some(place) = list.iter().position(|&other| other == instance) {
                    let newest = list.iter().rposition(|other| other % 3 == node);
                    if is_stopped {
                        idle.remove(&mut all, instance);
                        list.remove(place);
                    } else {
                        let taken = newest.map(|place| list.remove(place));
                        prop_assert_eq!(idle.take_on(&all, node), taken);
                    }
                } else {
                    rest = rest.next();
                    all[instance].rest = rest;
                    idle.push(&mut all, instance, node);
                    list.push(instance);
                }
                prop_assert_eq!(idle.len() as usize, list.len());
                prop_assert_eq!(idle.first(&all), list.first().copied());
                prop_assert_eq!(idle.last(&all), list.last().copied());
                let elsewhere = list.iter().rfind(|other| *other % 3 != node).copied();
                prop_assert_eq!(idle.last_where(&all, |other| other != node), elsewhere);
            }
        }
    }
}
