//! Questions put to the parts: which policy lies nearest to the envelope of the others, what sizing is worth
//! on functions that nothing was tuned on, how the agents that answer are trained, and what comes of published
//! experiments when they are repeated. Each study runs without printing and leaves its tables and pages behind.

pub mod calibration;
pub mod capacity;
pub mod environments;
pub mod faasrm_training;
pub mod frontier;
pub mod honest_sizing;
pub mod reproduce;
pub mod training_page;
pub mod windfall_training;
