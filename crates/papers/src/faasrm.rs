//! FaaSRM (arXiv 2108.12717; published as Freyr, WWW'22): per-call CPU and memory sizes by a learned score
//! network behind a safeguard.
//!
//! The **paper's own simulator** ([`simulator`]) with its departures from reality as switches
//! ([`quirks`]), its baselines ([`baselines`]), its safeguard ([`safeguard`]) and its agent ([`paper_agent`]):
//! here the published table is met. The agent's network, and the agent as a policy of ours where time, queues
//! and memory kills are real, are `windfall_agents::faasrm`.
//!
//! | I look for | It is in |
//! | --- | --- |
//! | the law of run time and the levels | [`function_model`] |
//! | the published table beside ours | [`published`] |

pub mod baselines;
pub mod calls;
pub mod function_model;
pub mod history;
pub mod paper_agent;
pub mod published;
pub mod quirks;
pub mod replay;
pub mod safeguard;
mod servers;
pub mod simulator;

pub use calls::{Calls, Origin};
pub use function_model::{FunctionModel, Levels};
pub use quirks::Quirks;
