//! Google's Autopilot (Rzadca and others, EuroSys 2020), as far as the paper tells.
//!
//! ```text
//!  samples of 5 min ─┬─► window recommender: decayed statistic + margin, held for an hour
//!                    └─► ensemble of argmin models ─► the limit of the cheapest model
//! ```
//!
//! A job that uses 1 core in nine seconds of ten and 9 cores in the tenth is given 9.9 cores by the window
//! recommender; the ensemble weighs one overrun against nine underruns and decides by their price. There is
//! no recorded Autopilot to compare with; what the paper leaves open (limits to choose from, tuned prices,
//! where a limit is large) is a knob and says so.

mod ensemble;
mod ladder;
mod window;

pub use ensemble::{Ensemble, EnsembleSettings};
pub use ladder::Ladder;
pub use window::{Statistic, WindowRecommender, WindowSettings};
