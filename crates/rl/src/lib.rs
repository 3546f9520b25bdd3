//! Learning (skeleton).
pub mod net;
pub mod random;
