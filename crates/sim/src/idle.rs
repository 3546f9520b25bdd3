//! Instances that rest: by function and node, to serve the next call, and by age, to give way to others.
//!
//! A call starts on the node that was chosen for it, in the instance that was used last there. So the idle
//! instances of a function form a stack on each node, linked through the instances themselves. Stacks are
//! found by how many steps of the walk their node is away from the function's home:
//!
//! ```text
//!   function ─► home:       top ─► used last ─► used before ─► longest idle ◄─ bottom
//!               one step:   top ─► ...
//! ```
//!
//! A busy function puts the same instance down and takes it up again a few nanoseconds of our time later:
//! both touch the stack and the instance, and move nothing.

use crate::instance::Instance;
use crate::slab::Slab;

/// Identifies one idle period of one instance. Lower values have been idle longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rest(u64);

impl Rest {
    /// Held by an instance that does not rest.
    pub(crate) const NONE: Self = Self(u64::MAX);
    /// The first idle period of a run.
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
    top: u32,
    bottom: u32,
}

impl Stack {
    const EMPTY: Self = Self { top: NOBODY, bottom: NOBODY };
}

/// The idle instances of a function.
#[derive(Debug, Default)]
pub(crate) struct OfFunction {
    /// By steps from home, as far as an instance has ever rested.
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

    /// The last used one of each node.
    pub(crate) fn tops(&self) -> impl Iterator<Item = u32> {
        self.filled().map(|stack| stack.top)
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
        let tops = self.tops().filter(|&top| fit(all[top].node));
        tops.max_by_key(|&top| all[top].rest)
    }

    #[inline]
    pub(crate) fn push(&mut self, all: &mut Slab<Instance>, instance: u32) {
        let steps = all[instance].steps as usize;
        if steps >= self.stacks.len() {
            self.stacks.resize(steps + 1, Stack::EMPTY);
        }
        self.len += 1;
        let stack = &mut self.stacks[steps];
        let below = std::mem::replace(&mut stack.top, instance);
        all[instance].neighbours.below = below;
        // Without a branch, as it depends on nothing that could be foreseen: the first of a stack becomes
        // its own neighbour above, which is as good as none.
        let is_first = below == NOBODY;
        stack.bottom = if is_first { instance } else { stack.bottom };
        all[if is_first { instance } else { below }].neighbours.above = instance;
    }

    /// Takes out the one so many `steps` from home that was used last.
    #[inline]
    pub(crate) fn take_at(&mut self, all: &Slab<Instance>, steps: u32) -> Option<u32> {
        let stack = self.stacks.get_mut(steps as usize)?;
        let top = Some(stack.top).filter(|&top| top != NOBODY)?;
        stack.top = all[top].neighbours.below;
        self.len -= 1;
        Some(top)
    }

    /// Takes out any of them.
    pub(crate) fn remove(&mut self, all: &mut Slab<Instance>, instance: u32) {
        let Instance { steps, neighbours: Neighbours { above, below }, .. } = all[instance];
        let stack = &mut self.stacks[steps as usize];
        let (is_top, is_bottom) = (stack.top == instance, stack.bottom == instance);
        if is_top {
            stack.top = below;
        } else {
            all[above].neighbours.below = below;
        }
        if is_bottom {
            stack.bottom = above;
        } else {
            all[below].neighbours.above = above;
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Place;
    use proptest::prelude::*;
    use windfall_core::{Allocation, Timestamp};

    proptest! {
        #[test]
        fn first_last_and_next_are_those_of_a_plain_list(
            moves in proptest::collection::vec((0u32..12, any::<bool>()), 0..400),
        ) {
            let mut all = Slab::default();
            for instance in 0..12 {
                let place = Place { node: instance % 3, steps: instance % 3 };
                all.insert(Instance::starting(0, place, Allocation::ZERO, Timestamp::ZERO));
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
                        prop_assert_eq!(idle.take_at(&all, node), taken);
                    }
                } else {
                    rest = rest.next();
                    all[instance].rest = rest;
                    idle.push(&mut all, instance);
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
