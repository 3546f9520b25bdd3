//! Schuler, Jamil and Kühl, "AI-based resource allocation: reinforcement learning for adaptive auto-scaling in
//! serverless environments" (CCGrid 2021): which concurrency limit should a Knative service have?
//!
//! ```text
//!  limit ─► new revision ─► load test: 500 requests/s for 30 s, from zero ─► throughput, latency, success, use
//!    ▲                                                                            │
//!    └──────────────────────── learner ◄──────────────────────────────────────────┘
//! ```
//!
//! A sweep over 10, 30, .. 310 shows the curve; the paper's Q-learner walks along it in steps of 20; ours
//! ([`BracketSearch`]) brackets the top with a model of memory and places that keeps it where nothing fails.
//!
//! What the paper does not say is chosen: the knobs of its workloads (only their kinds are given), the bins of its
//! state, the platform's sizes. [`workloads`] and [`knative`] say which.

mod bracket_search;
pub mod environment;
pub mod knative;
mod q_learner;
pub mod reproduce;
mod scaler;
mod sweep;
mod trial;
pub mod workloads;

pub use bracket_search::BracketSearch;
pub use q_learner::QLearner;
pub use scaler::KnativeAutoscaler;
pub use sweep::{Best, SweepPoint, WorkloadSweep};
pub use trial::{LearnerRow, Trial};
pub use workloads::Workload;

use knative::{KnativeSettings, Load, LoadTestOutcome, load_test};
use windfall_core::Seed;

/// Limits of the sweep: 10 to 310 in steps of 20.
pub const LIMITS: [u32; 16] =
    [10, 30, 50, 70, 90, 110, 130, 150, 170, 190, 210, 230, 250, 270, 290, 310];

/// Knative's own target where nobody sets a limit.
pub const DEFAULT_LIMIT: u32 = 100;

/// The limit at `level` of the sweep.
pub fn limit_at(level: usize) -> u32 {
    LIMITS[level.min(LIMITS.len() - 1)]
}

/// Chooses limits by load tests.
pub trait LimitLearner {
    /// The limit of the next load test.
    fn next_limit(&mut self) -> u32;

    /// What came of it.
    fn learn(&mut self, outcome: &LoadTestOutcome);

    /// Where it would stay if it stopped exploring now.
    fn settled(&self) -> u32;
}

/// One load test of a fresh revision under Knative's autoscaler.
pub fn test_limit(workload: &Workload, limit: u32, seed: Seed) -> LoadTestOutcome {
    let settings = KnativeSettings::default();
    let mut autoscaler = KnativeAutoscaler::new(limit);
    load_test(&settings, workload.shape, limit, Load::default(), &mut autoscaler, seed)
}
