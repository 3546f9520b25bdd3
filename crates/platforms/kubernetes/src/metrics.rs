//! Measurements: where they come from, and what is made of them.
//!
//! ```text
//!   metrics.k8s.io ─────────► cores, bytes            one list of all pods
//!   kubelet by node proxy ──► CPU seconds, bytes      one request per node; throttling with cAdvisor's page
//!   Prometheus ─────────────► the same, and queries   bounded in queries and bytes per pass, goes on where it stopped
//!   queue-proxy, autoscaler ► requests, concurrency   a sample of the pods; one page for all Revisions
//! ```

pub mod budget;
pub mod exposition;
pub mod http;
pub mod knative;
pub mod kubelet;
pub mod metrics_api;
pub mod prometheus;
pub mod store;

use futures_util::future::BoxFuture;

pub use budget::Budget;
pub use store::{MetricsStore, Reading, Signals};

use crate::cluster::Key;
use crate::resource_policy::Goals;

/// What a source is asked about: one workload with its pods.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The policy.
    pub policy: Key,
    /// The container that is sized.
    pub container: String,
    /// The Revision, on Knative.
    pub revision: Option<String>,
    /// Its goals, which may bring queries along.
    pub goals: Goals,
    /// Its pods.
    pub pods: Vec<WantedPod>,
}

/// A pod that is measured.
#[derive(Clone, Debug, Default)]
pub struct WantedPod {
    /// Its key.
    pub key: Key,
    /// Its node.
    pub node: Option<String>,
    /// Its address.
    pub address: Option<String>,
}

/// Why a source gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Retryable: the API server refused or did not answer.
    #[error("{what}: {problem}")]
    Api {
        /// What was asked for.
        what: String,
        /// Why not.
        problem: String,
    },
    /// Retryable: an HTTP server did not answer as it should.
    #[error("{address}: {problem}")]
    Http {
        /// Whom.
        address: String,
        /// Why not.
        problem: String,
    },
}

/// Somewhere measurements come from.
pub trait MetricsSource: Send + Sync {
    /// The name in logs and conditions.
    fn name(&self) -> &'static str;

    /// Asks for what `wanted` needs, within `budget`. What the budget does not allow is asked for at a later pass.
    fn collect<'a>(
        &'a self,
        wanted: &'a [Wanted],
        budget: &'a Budget,
    ) -> BoxFuture<'a, Result<Vec<Reading>, SourceError>>;
}
