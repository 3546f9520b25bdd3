//! The price of memory when the pool is full.
//!
//! A low price fills the pool, and then every call that misses pushes out an instance that a neighbour
//! needs a second later. So the price climbs by 3 % per tick while more than 92 % of the pool is held and
//! falls by 1 % per tick otherwise, never below the user's own: doubled within a minute, back in two and a
//! half.

use windfall_core::Observation;

/// The share of the pool above which memory becomes dearer.
const FULL: f64 = 0.92;
const RISE: f64 = 1.03;
const FALL: f64 = 0.99;
/// Far beyond any price at which anything is still held.
const MOST: f64 = 1e6;

/// By how much the price of memory is multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShadowPrice {
    factor: f64,
    held_share: f64,
}

impl Default for ShadowPrice {
    fn default() -> Self {
        Self { factor: 1.0, held_share: 0.0 }
    }
}

impl ShadowPrice {
    /// Takes in how full the pool is.
    pub(crate) fn follow(&mut self, seen: &Observation) {
        let instances: f64 = seen
            .functions
            .iter()
            .map(|view| {
                f64::from((view.ready + view.starting).get()) * view.allocation.memory.mib()
            })
            .sum();
        let held = instances.max(seen.cluster.granted_mib);
        let share = held / seen.cluster.capacity_mib;
        // A platform that does not tell its capacity has no full pool.
        self.held_share = if share.is_finite() { share } else { 0.0 };
        let change = if self.held_share > FULL { RISE } else { FALL };
        self.factor = (self.factor * change).clamp(1.0, MOST);
    }

    /// The factor now.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// Whether calls may soon have to push out idle instances.
    pub(crate) fn is_tight(&self) -> bool {
        self.factor > 1.0 || self.held_share > 0.8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::{function, observation};
    use windfall_core::{FunctionView, Instances};

    #[test]
    fn a_full_pool_doubles_the_price_within_a_minute_and_forgets_it() {
        // 64 GiB hold 256 instances of 256 MiB.
        let with =
            |ready| observation(vec![FunctionView { ready: Instances::new(ready), ..function(0) }]);
        let mut price = ShadowPrice::default();
        (0..30).for_each(|_| price.follow(&with(250)));
        assert!(price.factor() > 2.0 && price.is_tight(), "{}", price.factor());
        (0..300).for_each(|_| price.follow(&with(100)));
        assert_eq!(price.factor(), 1.0);
        assert!(!price.is_tight());
    }
}
