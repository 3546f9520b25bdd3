//! Policies that are trained here, as policies: the agent, its network, and what its checkpoint holds.
//!
//! Nothing in this crate knows a simulator. An agent meets the world through the traits of
//! `windfall-core`, so that the registry can hand it to a simulated or a real platform alike. What trains
//! an agent in the simulator is in `windfall-studies`.

pub mod faasrm;
pub mod windfall_parameters;
