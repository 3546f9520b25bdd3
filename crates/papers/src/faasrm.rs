//! FaaSRM (arXiv 2108.12717; published as Freyr, WWW'22): per-call CPU and memory sizes by a learned score
//! network behind a safeguard.

pub mod candidates;
pub mod score_agent;
pub mod sizing;

pub use candidates::Candidates;
pub use score_agent::ScoreAgent;
pub use sizing::FaasrmSizing;
