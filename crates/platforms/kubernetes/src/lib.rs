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

pub mod guests;
pub mod knative_load_test;
pub mod plugin;
pub mod resource_policy;
pub mod yaml;
