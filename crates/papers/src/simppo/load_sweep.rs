//! The same policies on clusters with more or fewer cores: what a ratio depends on.
//!
//! Isolated S-RL has a node of its own and knows no load; everyone else shares. Nobody is trained anew: what was
//! trained for the usual test is tested at the other loads.

use serde::{Deserialize, Serialize};

use super::online::{OnlineRow, Ratios, mean_reward, p99_ratio};

/// The loads.
pub const LOADS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

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

/// Rows of all policies at one load, isolated S-RL's with them.
fn at(load: f64, isolated: &[OnlineRow], sweep: &[(f64, OnlineRow)]) -> Vec<OnlineRow> {
    let shared = sweep.iter().filter(|(at, _)| *at == load).map(|(_, row)| row);
    shared.chain(isolated).cloned().collect()
}

/// Every policy at every load, isolated S-RL left out.
pub fn load_rows(isolated: &[OnlineRow], sweep: &[(f64, OnlineRow)]) -> Vec<LoadRow> {
    let mut names: Vec<&str> = Vec::new();
    for (_, row) in sweep {
        if !names.contains(&row.policy.as_str()) {
            names.push(&row.policy);
        }
    }
    let mut rows = Vec::new();
    for load in LOADS {
        let all = at(load, isolated, sweep);
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
pub fn load_ratios(isolated: &[OnlineRow], sweep: &[(f64, OnlineRow)]) -> Vec<LoadRatios> {
    let of = |load| LoadRatios { load, ratios: Ratios::of(&at(load, isolated, sweep)) };
    LOADS.map(of).to_vec()
}
