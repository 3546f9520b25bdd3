//! The price of memory when the pool is full.
//!
//! A low price fills the pool, and then every cold start evicts an instance that another function needs a
//! second later. So the price rises while more than the share `full` of the pool is held, and falls otherwise:
//! faster the further the share is from `full` and the faster it changes, but never below the user's own price.
//! A pool that stays at 96 % raises the price by 4 % per tick, which doubles it within 36 s; one at 80 % lowers it
//! by 13 % per tick. The numbers are fitted on training functions (`experiments/scaling_frontier`).
//!
//! ```text
//!   pressure        p = held share - full + trend x (held share - held share one tick ago)
//!   price per tick  x e^(rise + gain p) where p > 0, else x e^(-fall + gain p)
//! ```

use serde::{Deserialize, Serialize};
use windfall_core::Observation;

/// How the price of memory follows the occupancy of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShadowLaw {
    /// Share of the pool above which the price rises.
    pub full: f64,
    /// Rise per tick, as a logarithm.
    pub rise: f64,
    /// Fall per tick otherwise, as a logarithm.
    pub fall: f64,
    /// Gain on the distance from `full`.
    pub gain: f64,
    /// Number of ticks by which the last change of the share is extrapolated.
    pub trend: f64,
}

impl Default for ShadowLaw {
    fn default() -> Self {
        Self { full: 0.94, rise: 0.02, fall: 0.005, gain: 1.0, trend: 5.0 }
    }
}

/// Upper bound of the factor, far above any price at which an instance is held.
const MOST: f64 = 1e6;

/// Factor on the price of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShadowPrice {
    law: ShadowLaw,
    factor: f64,
    held_share: f64,
}

impl ShadowPrice {
    /// Starts with a factor of 1: the user's own price.
    pub(crate) fn new(law: ShadowLaw) -> Self {
        Self { law, factor: 1.0, held_share: 0.0 }
    }

    /// Updates the factor with the occupancy of the pool.
    pub(crate) fn follow(&mut self, seen: &Observation) {
        let instances: f64 = seen
            .functions
            .iter()
            .map(|view| {
                f64::from((view.ready + view.starting).get()) * view.idle_size().memory.mib()
            })
            .sum();
        let held = instances.max(seen.cluster.granted_mib);
        let share = held / seen.cluster.capacity_mib;
        // If the platform does not report its capacity, the pool counts as empty.
        let share = if share.is_finite() { share } else { 0.0 };
        let before = std::mem::replace(&mut self.held_share, share);
        let ShadowLaw { full, rise, fall, gain, trend } = self.law;
        let pressure = share - full + trend * (share - before);
        let step = if pressure > 0.0 { rise } else { -fall };
        self.factor = (self.factor * (step + gain * pressure).exp()).clamp(1.0, MOST);
    }

    /// Current factor.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// Whether calls may soon have to evict idle instances.
    pub(crate) fn is_tight(&self) -> bool {
        self.factor > 1.0 || self.held_share > 0.8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::{function, observation};
    use windfall_core::{FunctionView, Instances, Mebibytes};

    #[test]
    fn a_full_pool_doubles_the_price_within_a_minute_and_an_emptier_one_resets_it() {
        // 64 GiB hold 256 instances of 256 MiB.
        let with =
            |ready| observation(vec![FunctionView { ready: Instances::new(ready), ..function(0) }]);
        let mut price = ShadowPrice::new(ShadowLaw::default());
        (0..30).for_each(|_| price.follow(&with(250)));
        assert!(price.factor() > 2.0 && price.is_tight(), "{}", price.factor());
        (0..300).for_each(|_| price.follow(&with(100)));
        assert_eq!(price.factor(), 1.0);
        assert!(!price.is_tight());
    }

    #[test]
    fn the_occupancy_counts_the_memory_that_idle_instances_keep() {
        // 250 instances of 256 MiB would fill 64 GiB; they keep 64 MiB each.
        let view = FunctionView {
            ready: Instances::new(250),
            kept: Some(Mebibytes::new(64)),
            ..function(0)
        };
        let mut price = ShadowPrice::new(ShadowLaw::default());
        (0..30).for_each(|_| price.follow(&observation(vec![view.clone()])));
        assert_eq!(price.factor(), 1.0);
        assert!(!price.is_tight());
    }
}
