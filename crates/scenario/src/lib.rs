//! Where the pure parts are put together: a scenario names a workload, a cluster, policies and seeds;
//! a run plays one policy on one load and seed; a sweep plays them all, in parallel and in a fixed order.

pub mod cluster;
pub mod run;
pub mod settings;
pub mod sweep;

pub use cluster::size_cluster;
pub use run::{Run, RunError, RunOutput};
pub use settings::{Scenario, ScenarioError};
pub use sweep::{Sweep, SweepResult};
