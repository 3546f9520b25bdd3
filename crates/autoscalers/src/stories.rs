//! Replays recorded decisions of the real autoscalers and compares them with ours.
//!
//! ```text
//!  stories.jsonl[.gz] ─► one story per line ─► settings, inputs in order of time ─► our autoscaler
//!                                                          │                            │
//!                                             recorded decision ◄──── compared ─────────┘ ─► Report
//! ```
//!
//! A story is replayed from its inputs only; the recorded decisions are used only for the comparison.

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
