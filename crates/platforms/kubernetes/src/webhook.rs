//! The size of new pods. Knative and ReplicaSets make pods from templates with the user's size; the API server asks this
//! webhook, which answers with the size that is recommended now. So a pod is sized before it is scheduled, and a new
//! Revision or a restarted pod does not fall back.
//!
//! The answer comes from the index alone, on every replica of the controller. Where there is no answer (controller down,
//! timeout) the failure policy `Ignore` lets the pod start at the user's size.

mod certificate;
mod register;
mod serve;
mod sizing;

pub use certificate::Certificate;
pub use register::{Endpoint, register, unregister};
pub use serve::serve;
pub use sizing::{SIZED, patch_for};

/// The path that the API server calls.
pub const PATH: &str = "/mutate-pods";
