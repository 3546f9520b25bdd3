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
//! - [`live_scaling`]: the course project's state and actions on real processes.
//!
//! Whoever starts an experiment has no thread yet: the host's spawner is a fork of this process.

mod error;
pub mod faasrm;
mod host;
pub mod knative_concurrency;
pub mod live_scaling;
mod machine;
mod stand;

pub use error::ExperimentError;
