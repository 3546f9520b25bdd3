//! Settings from real manifests: the ConfigMap `config-autoscaler`, a HorizontalPodAutoscaler, a
//! VerticalPodAutoscaler.
//!
//! ```text
//!  YAML text ─► tree with lines ─► fields by name ─► settings
//!                     │                 └─► remaining fields are unknown ───┐
//!                     └─► alias, duplicate key, nested too deep ────────────┴─► ManifestError with all problems
//! ```
//!
//! `stable-window: "5s"` and `panic-window: "10"` in one file are two problems:
//!
//! ```
//! use windfall_autoscalers::kpa::ClusterSettings;
//!
//! let text = "kind: ConfigMap\ndata:\n  stable-window: 5s\n  panic-window: \"10\"\n";
//! let error = ClusterSettings::from_yaml(text).unwrap_err().to_string();
//! assert_eq!(
//!     error,
//!     "2 problems\n  line 3: stable-window must be 6s to 1h\n  line 4: panic-window is not a key of \
//!      config-autoscaler"
//! );
//! ```
//!
//! Each reader is a pure function of its text and never panics on any UTF-8 input.

mod config_map;
mod fields;
mod go_texts;
mod hpa_manifest;
mod problems;
#[cfg(test)]
mod reading;
mod vpa_manifest;
mod yaml_tree;

pub use problems::{ManifestError, Problem};
