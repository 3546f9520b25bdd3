//! The incumbents, exactly: the autoscalers that platforms run today.
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
