//! FaaSRM (arXiv 2108.12717; published as Freyr, WWW'22): per-call CPU and memory sizes by a learned score
//! network behind a safeguard.
//!
//! Two worlds. The **paper's own simulator** ([`simulator`]) with its departures from reality as switches
//! ([`quirks`]), its baselines ([`baselines`]), its safeguard ([`safeguard`]) and its agent ([`paper_agent`]):
//! here the published table is met. And the agent as a policy of ours ([`sizing`]), where time, queues and
//! memory kills are real.
//!
//! | I look for | It is in |
//! | --- | --- |
//! | the law of run time and the levels | [`function_model`] |
//! | the 64 candidates with their features and masks | [`candidates`] |
//! | the networks, and how they learn | [`score_agent`], [`score_ppo`] |
//! | the published table beside ours | [`published`] |

pub mod baselines;
pub mod calls;
pub mod candidates;
pub mod function_model;
pub mod history;
pub mod paper_agent;
pub mod published;
pub mod quirks;
pub mod replay;
pub mod safeguard;
pub mod score_agent;
pub mod score_ppo;
mod servers;
pub mod simulator;
pub mod sizing;

pub use calls::{Calls, Origin};
pub use candidates::Candidates;
pub use function_model::{FunctionModel, Levels};
pub use quirks::Quirks;
pub use score_agent::ScoreAgent;
pub use sizing::FaasrmSizing;
