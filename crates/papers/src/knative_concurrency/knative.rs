//! Knative's data path: one revision under load, from the gateway to the pods and back.
//!
//! ```text
//!             ┌───────────── proxied: no pods, or too little spare capacity ─────────┐
//!  request ───┤                                                                      ▼
//!             │                     activator (10 000 wait; each pod gets at most its limit at once)
//!             └── served ──► queue-proxy: `containerConcurrency` at once, 10x that wait, then 503
//!                                 ▼
//!                            container: requests share its cores; memory above the limit kills them all
//!  once a second: requests in the system ─► Autoscale ─► pods (one node starts one after the other)
//! ```
//!
//! Ten pods of one core with a limit of 70 and requests of 10 ms: one pod serves 100 a second, ten serve 1000. A
//! burst of 800 finds 700 places; 100 wait at the activator.
//!
//! Who decides the number of pods is an argument ([`Autoscale`]), so that the exact autoscaler can sit there.
//! `windfall-sim` is another simulator: there calls of many functions are sized on a cluster, here one revision's
//! admission is followed in detail.

#[cfg(test)]
mod data_path;
mod load_test;
mod outcome;
mod pod;
mod request;
mod revision;
mod settings;

pub use load_test::{Load, load_test};
pub use outcome::LoadTestOutcome;
pub use request::{RequestShape, RequestWork};
pub use settings::KnativeSettings;

/// What an autoscaler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// Pods; nothing means as they are.
    pub replicas: Option<u32>,
    /// Whether activators stand in the path.
    pub is_proxied: bool,
}

/// Who decides how many pods there are.
pub trait Autoscale {
    /// Requests in the system, averaged over the second that ends at `second`.
    fn record(&mut self, second: u64, requests: f64);

    /// What is wanted at `second` with `ready` pods.
    fn decide(&mut self, second: u64, ready: u32) -> Scaling;
}
