//! SIMPPO (SoCC 2022): one PPO agent per function, each seeing the rest of the world as one virtual agent.
//!
//! ```text
//!            agent 1 ─┐
//!            agent 2 ─┤ mean over the others, over live ones only          actor, critic of agent i
//!              ...    ├──────────────► auxiliary state ──────┐             ┌──────────────────────┐
//!            agent N ─┘                                      └─► row of i ─►  moves of function i
//!                                     own state (7 numbers) ───►           └──────────────────────┘
//! ```
//!
//! The row's width does not depend on the number of agents, so functions can come and go and a policy
//! trained among few is a warm start among many.
//!
//! | I look for | It is in |
//! | --- | --- |
//! | what an agent observes of the others | [`auxiliary`] |
//! | what a shared network observes of each function | `context` |
//! | agents that act and learn together: S-RL, MAPPO, SIMPPO, residual | [`team`] |
//! | how a learner corrects the queueing rule | `residual` |
//! | lost transitions, leases, holding and falling back | [`faults`] |
//! | what faults cost | [`fault_run`] |
//! | training and the table of online performance | [`online`] |
//! | the ratios at other loads | [`load_sweep`] |
//! | from 5 to 110 functions | [`growth`] |
//! | chains of functions | [`chain`] |
//! | what a team needs of its world | [`arena`] |
//! | the experiment on fixed nodes: gate, arms, calibrated rules, margins | [`shared`] |
//! | trained agents on a platform that is no environment | [`deployed`] |
//! | the whole experiment | [`reproduce()`] |

pub mod arena;
pub mod auxiliary;
pub mod chain;
mod context;
pub mod deployed;
pub mod fault_run;
pub mod faults;
pub mod growth;
pub mod load_sweep;
pub mod online;
mod reproduce;
mod residual;
pub mod shared;
pub mod team;

pub use auxiliary::Auxiliary;
pub use reproduce::{BlockRatios, ReproduceSettings, Results, reproduce};
pub use team::{Method, Team, TeamSettings};
