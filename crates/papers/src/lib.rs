//! Papers.
