//! Questions put to the parts: which policy lies nearest to the envelope of the others, what sizing is worth
//! on functions that nothing was tuned on, and how the agents that answer are trained.

pub mod faasrm_training;
pub mod frontier;
pub mod honest_sizing;
pub mod windfall_training;
