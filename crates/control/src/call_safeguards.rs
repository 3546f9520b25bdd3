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

/// Every name an amendment of a call can carry; the first two are the chain's own last words.
pub const NAMES: [&str; 5] = ["ceiling", "platform", faasrm::NAME, floor::NAME, slack_budget::NAME];

#[cfg(test)]
mod tests;
