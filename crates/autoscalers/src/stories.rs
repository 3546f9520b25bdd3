//! Recorded decisions of the real autoscalers, replayed through ours.
//!
//! ```text
//!  stories.jsonl[.gz] ─► one story a line ─► settings, inputs in order of time ─► our autoscaler
//!                                                          │                            │
//!                                             recorded decision ◄──── compared ─────────┘ ─► Report
//! ```
//!
//! A story is played from its inputs alone; what was recorded is only looked at to compare.

mod hpa_format;
mod hpa_replay;
mod kpa_replay;
mod report;
mod story_lines;
mod updater_replay;
mod vpa_format;
mod vpa_replay;

pub use hpa_replay::replay_hpa;
pub use kpa_replay::replay_kpa;
pub use report::{Difference, Report, StoryError};
pub use updater_replay::replay_vpa_updater;
pub use vpa_replay::replay_vpa;
