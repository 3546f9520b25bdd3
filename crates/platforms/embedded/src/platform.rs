//! The tick side of the platform: what policies observe and set every few seconds.

use std::sync::Arc;

use windfall_core::{
    Answer, Capabilities, FunctionProfile, Observation, Plan, Platform, PlatformError, Receipt,
    Refusal, Timestamp,
};

use crate::agent::Agent;

/// The agent's node as a [`Platform`]. Times are those of [`Agent::clock`].
pub struct EmbeddedPlatform {
    agent: Arc<Agent>,
    functions: Vec<FunctionProfile>,
}

impl EmbeddedPlatform {
    /// The node of `agent`.
    pub fn new(agent: Arc<Agent>) -> Self {
        Self { agent, functions: Vec::new() }
    }

    /// The agent behind it.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    fn learn_functions(&mut self) {
        if let Some(mut new) = self.agent.functions(self.functions.len()) {
            self.functions.append(&mut new);
        }
    }
}

impl Platform for EmbeddedPlatform {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn capabilities(&self) -> Capabilities {
        self.agent.capabilities()
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let silent = || PlatformError::Unreachable("the agent thread does not answer".to_owned());
        let seen = self.agent.observe(now).ok_or_else(silent)?;
        // After the picture, so that every function in it is known.
        self.learn_functions();
        Ok(seen)
    }

    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        let silent = || Receipt::of(plan, |_| Answer::Refused(Refusal::Unreachable));
        self.agent.submit(now, plan).unwrap_or_else(silent)
    }
}
