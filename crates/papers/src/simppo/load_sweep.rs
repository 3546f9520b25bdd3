//! The same policies where functions are called more or less often: what a ratio depends on.
//!
//! Nobody is trained anew: what was trained at the usual load is tested at the others, isolated S-RL too.

use serde::{Deserialize, Serialize};

use super::online::{OnlineRow, Ratios, mean_reward, p99_ratio};

/// The loads.
pub const LOADS: [f64; 5] = [0.5, 0.65, 0.75, 0.81, 0.9];

/// One policy at one load of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Mean load of the cores.
    pub load: f64,
    /// Which policy.
    pub policy: String,
    /// Mean reward of an episode.
    pub reward: f64,
    /// Geometric mean of p99 over isolated S-RL's.
    pub p99_to_isolated: f64,
}

/// The published ratios at one load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRatios {
    /// Mean load of the cores.
    pub load: f64,
    /// At that load.
    #[serde(flatten)]
    pub ratios: Ratios,
}

/// Rows of all policies at one load.
fn at(load: f64, sweep: &[(f64, OnlineRow)]) -> Vec<OnlineRow> {
    sweep.iter().filter(|(at, _)| *at == load).map(|(_, row)| row).cloned().collect()
}

/// Every policy at every load.
pub fn load_rows(sweep: &[(f64, OnlineRow)]) -> Vec<LoadRow> {
    let mut names: Vec<&str> = Vec::new();
    for (_, row) in sweep {
        if !names.contains(&row.policy.as_str()) {
            names.push(&row.policy);
        }
    }
    let mut rows = Vec::new();
    for load in LOADS {
        let all = at(load, sweep);
        rows.extend(names.iter().map(|name| LoadRow {
            load,
            policy: (*name).to_owned(),
            reward: mean_reward(all.iter().filter(|row| row.policy == *name)),
            p99_to_isolated: p99_ratio(&all, name, "isolated"),
        }));
    }
    rows
}

/// The published ratios at every load.
pub fn load_ratios(sweep: &[(f64, OnlineRow)]) -> Vec<LoadRatios> {
    LOADS.map(|load| LoadRatios { load, ratios: Ratios::of(&at(load, sweep)) }).to_vec()
}
