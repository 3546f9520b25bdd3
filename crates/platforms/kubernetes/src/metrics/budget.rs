//! How many requests a pass may make. Advisers are disliked for the queries that bring a Prometheus down; this one
//! stops at a number and goes on at the next pass.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Requests that are left in one pass, and those that were made.
#[derive(Debug, Default)]
pub struct Budget {
    left: AtomicU32,
    made: AtomicU64,
    refused: AtomicU64,
}

impl Budget {
    /// `requests` for one pass.
    pub fn new(requests: u32) -> Self {
        Self { left: AtomicU32::new(requests), ..Self::default() }
    }

    /// Takes one request; false if none is left.
    pub fn take(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let counter = if taken.is_ok() { &self.made } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Requests made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Requests put off to a later pass.
    pub fn put_off(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// A place in a list that is walked a part at a time: each pass goes on behind the last.
#[derive(Debug, Default)]
pub struct Cursor(AtomicU64);

impl Cursor {
    /// The places of a list of `length` for this pass, in order, as long as `budget` lasts.
    pub fn walk<'a>(
        &'a self,
        length: usize,
        budget: &'a Budget,
    ) -> impl Iterator<Item = usize> + 'a {
        let first = self.0.load(Ordering::Relaxed) as usize;
        (0..length).map_while(move |step| {
            budget.take().then(|| {
                self.0.fetch_add(1, Ordering::Relaxed);
                (first + step) % length
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_where_the_budget_ended_it() {
        let cursor = Cursor::default();
        let pass = |requests| cursor.walk(5, &Budget::new(requests)).collect::<Vec<_>>();
        assert_eq!(pass(2), [0, 1]);
        assert_eq!(pass(2), [2, 3]);
        assert_eq!(pass(9), [4, 0, 1, 2, 3]);
    }

    #[test]
    fn requests_beyond_the_budget_are_counted_and_not_made() {
        let budget = Budget::new(1);
        assert!(budget.take() && !budget.take());
        assert_eq!((budget.made(), budget.put_off()), (1, 1));
    }
}
