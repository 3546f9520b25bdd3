//! Published experiments on a real kernel: the embedded platform runs the calls, the pure crates count, predict and
//! draw.
//!
//! ```text
//!   calls of the experiment ─► Stand: gateway, agent, processes under limits ─► CallRecord ─► studies: rows, page
//!                                                                                  └────────► calibration ─► simulator
//! ```
//!
//! - [`faasrm`]: 268 calls of ten applications under seven managers.
//! - [`knative_concurrency`]: which concurrency limit a service should have, by load tests over HTTP.
//! - [`load_held`]: how much load the machine holds under each manager while an objective holds.
//! - [`live_scaling`]: the course project's state and actions on real processes.
//! - [`simppo`]: agents that learned in simulation, one per function, on real processes.
//!
//! Whoever starts an experiment has no thread yet: the host's spawner is a fork of this process.

mod affinity;
mod error;
pub mod faasrm;
mod host;
mod kept;
pub mod knative_concurrency;
pub mod live_scaling;
pub mod load_held;
mod machine;
mod policy;
pub mod simppo;
mod stand;

pub use error::ExperimentError;
