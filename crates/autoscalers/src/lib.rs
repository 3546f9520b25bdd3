//! Exact reimplementations of the autoscalers that platforms run today, checked against recorded decisions.
//!
//! ```text
//!  recorded stories ─► stories ──► kpa   hpa   vpa     autopilot (from its paper, no recordings)
//!                       equal?      ▲     ▲     ▲          ▲
//!  real manifests ───► manifest ────┴─────┴─────┘          │
//!  Observation ──────► policies ────┴─────┴─────┴──────────┘ ──► Decision
//! ```
//!
//! | module        | what                                     | as in                    | checked by |
//! | ------------- | ---------------------------------------- | ------------------------ | ---------- |
//! | [`kpa`]       | Knative's pod autoscaler                 | Knative Serving v0.50.0  | 8,867 recorded decisions |
//! | [`hpa`]       | the HorizontalPodAutoscaler              | Kubernetes v1.36.3       | 2,934 recorded syncs |
//! | [`vpa`]       | the VerticalPodAutoscaler                | VPA v1.8.1               | 20,083 amounts, refusals and states; 443 of the updater |
//! | [`autopilot`] | Google's window recommender and ensemble | EuroSys 2020             | worked numbers |
//! | [`policies`]  | all of them as tick policies             |                          | the conformance suite |
//! | [`manifest`]  | settings from ConfigMap, HPA, VPA        | the same releases        | real files, damaged files |
//! | [`stories`]   | replay of recorded decisions             |                          | |
//!
//! The documentation of every setting gives its upstream name.

pub mod autopilot;
mod go_numbers;
pub mod hpa;
pub mod kpa;
pub mod manifest;
pub mod policies;
mod quantity;
pub mod stories;
pub mod vpa;

pub use quantity::{Quantity, QuantityError};
