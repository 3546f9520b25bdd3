//! The autoscaling exercise of ECE 471 (UIUC, 2022, MP3), the single-agent half of SIMPPO (SoCC'22).
//!
//! One function on one server: an agent adds and removes containers and CPU shares and is paid for SLO
//! preservation and utilisation. The original reads a table of 189 rows; 159 of its 180 rows with
//! containers follow exactly from a closed form ([`table`]), so it is regenerated here, not copied.
//!
//! # Quirks that the faithful mode keeps
//!
//! 1. Vertical scaling does nothing, except become illegal below 128 shares.
//! 2. The shares of co-tenants are drawn and never used; the features "own shares" and "containers" are
//!    the same number, and "shares of others" is always zero.
//! 3. Two containers at 3 requests/s and four at 6 are exactly saturated, yet have a perfect SLO: the best
//!    place to be is 100 % load.
//! 4. Utilisation is not corrected for core sharing above eight containers.
//! 5. Shares per container and the last action survive a reset. The reset itself scales out, so an
//!    immediate scale-in counts as a reversal.
//! 6. There is no upper bound on shares, and an episode never ends by itself.
//! 7. The reward depends on the last action, which the six features do not show: no policy of these
//!    features alone that always does the same in the same state gets more than
//!    [`optimum::memoryless`], 189.35. (One that receives the mask of legal actions can count its vertical
//!    steps by that.) [`Features::WithDirection`] adds what is missing.
//!
//! The mode [`Mode::FixedQuirks`] mends 1 to 6. Removing more containers than there are crashes the
//! original; here it is illegal in both modes.

pub mod baselines;
pub mod entries;
pub mod environment;
pub mod exploration;
pub mod optimum;
pub mod reproduce;
pub mod rewards;
pub mod settings;
mod shown;
pub mod table;

pub use environment::{Action, Ece471, Features, Outcome, Settings};
pub use rewards::Design;
pub use table::{Mode, Row};

/// Steps of an episode; the original leaves the horizon to the agent, which uses this one.
pub const HORIZON: u32 = 200;

/// Arrival rates an episode can have, in requests per second.
pub const RATES: std::ops::RangeInclusive<u32> = 1..=8;

/// Most containers.
pub const MOST_CONTAINERS: u32 = 10;

/// CPU shares of one container at first.
pub const INITIAL_SHARES: u32 = 1024;

/// Fewest CPU shares of one container.
pub const FEWEST_SHARES: u32 = 128;

/// Most CPU shares of one container; declared in the original, enforced in [`Mode::FixedQuirks`].
pub const MOST_SHARES: u32 = 2048;

/// CPU shares of one vertical step.
pub const SHARES_STEP: i32 = 128;
