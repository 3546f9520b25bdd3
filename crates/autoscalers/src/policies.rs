//! The autoscalers as policies, so that they can be used in any scenario.
//!
//! ```text
//!  Observation ─► what the original would measure ─► exact algorithm ─► Decision
//!  kpa, hpa: instances              vpa, autopilot: CPU and memory of each instance
//!
//!  CallOutcome ─► vpa, autopilot ─► size of the next call, with per-call sizing
//! ```
//!
//! The translation is limited by what an [`Observation`](windfall_core::Observation) contains; each file documents what
//! is missing. The algorithms are the ones that are checked against recorded decisions.

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
