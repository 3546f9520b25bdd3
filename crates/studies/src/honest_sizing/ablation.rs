//! What each idea of `windfall` adds: the policy without it, on the same calls. And what ideas that were
//! dropped would add: the policy with them.

use std::collections::BTreeMap;

use windfall_policy::WindfallSizingSettings;
use windfall_scenario::sweep::{Sweep, SweepError, Watcher};
use windfall_telemetry::RunSummary;

use super::HonestSizing;

/// An idea that can be switched off or on.
#[derive(Clone, Copy, Debug)]
pub struct Idea {
    /// How tables call the policy without it, or with it.
    pub name: &'static str,
    /// Switches it.
    pub switch: fn(&mut WindfallSizingSettings),
}

/// Every idea; `windfall` itself first.
pub const IDEAS: &[Idea] = &[
    Idea { name: "windfall", switch: |_| () },
    Idea { name: "- live trimming", switch: |parameters| parameters.trims_cpu = false },
    Idea {
        name: "- early looks",
        switch: |parameters| parameters.slack.soonest_look_millis = 1000.0,
    },
    Idea { name: "- growing looks", switch: |parameters| parameters.look_growth = 1e9 },
    Idea {
        name: "- slack of the shortest run",
        switch: |parameters| parameters.slack.expects_shortest_run = false,
    },
    Idea { name: "- calibrated margins", switch: |parameters| parameters.calibrates = false },
    Idea { name: "- input", switch: |parameters| parameters.uses_input = false },
    Idea { name: "- pooled experience", switch: |parameters| parameters.pools_experience = false },
    Idea {
        name: "- price of a queue",
        switch: |parameters| parameters.slack.beta_queued = parameters.slack.beta,
    },
    Idea {
        name: "- more slack for the longest calls",
        switch: |parameters| parameters.slack.beta_long = parameters.slack.beta,
    },
    Idea { name: "- room for the way back", switch: |parameters| parameters.slack.reserve = 0.0 },
    Idea { name: "- loans", switch: |parameters| parameters.lends = false },
    Idea { name: "+ surge ratios", switch: |parameters| parameters.slack.expects_surges = true },
    Idea { name: "+ memory trimming", switch: |parameters| parameters.trims_memory = true },
];

/// Loads at which ideas are judged: one at which few wait, one at which many do.
const LOADS: [f64; 2] = [0.8, 1.2];
/// Of all seeds the first so many, of all test hours the first so many minutes: thirteen policies more are to
/// be played, and paired by seed their differences show sooner than their sizes.
const SEEDS: usize = 2;
const MINUTES: u32 = 60;

impl HonestSizing {
    /// Plays `windfall` with every idea switched, on part of the benchmark.
    pub(super) fn play_ablation(
        &self,
        watcher: &dyn Watcher,
    ) -> Result<Vec<RunSummary>, SweepError> {
        let mut part = self.clone();
        part.minutes = Some(self.minutes.map_or(MINUTES, |minutes| minutes.min(MINUTES)));
        part.seeds.truncate(SEEDS);
        if LOADS.iter().all(|load| self.loads.contains(load)) {
            part.loads = LOADS.to_vec();
        }
        let mut rows = Vec::new();
        for idea in IDEAS {
            let mut settings = WindfallSizingSettings::default();
            (idea.switch)(&mut settings);
            let table = toml::Table::try_from(settings).expect("parameters are plain numbers");
            let mut scenario = part.scenario(vec!["windfall".into()]);
            scenario.policy_settings = BTreeMap::from([("windfall".to_owned(), table)]);
            let played = Sweep { scenario: &scenario, threads: self.threads }.play(watcher)?;
            let name = idea.name.to_owned();
            rows.extend(
                played.rows.into_iter().map(|row| RunSummary { policy: name.clone(), ..row }),
            );
        }
        Ok(rows)
    }
}
