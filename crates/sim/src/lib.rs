//! A cluster in virtual time.
//!
//! ```text
//!  arrival ─► queue of its function ─► node with room ─► instance ─► run ─► end
//!                 (waiting is real)     (by what is       warm or    law of core::demand,
//!                                        *granted*)       cold       killed if memory crosses
//! ```
//!
//! Calls are sized one by one (`concurrency` 1, scale-out per call) or share instances that ticks size
//! and count. What one call does not hold another can have: a node admits by what is granted, not by
//! what is reserved. Where the running calls cannot want more CPU than there is, each runs by its own
//! law and an event costs O(log n); where they can, the node shares its cores by weighted max-min.
//!
//! The files: [`settings`] what a cluster is made of · `simulator` the state and the loop ·
//! `dispatch` who starts where · `queue_order` who starts first · `admission` whom a node can take · `run` from start
//! to end or kill · `supervise` looks, live changes and
//! debts · `sharing` contended nodes · `instances` starts, stops, keep-alive · `observe` what ticks see
//! and do · `faults` what goes wrong · [`ledger`] where every call went. [`noise`] draws that
//! depend on who asks and not on when.

mod admission;
mod bucket;
mod call;
mod call_record;
pub mod cpu_model;
mod dispatch;
mod event_queue;
mod faults;
mod function;
mod gauges;
mod held_back;
mod idle;
mod instance;
mod instances;
mod kept_memory;
mod kernel_call;
mod kernel_pace;
mod kernel_sharing;
mod kernel_walk;
mod kind;
pub mod ledger;
mod members;
mod node;
mod node_level;
pub mod noise;
mod observe;
mod placement;
mod progress;
mod queue_order;
mod run;
pub mod settings;
mod sharing;
mod simulator;
mod slab;
mod supervise;
mod water_filling;
mod wheel;

pub use cpu_model::{CpuModel, KernelCpu};
pub use ledger::Ledger;
pub use node_level::NodeLevel;
pub use settings::{Cluster, Faults, Placement, ScaleOut, Sensors, Settings};
pub use simulator::Simulator;
pub use windfall_core::QueueOrder;
