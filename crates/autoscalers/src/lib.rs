//! The incumbents, exactly: the autoscalers that platforms run today.
pub mod kpa;
pub mod stories;
