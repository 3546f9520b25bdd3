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

/// What a policy wants an observation to contain beyond counts and means. A platform that does not know it leaves it out, and
/// the policy must do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Every change of the number of calls in the system, in
    /// [`FunctionView::presence`](crate::FunctionView::presence). Such a policy knows what idle instances are worth, so
    /// its pre-warming never pushes one out.
    pub presence: bool,
}

/// A maker of tick decisions, classic or learned.
pub trait Policy: Send {
    /// The name it has in the registry.
    fn name(&self) -> &str;
    /// What its observations must contain.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// What it proposes.
    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError>;
    /// What was allowed and what the platform accepted. How earlier changes ended is in the observation's `settled`.
    /// A policy that believes its own proposal learns from a world that does not exist.
    fn feedback(&mut self, _tick: &TickRecord) {}
}
