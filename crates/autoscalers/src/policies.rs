//! The incumbents as tick policies of ours, so that they can stand in any scenario.
//!
//! ```text
//!  Observation ─► what the real one would measure ─► exact algorithm ─► Decision
//!  kpa, hpa: instances              vpa, autopilot: CPU and memory of each instance
//! ```
//!
//! A translation can only be as good as what an [`Observation`](windfall_core::Observation) tells; each file
//! says what it cannot know. The algorithms behind are the ones that the recorded stories check.

mod autopilot;
mod hpa;
mod kpa;
#[cfg(test)]
mod ticks;
mod vpa;

pub use autopilot::{Autopilot, AutopilotKind};
pub use hpa::Hpa;
pub use kpa::Kpa;
pub use vpa::Vpa;
