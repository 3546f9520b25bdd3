//! The environments of the exercise, by their ids.

use windfall_rl::any_learner::{AnySettings, Kind};
use windfall_rl::catalogue::Entry;
use windfall_rl::env::Environment;

use super::environment::{Ece471, Features, Settings};
use super::table::Mode;
use super::{RATES, settings};

/// All four: as the original is or as it was meant, with or without the last direction.
pub const ENTRIES: [Entry; 4] = [
    Entry {
        id: "windfall/Ece471-v0",
        summary: "the ECE 471 exercise as it is: containers against load, quirks included",
        make: |_| one(Mode::Faithful, Features::Course),
        panel: |_| every_rate(Mode::Faithful, Features::Course),
        suggested: |kind, iterations| Some(suggested(kind, iterations, 6)),
        environments: settings::EPISODES,
    },
    Entry {
        id: "windfall/Ece471Direction-v0",
        summary: "the same, and the last direction is shown, which the reward depends on",
        make: |_| one(Mode::Faithful, Features::WithDirection),
        panel: |_| every_rate(Mode::Faithful, Features::WithDirection),
        suggested: |kind, iterations| Some(suggested(kind, iterations, 7)),
        environments: settings::EPISODES,
    },
    Entry {
        id: "windfall/Ece471Fixed-v0",
        summary: "the exercise as it was meant: vertical scaling and co-tenants have effect",
        make: |_| one(Mode::FixedQuirks, Features::Course),
        panel: |_| every_rate(Mode::FixedQuirks, Features::Course),
        suggested: |kind, iterations| Some(suggested(kind, iterations, 6)),
        environments: settings::EPISODES,
    },
    Entry {
        id: "windfall/Ece471FixedDirection-v0",
        summary: "as it was meant, and the last direction is shown",
        make: |_| one(Mode::FixedQuirks, Features::WithDirection),
        panel: |_| every_rate(Mode::FixedQuirks, Features::WithDirection),
        suggested: |kind, iterations| Some(suggested(kind, iterations, 7)),
        environments: settings::EPISODES,
    },
];

fn one(mode: Mode, features: Features) -> Box<dyn Environment> {
    Box::new(Ece471::new(Settings { mode, features, ..Settings::default() }))
}

/// One environment for each arrival rate: what the golden scores are means over.
fn every_rate(mode: Mode, features: Features) -> Vec<Box<dyn Environment>> {
    let at = |rate| Settings { mode, features, rate: Some(rate), ..Settings::default() };
    RATES.map(|rate| Box::new(Ece471::new(at(rate))) as Box<dyn Environment>).collect()
}

fn suggested(kind: Kind, iterations: u64, features: usize) -> AnySettings {
    match kind {
        Kind::Ppo => AnySettings::Ppo(settings::ppo(iterations)),
        Kind::Dqn => AnySettings::Dqn(settings::dqn(iterations)),
        Kind::Reinforce => AnySettings::Reinforce(settings::reinforce(iterations)),
        Kind::QLearning => AnySettings::QLearning(settings::q_learning(iterations, features)),
    }
}

#[test]
fn entries_are_what_they_say() {
    for entry in ENTRIES {
        assert_eq!(entry.spec().id, entry.id);
        assert_eq!((entry.panel)(windfall_rl::Split::Test).len(), 8);
        for kind in Kind::ALL {
            let settings = entry.settings(kind, 20);
            assert_eq!(settings.kind(), kind);
            settings.check_for(&entry.spec()).unwrap();
            // What is suggested is also allowed.
            settings.with(&serde_json::Map::new()).unwrap();
        }
    }
}
