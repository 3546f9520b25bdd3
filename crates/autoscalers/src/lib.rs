//! The incumbents, exactly: the autoscalers that platforms run today.
mod go_numbers;
pub mod hpa;
pub mod kpa;
mod quantity;
pub mod stories;
pub mod vpa;
pub use quantity::{Quantity, QuantityError};
