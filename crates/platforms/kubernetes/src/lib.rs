//! Windfall on a Kubernetes cluster. A user writes a [`ResourcePolicy`](resource_policy::ResourcePolicy) that names a
//! Deployment or a Knative Service; the controller watches it, measures its pods, asks a policy of the registry and
//! carries out what the safeguards allow.
//!
//! ```text
//!   API server ──watch──► cluster index ─┐                                       ┌─► Revision annotations
//!   kubelet, Prometheus, queue-proxy ────┼─► platform ─► tick loop ─► desired ───┼─► pods/resize
//!   ResourcePolicy ──────────────────────┘   (observe)   (policy,     state      ├─► deployments/scale
//!        ▲                                               safeguards)    │        └─► new Revision
//!        └── status, conditions, Events ◄────── guards: revert, conflict ◄
//! ```
//!
//! Decisions are kept free of input and output: the index, the store of measurements, the difference between what is
//! desired and what is there, and the guards are plain data with plain functions. Watches, scrapes and patches surround
//! them.

pub mod actuators;
pub mod bench;
pub mod cluster;
pub mod controller;
pub mod desired;
pub mod discovery;
pub mod guard;
pub mod guests;
pub mod harm;
pub mod instruments;
pub mod knative_load_test;
pub mod leader;
pub mod metrics;
pub mod multidimensional;
pub mod platform;
pub mod plugin;
pub mod policies;
pub mod rbac;
pub mod resource_policy;
pub mod server;
pub mod service;
pub mod simppo;
pub mod size;
pub mod watch;
pub mod webhook;
pub mod world;
pub mod yaml;

#[cfg(test)]
mod fake_api;
