//! The Kubernetes VerticalPodAutoscaler, as in version 1.8.
//!
//! ```text
//!  samples ─► decaying histograms ─► percentiles ─► margin, confidence, bounds ─► recommendation
//!  OOM kills ─┘        │                                                              │
//!                 checkpoints                                        updater: which pods are evicted
//! ```
//!
//! A container that uses 90 to 110 millicores all day: the 90th percentile is in the bucket that ends at 110, plus 15 %
//! is 126 millicores. A pod that requests 100 and is older than 12 h differs by 26 % and is evicted, if enough others
//! run.

mod aggregate;
mod amounts;
mod buckets;
mod checkpoint;
mod estimate;
mod histogram;
mod recommender;
#[cfg(test)]
mod rules;
mod settings;
mod updater;
#[cfg(test)]
mod updater_rules;

pub use aggregate::{Aggregate, ContainerRecommendation, ContainerState};
pub use amounts::{Resource, Resources};
pub use buckets::BucketLayout;
pub use checkpoint::{Checkpoint, HistogramCheckpoint};
pub use histogram::DecayingHistogram;
pub use recommender::Recommender;
pub use settings::{
    ContainerPolicy, EvictionRequirement, Percentiles, RecommenderSettings, UpdateMode,
    UpdatePolicy, VpaSettings,
};
pub use updater::{
    UpdatePass, UpdateVerdict, Updater, UpdaterContainer, UpdaterPod, UpdaterSettings,
};
