//! The dials of the sizing policy, and those of the slack budget that guards it.

use serde::{Deserialize, Serialize};

/// Settings of [`WindfallSizing`](super::WindfallSizing).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindfallSizingSettings {
    /// Finished calls before a function's calls leave the user's size at their start.
    pub warm_calls: u32,
    /// Quantile of the CPU peak that a call starts with, given its input.
    pub cpu_quantile: f64,
    /// Quantile of the memory peak that a call starts with, given its input.
    pub memory_quantile: f64,
    /// Room on top of the memory quantile, as a share of it.
    pub memory_margin: f64,
    /// How many of the last calls the quantiles are taken from.
    pub window: usize,
    /// Weight that a line's points keep with every new one.
    pub forgetting: f64,
    /// Whether demand is conditioned on the visible input.
    pub uses_input: bool,
    /// Whether functions with few calls borrow a correction from all functions at that experience.
    pub pools_experience: bool,
    /// Whether the margin on the CPU quantile is calibrated by what calls lost.
    pub calibrates: bool,
    /// Margin on the CPU quantile before any calibration, as a share.
    pub first_margin: f64,
    /// The least CPU a call holds, cores.
    pub floor_cpu_cores: f64,
    /// The least memory a call holds, MiB.
    pub floor_memory_mib: f64,
    /// Whether calls may hold more CPU than their user reserves, on loan from the node's pool.
    pub lends: bool,
    /// Whether a running call's unused CPU is taken.
    pub trims_cpu: bool,
    /// Whether a running call's unused memory is taken.
    pub trims_memory: bool,
    /// When a call is looked at first, at the latest, milliseconds.
    pub first_look_millis: f64,
    /// Later looks come after this share of the time already run.
    pub look_growth: f64,
    /// But not sooner than this, milliseconds, unless the slack budget asks for it.
    pub shortest_look_millis: f64,
    /// And not later than this, milliseconds.
    pub longest_look_millis: f64,
    /// Standard errors of measured use that are kept as room above it.
    pub noise_room: f64,
    /// Room above measured use beside that, as a share.
    pub use_margin: f64,
    /// What is left of measured use counts as idle below this share of the grant.
    pub idle_share: f64,
    /// The slack budget.
    pub slack: SlackDials,
}

/// The dials of the safeguard behind the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlackDials {
    /// Share of its run time that a call may lose.
    pub beta: f64,
    /// That share while calls wait for room.
    pub beta_queued: f64,
    /// That share for the few calls that run longest.
    pub beta_long: f64,
    /// How many calls those are, as a share of all.
    pub long_share: f64,
    /// A look may be brought forward to this to afford a deeper trim, milliseconds.
    pub soonest_look_millis: f64,
    /// Share of what was taken from a call that its node keeps free for it.
    pub reserve: f64,
    /// All of that share for calls that have run this long at most, seconds, less for longer ones.
    pub reserve_seconds: f64,
    /// Whether room above present use follows how far earlier calls rose.
    pub expects_surges: bool,
    /// Whether a call has the slack of its function's shortest run from the start.
    pub expects_shortest_run: bool,
    /// Whether room for surges is calibrated by what calls lost.
    pub calibrates: bool,
}

impl Default for SlackDials {
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
            slack: SlackDials::default(),
        }
    }
}
