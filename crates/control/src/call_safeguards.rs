//! Rules about single calls that no policy can get around, one file each.

mod faasrm;
mod floor;
mod long_run;
mod reserved_memory;
mod slack_budget;
mod slack_weights;
mod surges;

pub use faasrm::Faasrm;
pub use floor::{Floor, FloorShare};
pub use reserved_memory::ReservedMemory;
pub use slack_budget::{Preference, SlackBudget, SlackSettings};
pub use slack_weights::{SlackWeights, SlackWeightsSettings};
pub use surges::SurgeSettings;

/// Every name an amendment of a call can carry; the first two are the chain's own last words.
pub const NAMES: [&str; 7] = [
    "ceiling",
    "platform",
    faasrm::NAME,
    floor::NAME,
    slack_budget::NAME,
    reserved_memory::NAME,
    slack_weights::NAME,
];

#[cfg(test)]
mod tests;
