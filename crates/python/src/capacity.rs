//! Load held at equal service, with policies of ours and of Python's side by side.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use windfall_scenario::Scenario;
use windfall_studies::capacity::contestants::{Choice, Contestant, Role};
use windfall_studies::capacity::objective::{Objective, ObjectiveSettings};
use windfall_studies::capacity::search::Search;
use windfall_studies::capacity::summary::{CapacitySummary, summarize};
use windfall_studies::capacity::texts::to_text;
use windfall_studies::capacity::worlds::{CapacityWorld, NAMES};
use windfall_studies::capacity::{Capacity, CapacityRow, CapacityWatcher};

use crate::faults::refused;
use crate::interrupt::interruptible;
use crate::python_policy::Failures;
use crate::sweeps::{Factories, PythonPolicies, Stopping, all_threads};

/// What is asked, as `windfall.capacity` writes it down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Worlds by name; none where `scenario` says what is played.
    worlds: Vec<String>,
    /// The text of a scenario and what messages call it.
    scenario: Option<(String, String)>,
    /// Where traces of named worlds lie.
    data: PathBuf,
    /// Of the calls of named worlds.
    minutes: u32,
    nodes: Option<u32>,
    mib_per_core: Option<f64>,
    /// `kernel` or `fluid`.
    cpu_model: CpuModelName,
    choice: Choice,
    objective: ObjectiveSettings,
    seeds: Vec<u64>,
    precision: f64,
}

/// How a node's CPU is shared.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CpuModelName {
    Kernel,
    Fluid,
}

/// What came of it, as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    rows: &'a [CapacityRow],
    summary: &'a [CapacitySummary],
}

impl CapacityWatcher for Stopping {
    fn is_stopped(&self) -> bool {
        self.is_set()
    }
}

/// Names and summaries of the worlds.
#[pyfunction]
pub(crate) fn capacity_worlds() -> Vec<(&'static str, &'static str)> {
    NAMES.to_vec()
}

/// Raises the load of every world until the objective breaks: rows and summaries as JSON, and a table.
#[pyfunction]
#[pyo3(signature = (question, own, threads = None))]
pub(crate) fn run_capacity(
    py: Python<'_>,
    question: &str,
    own: Factories,
    threads: Option<usize>,
) -> PyResult<(String, String)> {
    let question: Question = serde_json::from_str(question).map_err(refused)?;
    let names: Vec<String> = own.keys().cloned().collect();
    let capacity = question.understood(&names).map_err(refused)?;
    let threads = threads.unwrap_or_else(all_threads).clamp(1, 1024);
    let failures = Arc::new(Failures::default());
    let policies = PythonPolicies::new(own, &failures);
    let watcher = Stopping::new(&failures);
    let played = interruptible(py, "capacity", &failures.stop, || {
        let result = capacity.play_with(threads, &watcher, &policies)?;
        let summary = summarize(&capacity.objective, &result);
        Ok::<_, windfall_studies::capacity::CapacityError>((result, summary))
    })?;
    // An exception of a policy also stops the runs, and is what the caller wants to see.
    if let Some(error) = failures.take() {
        return Err(error);
    }
    let (result, summary) = played.map_err(refused)?;
    let answer = Answer { rows: &result.rows, summary: &summary };
    Ok((serde_json::to_string(&answer).map_err(refused)?, to_text(&summary)))
}

impl Question {
    /// The measurement; `own` policies take part after those of the registry.
    fn understood(self, own: &[String]) -> Result<Capacity, String> {
        if self.seeds.is_empty() {
            return Err("seeds is empty, at least one is needed".to_owned());
        }
        if !(1.001..=2.0).contains(&self.precision) {
            return Err(format!("precision is {}, allowed is 1.001 to 2", self.precision));
        }
        let worlds = self.worlds()?;
        let is_scarce = worlds.iter().any(CapacityWorld::memory_is_scarce);
        let mut choice = self.choice;
        if choice.policies.is_empty() && !choice.all && !own.is_empty() {
            choice.policies = vec!["fixed".to_owned()];
        }
        let mut contestants = choice.contestants(is_scarce).map_err(|error| error.to_string())?;
        let over_commits =
            if choice.over_commits.is_empty() { vec![1.0] } else { choice.over_commits };
        contestants.extend(
            own.iter().map(|name| Contestant::new(name, Role::Aside).over_committed(&over_commits)),
        );
        Ok(Capacity {
            worlds,
            contestants,
            objective: Objective::try_from(self.objective).map_err(|error| error.to_string())?,
            seeds: self.seeds,
            search: Search { precision: self.precision, ..Search::default() },
            races: false,
        })
    }

    fn worlds(&self) -> Result<Vec<CapacityWorld>, String> {
        let given = self.scenario.iter().map(|(text, name)| {
            let scenario = Scenario::parse(text, name).map_err(|error| error.to_string())?;
            Ok(CapacityWorld::new(&scenario.name.clone(), scenario))
        });
        let named = self.worlds.iter().map(|name| self.named(name));
        let mut worlds: Vec<CapacityWorld> = given.chain(named).collect::<Result<_, String>>()?;
        for world in &mut worlds {
            world.nodes = self.nodes.unwrap_or(world.nodes);
            world.mib_per_core = self.mib_per_core.unwrap_or(world.mib_per_core);
            if !(1..=10_000).contains(&world.nodes) {
                return Err(format!("nodes is {}, allowed is 1 to 10000", world.nodes));
            }
            if !(1.0..=1e7).contains(&world.mib_per_core) {
                let given = world.mib_per_core;
                return Err(format!("mib_per_core is {given}, allowed is 1 to 10000000"));
            }
            if self.cpu_model == CpuModelName::Fluid {
                world.use_fluid_cpu();
            }
        }
        Ok(worlds)
    }

    fn named(&self, name: &str) -> Result<CapacityWorld, String> {
        if !(10..=240).contains(&self.minutes) {
            return Err(format!(
                "minutes is {}, allowed is 10 to 240 in these worlds",
                self.minutes
            ));
        }
        CapacityWorld::named(name, &self.data, self.minutes).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("worlds holds {name:?}, allowed is {}", known.join(", "))
        })
    }
}
