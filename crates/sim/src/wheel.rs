//! Numbers filed by the stretch of time they belong to: the middle distance of the event queue.
//!
//! One slot for each of the next 1,024 stretches, used over and over as time turns; a slot is a chain
//! through a common pool, and a bit says whether it holds anything. Filing a number and finding the next
//! slot that is not empty take a handful of instructions, whatever the wheel holds.

/// Slots, a power of two.
pub(crate) const SLOTS: u64 = 1024;
const WORDS: usize = (SLOTS / 64) as usize;
/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Entries by stretch. The caller sees to it that all stretches lie within [`SLOTS`] of each other.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The first of each slot's chain.
    first: Vec<u32>,
    is_filled: [u64; WORDS],
    pool: Vec<Link>,
    /// The first free link.
    free: u32,
}

#[derive(Debug)]
struct Link {
    entry: u128,
    next: u32,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            first: vec![NONE; SLOTS as usize],
            is_filled: [0; WORDS],
            pool: Vec::new(),
            free: NONE,
        }
    }
}

impl Wheel {
    /// Files `entry` under `stretch`.
    #[inline]
    pub(crate) fn file(&mut self, stretch: u64, entry: u128) {
        let slot = (stretch % SLOTS) as usize;
        let link = Link { entry, next: self.first[slot] };
        self.first[slot] = if let Some(place) = self.pool.get_mut(self.free as usize) {
            std::mem::replace(&mut self.free, std::mem::replace(place, link).next)
        } else {
            self.pool.push(link);
            (self.pool.len() - 1) as u32
        };
        self.is_filled[slot / 64] |= 1 << (slot % 64);
    }

    /// How many stretches after `stretch` the next one is that holds anything, if any does.
    #[inline]
    pub(crate) fn ahead(&self, stretch: u64) -> Option<u64> {
        let from = ((stretch + 1) % SLOTS) as usize;
        // The first word is looked through twice: first what lies after `from`, at the end the rest.
        let (word, bit) = (from / 64, from % 64);
        let rest = self.is_filled[word] >> bit;
        if rest != 0 {
            return Some(1 + u64::from(rest.trailing_zeros()));
        }
        let mut passed = 64 - bit as u64;
        for step in 1..=WORDS {
            let filled = self.is_filled[(word + step) % WORDS];
            if filled != 0 {
                return Some(1 + passed + u64::from(filled.trailing_zeros()));
            }
            passed += 64;
        }
        None
    }

    /// Takes out everything that is filed under `stretch`, in no order.
    #[inline]
    pub(crate) fn take(&mut self, stretch: u64, mut give: impl FnMut(u128)) {
        let slot = (stretch % SLOTS) as usize;
        let mut place = std::mem::replace(&mut self.first[slot], NONE);
        self.is_filled[slot / 64] &= !(1 << (slot % 64));
        while let Some(link) = self.pool.get_mut(place as usize) {
            give(link.entry);
            let next = std::mem::replace(&mut link.next, self.free);
            self.free = std::mem::replace(&mut place, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_filed_is_found_in_the_order_of_the_stretches(
            from in 0u64..5000, ahead in proptest::collection::vec(1..SLOTS, 0..60),
        ) {
            let (mut wheel, mut now) = (Wheel::default(), from);
            for (entry, ahead) in (0u128..).zip(&ahead) {
                wheel.file(from + ahead, entry);
            }
            let mut found = Vec::new();
            while let Some(step) = wheel.ahead(now) {
                now += step;
                wheel.take(now, |entry| found.push((now - from, entry)));
            }
            found.sort_unstable();
            let mut filed: Vec<_> = ahead.into_iter().zip(0u128..).collect();
            filed.sort_unstable();
            prop_assert_eq!(found, filed);
        }
    }
}
