//! The environments of this crate in which one agent acts, by their ids.

use windfall_rl::algorithms::ppo::PpoSettings;
use windfall_rl::any_learner::{AnySettings, Kind};
use windfall_rl::catalogue::twenty;
use windfall_rl::env::Environment;
use windfall_rl::schedule::Schedule;
use windfall_rl::{Entry, Split};

use crate::scaling::{ID, Scaling, ScalingSettings};
use crate::sizing::{self, Sizing, SizingSettings};

/// For `windfall train`, `evaluate` and `env`.
pub const ENTRIES: [Entry; 2] = [SCALING, SIZING];

const SCALING: Entry = Entry {
    id: ID,
    summary: "one function on shared nodes with changing load; its neighbours follow the queueing rule",
    make: scaling,
    panel: |split| twenty(scaling, split),
    suggested,
    environments: 8,
};

const SIZING: Entry = Entry {
    id: sizing::ID,
    summary: "how much CPU and memory the next call gets, out of what its user reserves",
    make: sizing,
    panel: |split| twenty(sizing, split),
    suggested: |_, _| None,
    environments: 8,
};

fn scaling(split: Split) -> Box<dyn Environment> {
    Box::new(Scaling::new(ScalingSettings { split, ..ScalingSettings::default() }))
}

fn sizing(split: Split) -> Box<dyn Environment> {
    Box::new(Sizing::new(SizingSettings { split, ..SizingSettings::default() }))
}

/// A move shows within a few ticks of 5 s: a reward ten ticks away says little about it. With the usual discount of
/// 0.99 and a third of the learning rate, PPO earned 148.7 on the validation part after 100 iterations, with these
/// 152.0 after 50 (seed 101).
fn suggested(kind: Kind, iterations: u64) -> Option<AnySettings> {
    match kind {
        Kind::Ppo => Some(AnySettings::Ppo(PpoSettings {
            iterations,
            discount: 0.9,
            learning_rate: Schedule::linear(1e-3, 1e-4),
            entropy: Schedule::linear(0.03, 0.003),
            ..PpoSettings::default()
        })),
        Kind::Dqn | Kind::Reinforce | Kind::QLearning => None,
    }
}

#[test]
fn every_entry_makes_what_it_names() {
    for entry in ENTRIES {
        for split in [Split::Training, Split::Validation, Split::Test] {
            assert_eq!((entry.make)(split).spec().id, entry.id);
        }
    }
}
