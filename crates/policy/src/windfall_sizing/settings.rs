//! Settings of the sizing policy and of the slack budget behind it.

use serde::{Deserialize, Serialize};

/// Settings of [`WindfallSizing`](super::WindfallSizing).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindfallSizingSettings {
    /// Finished calls before a function's calls start with anything but the user's size.
    pub warm_calls: u32,
    /// Quantile of the CPU peak that a call starts with, given its input.
    pub cpu_quantile: f64,
    /// Quantile of the memory peak that a call starts with, given its input.
    pub memory_quantile: f64,
    /// Margin on the memory quantile, as a share of it.
    pub memory_margin: f64,
    /// Number of recent calls that the quantiles are computed from.
    pub window: usize,
    /// Factor by which each new point reduces the weight of a line's earlier points.
    pub forgetting: f64,
    /// Whether demand is conditioned on the visible input.
    pub uses_input: bool,
    /// Whether functions with few calls get a correction learned from all functions with as few calls.
    pub pools_experience: bool,
    /// Whether the margin on the CPU quantile is calibrated by the time that calls lost.
    pub calibrates: bool,
    /// Margin on the CPU quantile before any calibration, as a share.
    pub first_margin: f64,
    /// Minimum CPU of a call, cores.
    pub floor_cpu_cores: f64,
    /// Minimum memory of a call, MiB.
    pub floor_memory_mib: f64,
    /// Whether calls may hold more CPU than their user reserves, on loan from the node's pool.
    pub lends: bool,
    /// Whether unused CPU of a running call is reclaimed.
    pub trims_cpu: bool,
    /// Whether unused memory of a running call is reclaimed.
    pub trims_memory: bool,
    /// Latest time of the first look at a call, milliseconds.
    pub first_look_millis: f64,
    /// Time until a later look, as a share of the time already run.
    pub look_growth: f64,
    /// Minimum time between looks, milliseconds, unless the slack budget requires an earlier one.
    pub shortest_look_millis: f64,
    /// Maximum time between looks, milliseconds.
    pub longest_look_millis: f64,
    /// Headroom above measured use, in standard errors of the measurement.
    pub noise_room: f64,
    /// Further headroom above measured use, as a share of it.
    pub use_margin: f64,
    /// Measured use below this share of the grant counts as idle.
    pub idle_share: f64,
    /// Parameters of the slack budget.
    pub slack: SlackParameters,
}

/// Parameters of the slack budget, the safeguard behind the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlackParameters {
    /// Share of its run time that a call may lose.
    pub beta: f64,
    /// `beta` while calls are queued.
    pub beta_queued: f64,
    /// `beta` for the calls that run longest.
    pub beta_long: f64,
    /// Share of all calls that count as running longest.
    pub long_share: f64,
    /// Shortest delay to which a look may be brought forward to allow a deeper trim, milliseconds.
    pub soonest_look_millis: f64,
    /// Share of the CPU reclaimed from a call that its node keeps free for it.
    pub reserve: f64,
    /// Run time up to which the full `reserve` applies, seconds; it shrinks for longer calls.
    pub reserve_seconds: f64,
    /// Whether headroom above current use follows the surges of earlier calls.
    pub expects_surges: bool,
    /// Whether a call may use the slack of its function's shortest run from the start.
    pub expects_shortest_run: bool,
    /// Whether the headroom for surges is calibrated by the time that calls lost.
    pub calibrates: bool,
}

impl Default for SlackParameters {
    fn default() -> Self {
        Self {
            beta: 0.0038,
            beta_queued: 0.016,
            beta_long: 0.02,
            long_share: 0.003,
            soonest_look_millis: 5.0,
            reserve: 1.0,
            reserve_seconds: 5.0,
            expects_surges: false,
            expects_shortest_run: true,
            calibrates: true,
        }
    }
}

impl Default for WindfallSizingSettings {
    fn default() -> Self {
        Self {
            warm_calls: 10,
            cpu_quantile: 0.99,
            memory_quantile: 0.999,
            memory_margin: 0.15,
            window: 512,
            forgetting: 0.998,
            uses_input: true,
            pools_experience: true,
            calibrates: true,
            first_margin: 0.05,
            floor_cpu_cores: 0.05,
            floor_memory_mib: 16.0,
            lends: true,
            trims_cpu: true,
            trims_memory: false,
            first_look_millis: 40.0,
            look_growth: 0.25,
            shortest_look_millis: 20.0,
            longest_look_millis: 50.0,
            noise_room: 2.0,
            use_margin: 0.01,
            idle_share: 0.05,
            slack: SlackParameters::default(),
        }
    }
}
