//! Recorded decisions of the real autoscalers, replayed through ours.
//!
//! ```text
//!  stories.jsonl[.gz] ─► one story a line ─► settings, inputs in order of time ─► our autoscaler
//!                                                          │                            │
//!                                             recorded decision ◄──── compared ─────────┘ ─► Report
//! ```
//!
//! A story is played from its inputs alone; what was recorded is only looked at to compare. 8 867
//! decisions of Knative's autoscaler, for example, take a tenth of a second.

mod kpa_replay;
mod report;
mod story_lines;

pub use kpa_replay::replay_kpa;
pub use report::{Difference, Report, StoryError};
