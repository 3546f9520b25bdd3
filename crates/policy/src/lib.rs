//! Classic policies: what platforms do today, what papers propose, and an oracle. They are the
//! baselines: a learned policy that does not beat them adds no value.
//!
//! | name               | decides | idea                                                 | source |
//! | ------------------ | ------- | ---------------------------------------------------- | ------ |
//! | `fixed`            | call    | the user's reservation, unsupervised                 | every platform |
//! | `greedy`           | call    | one step down while unused, one step up when not     | FaaSRM's Greedy RM |
//! | `ensure`           | call    | regulate CPU by latency, per function                | ENSURE (ACSOS'20), as coded for FaaSRM, fixed |
//! | `histogram`        | call    | 99th percentile of past peaks and a margin           | Autopilot-like |
//! | `autothrottle`     | call    | quota by a target share of throttled periods         | Autothrottle (NSDI'24), the captain |
//! | `libra`            | call    | size by input, harvest pool, restore when pressed    | Libra (HPDC'23) |
//! | `shabari`          | call    | lowest-cost class for the input, learned online      | Shabari (arXiv 2401.08859) |
//! | `windfall`         | call    | calibrated quantile, then live trimming              | our own, see [`WindfallSizing`] |
//! | `weights`          | call    | the reservation as a weight, no ceiling              | requests without limits |
//! | `weights-histogram`, `rc-like`, `n-sigma`, `max-predictor` | call | weights; nodes filled by predicted peaks | Bashir et al. (EuroSys'21) |
//! | `windfall-admission` | call  | weights; nodes filled by expected use and its variance | our own, see [`WindfallAdmission`] |
//! | `safeguard-random` | call    | a coin inside FaaSRM's safeguard                     | FaaSRM (arXiv 2108.12717) |
//! | `oracle`           | call    | the demand, known in advance                         | for reports |
//! | `ensure-scaling`   | tick    | square-root staffing, packed                         | ENSURE (ACSOS'20) |
//! | `queueing`         | tick    | M/M/c staffing one cold start ahead                  | Erlang; Halfin and Whitt |
//! | `keep-alive`       | tick    | idle instances stay for a fixed time                 | OpenWhisk, Azure |
//! | `hybrid-histogram` | tick    | pre-warm and keep alive by the histogram of idle times | Shahrad et al. (ATC'20) |
//! | `windfall-scaling` | tick    | hold, release or start ahead by hazard and price     | our own, see [`WindfallScaling`] |
//!
//! Each policy is one file that opens with its rule and a worked number. The building blocks that several
//! policies share are tested against closed forms: [`QuantileWindow`], [`LineFit`], [`Holt`], [`erlang_c`],
//! [`PeakReading`], [`DemandProfile`]. The registry crate maps names to policies.

mod autothrottle;
mod cost_classifier;
mod demand_profile;
mod ensure;
mod ensure_scaling;
mod erlang;
#[cfg(test)]
mod every_policy;
#[cfg(test)]
mod fake_platform;
#[cfg(test)]
mod fake_tick;
mod fixed;
mod greedy;
mod histogram;
mod holt;
mod hybrid_histogram;
mod keep_alive;
mod level_track;
mod libra;
mod line_fit;
mod oracle;
mod peak_claims;
mod peak_reading;
mod per_function;

mod queueing;
mod safeguard_random;
mod shabari;
mod weights;
mod windfall_admission;
mod windfall_scaling;
mod windfall_sizing;

pub use autothrottle::{Autothrottle, AutothrottleSettings, Captain};
pub use cost_classifier::CostClassifier;
pub use demand_profile::{DemandProfile, Trust};
pub use ensure::{Ensure, EnsureSettings};
pub use ensure_scaling::{EnsureScaling, EnsureScalingSettings};
pub use erlang::{erlang_b, erlang_c, servers_for};
pub use fixed::Fixed;
pub use greedy::{Greedy, GreedySettings};
pub use histogram::{Histogram, HistogramSettings};
pub use holt::Holt;
pub use hybrid_histogram::{HybridHistogram, HybridHistogramSettings};
pub use keep_alive::{KeepAlive, KeepAliveSettings};
pub use libra::{Libra, LibraSettings};
pub use line_fit::LineFit;
pub use oracle::Oracle;
pub use peak_claims::{ClaimRule, PeakClaims, PeakClaimsSettings};
pub use peak_reading::PeakReading;
pub use per_function::PerFunction;
pub use queueing::{Queueing, QueueingSettings};
pub use safeguard_random::SafeguardRandom;
pub use shabari::{Shabari, ShabariSettings};
pub use weights::Weights;
pub use windfall_admission::{STATES, WindfallAdmission, WindfallAdmissionSettings};
pub use windfall_core::QuantileWindow;
pub use windfall_scaling::{
    GapCounts, GapOutcome, GapReplay, GapStakes, GapTables, GapTrial, LevelGap, ShadowLaw,
    WindfallScaling, WindfallScalingSettings,
};
pub use windfall_sizing::{SlackParameters, WindfallSizing, WindfallSizingSettings};

/// The policy from the guide. Compiled and run exactly as printed there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/your-own-policy.md")]
pub struct YourOwnPolicy;
