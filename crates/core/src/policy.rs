//! Who decides per tick. A policy is a function of what it has seen; it reads no clock and acts on
//! nothing.

use crate::decision::Decision;
use crate::observation::Observation;
use crate::record::TickRecord;

/// Why a policy could not decide. The loop falls back and goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}: {problem}")]
pub struct PolicyError {
    /// Whose.
    pub policy: String,
    /// One sentence.
    pub problem: String,
}

/// A maker of tick decisions, classic or learned.
pub trait Policy: Send {
    /// The name it has in the registry.
    fn name(&self) -> &str;
    /// What it wishes for.
    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError>;
    /// What was carried out. A learner that believes its own wish learns from a world that does not
    /// exist.
    fn feedback(&mut self, _tick: &TickRecord) {}
}
