//! Published systems rebuilt: their environments, their golden scores, their learners.

pub mod ece471;
pub mod faasrm;
pub mod knative_concurrency;
pub mod simppo;
