//! Rules about single calls that no policy can get around, one file each.

mod faasrm;
mod floor;
mod long_run;
mod slack_budget;
mod surges;

pub use faasrm::Faasrm;
pub use floor::{Floor, FloorShare};
pub use slack_budget::{Preference, SlackBudget, SlackSettings};
pub use surges::SurgeSettings;

/// Every name an amendment of a call can carry; the first is the chain's own last word.
pub const NAMES: [&str; 4] = ["ceiling", faasrm::NAME, floor::NAME, slack_budget::NAME];

#[cfg(test)]
mod tests;
