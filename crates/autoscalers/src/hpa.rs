//! The Kubernetes HorizontalPodAutoscaler, as in Kubernetes v1.36.
//!
//! ```text
//!  pods, samples ─► groups ─► ratio ─► proposal per metric ─► largest ─► stabilised ─► limited ─► replicas
//!  object, external ──────────┘                                 │           │            │
//!                                    one unreadable metric blocks   recent past   rate policies
//!                                    scale-down only                              or max(2n, 4), min, max
//! ```
//!
//! Three pods at 90 % CPU with a target of 50 %: ratio 90 / 50 = 1.8, proposal ceil(1.8 · 3) = 6, which is
//! within max(2 · 3, 4) = 6 and is applied. Fifteen seconds later all pods are at 45 %: 0.9 is within the
//! tolerance of 0.1, and the count stays at 6.

mod controller;
mod pods;
mod proposals;
mod rates;
#[cfg(test)]
mod rules;
mod spec;
mod stabilisation;

pub use controller::{Controller, Normalised, Seen, Synced};
pub use pods::{
    Container, ContainerUsage, GroupCounts, Measured, Phase, Pod, Ready, Sample, Usage,
};
pub use proposals::MetricOutcome;
pub use spec::{
    Behavior, Change, ControllerSettings, MetricSpec, MetricTarget, RatePolicy, Resource, Rules,
    SelectPolicy, Source, Spec, WrittenRules,
};
