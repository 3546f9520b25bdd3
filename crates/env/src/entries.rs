//! The environments of this crate in which one agent acts, by their ids.

use windfall_rl::any_learner::{AnySettings, Kind};
use windfall_rl::catalogue::twenty;
use windfall_rl::env::Environment;
use windfall_rl::{Entry, Split};

use crate::scaling::{ID, Scaling, ScalingSettings};

/// For `windfall train`, `evaluate` and `env`.
pub const ENTRIES: [Entry; 1] = [Entry {
    id: ID,
    summary: "one function on shared nodes with changing load; its neighbours follow the queueing rule",
    make: scaling,
    panel: |split| twenty(scaling, split),
    suggested,
    environments: 8,
}];

fn scaling(split: Split) -> Box<dyn Environment> {
    Box::new(Scaling::new(ScalingSettings { split, ..ScalingSettings::default() }))
}

fn suggested(_kind: Kind, _iterations: u64) -> Option<AnySettings> {
    None
}

#[test]
fn every_entry_makes_what_it_names() {
    for entry in ENTRIES {
        for split in [Split::Training, Split::Validation, Split::Test] {
            assert_eq!((entry.make)(split).spec().id, entry.id);
        }
    }
}
