//! Open-loop HTTP load: schedules from traces or distributions, latency from the due time, and a report.
//!
//! ```text
//!  Schedule ──► sender thread, sleeps until each call is due ──► tokio tasks, kept connections ──► Measured ──► Report
//! ```
//!
//! The schedule is fixed before the first call is sent and never waits for an answer. Latency counts from the moment
//! a call was **due**, so a server that stalls for a second shows it in every call of that second; a generator that
//! waits for answers would hide all but one of them. What the generator itself is late is measured and reported.

mod credentials;
mod due;
mod error;
mod generator;
mod measured;
mod report;
mod schedule;
mod statistics;
mod target;

pub use credentials::Credentials;
pub use due::{Due, Placeholders};
pub use error::LoadError;
pub use generator::{Generator, run};
pub use measured::{CallResult, Measured, Sample};
pub use report::{Latencies, Report, TargetReport};
pub use schedule::{Schedule, Shape};
pub use target::Target;
