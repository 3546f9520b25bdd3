//! FaaSRM's agent: a score network over 64 candidate sizes, how it learns, and the agent as a policy.
//!
//! The paper's own simulator, in which the published table is met with the same network, is
//! `windfall_papers::faasrm`.
//!
//! | I look for | It is in |
//! | --- | --- |
//! | the 64 candidates with their features and masks | [`candidates`] |
//! | the networks, and how they learn | [`score_agent`], [`score_ppo`] |
//! | the agent as a policy, and its checkpoint | [`sizing`] |

pub mod candidates;
pub mod score_agent;
pub mod score_ppo;
pub mod sizing;

pub use candidates::Candidates;
pub use score_agent::ScoreAgent;
pub use sizing::FaasrmSizing;
