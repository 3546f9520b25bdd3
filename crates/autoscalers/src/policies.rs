//! The incumbents as tick policies of ours, so that they can stand in any scenario.
//!
//! ```text
//!  Observation ─► what the real one would measure ─► exact algorithm ─► Decision
//!  kpa, hpa: instances              vpa, autopilot: CPU and memory of each instance
//!
//!  CallOutcome ─► vpa, autopilot ─► size of the next call, where calls are sized one by one
//! ```
//!
//! A translation can only be as good as what an [`Observation`](windfall_core::Observation) tells; each file
//! says what it cannot know. The algorithms behind are the ones that the recorded stories check.

mod autopilot;
mod autopilot_calls;
#[cfg(test)]
mod calls;
mod hpa;
mod kpa;
#[cfg(test)]
mod ticks;
mod vpa;
mod vpa_calls;

pub use autopilot::{Autopilot, AutopilotKind};
pub use autopilot_calls::AutopilotForCalls;
pub use hpa::Hpa;
pub use kpa::Kpa;
pub use vpa::Vpa;
pub use vpa_calls::VpaForCalls;
