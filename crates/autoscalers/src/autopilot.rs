//! Google's Autopilot (Rzadca and others, EuroSys 2020), as far as the paper describes it.
//!
//! ```text
//!  samples of 5 min ─┬─► window recommender: decayed statistic + margin, held for an hour
//!                    └─► ensemble of argmin models ─► the limit of the model with the lowest cost
//! ```
//!
//! A job that uses 1 core in nine seconds of ten and 9 cores in the tenth gets 9.9 cores from the window
//! recommender; the ensemble weighs one overrun against nine underruns and decides by their price. There are
//! no recorded decisions of Autopilot to compare with. What the paper leaves open (candidate limits, tuned
//! prices, the threshold for large limits) is a documented setting.

mod ensemble;
mod ladder;
mod window;

pub use ensemble::{Ensemble, EnsembleSettings};
pub use ladder::Ladder;
pub use window::{Statistic, WindowRecommender, WindowSettings};
