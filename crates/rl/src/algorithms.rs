//! Learning algorithms, one story per file: settings, losses with their formulas, `update`, `iterate`.

pub mod dqn;
pub mod ppo;
pub mod q_learning;
pub mod reinforce;
