//! What each idea of `windfall` adds: the policy without it, on the same calls.

use std::collections::BTreeMap;

use windfall_telemetry::RunSummary;

use super::HonestSizing;
use crate::sweep::{Sweep, SweepError, Watcher};

/// An idea that can be switched off.
#[derive(Clone, Copy, Debug)]
pub struct Idea {
    /// What it is called in tables.
    pub name: &'static str,
    /// The settings of `windfall` that switch it off, as TOML.
    pub off: &'static str,
}

/// Every idea.
pub const IDEAS: &[Idea] = &[
    Idea { name: "live trimming", off: "trims_cpu = false" },
    Idea { name: "early looks", off: "slack.soonest_look_millis = 1000.0" },
    Idea { name: "growing looks", off: "look_growth = 1e9" },
    Idea { name: "surge ratios", off: "slack.expects_surges = false" },
    Idea { name: "slack of the shortest run", off: "slack.expects_shortest_run = false" },
    Idea { name: "calibrated margins", off: "calibrates = false\nslack.calibrates = false" },
    Idea { name: "input", off: "uses_input = false" },
    Idea { name: "pooled experience", off: "pools_experience = false" },
    Idea { name: "price of a queue", off: "slack.beta_queued = 0.008" },
    Idea { name: "loans", off: "lends = false" },
];

impl HonestSizing {
    /// Plays `windfall` and `windfall` without each idea at the loads of the benchmark.
    pub(super) fn play_ablation(
        &self,
        watcher: &dyn Watcher,
    ) -> Result<Vec<RunSummary>, SweepError> {
        let mut rows = Vec::new();
        for idea in IDEAS {
            let mut scenario = self.scenario(vec!["windfall".into()]);
            let table: toml::Table = idea.off.parse().expect("settings are valid TOML");
            scenario.policy_settings = BTreeMap::from([("windfall".to_owned(), table)]);
            let played = Sweep { scenario: &scenario, threads: self.threads }.play(watcher)?;
            let name = format!("windfall - {}", idea.name);
            rows.extend(
                played.rows.into_iter().map(|row| RunSummary { policy: name.clone(), ..row }),
            );
        }
        Ok(rows)
    }
}
